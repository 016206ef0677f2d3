#ifndef MEMRT_ALLOC_HEAP_LARGE_CACHE_PURGE_H
#define MEMRT_ALLOC_HEAP_LARGE_CACHE_PURGE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/alloc/heap/cache_room.h"
#include "runtime/alloc/heap/mapping_lists.h"

/// Purge of the large-object caches: cached mappings go back to the system, by age, above the
/// limits, or all together.

/// Unmap a list of mappings, linked by `next`; returns bytes. Mappings that the system refuses to
/// unmap move to the cache of the process. The caller holds no lock.
size_t memrt__large_cache_unmap(memrt__cached_mapping_t *list);

/// Unmap the mappings that were cached before `then`, on the clock of memrt__os_now_ns(); returns
/// bytes.
size_t memrt__large_cache_purge(memrt__large_cache_t *cache, uint64_t then);

/// Unmap cached mappings of all caches: all mappings, or the mappings past their decay. Both
/// functions return bytes.
size_t memrt__large_cache_purge_all(void);
size_t memrt__large_cache_purge_old(uint64_t now);

/// Let the next purge call the system again for mappings that the system refused to unmap.
/// Otherwise the system is called once for such a mapping, until the mapping is reused.
void memrt__large_cache_retry(void);

/// Unmap the mappings above the limits, after the limits of the process have changed.
void memrt__large_cache_trim(void);

/// Update the retention budget, and unmap the mappings above the remaining room, after spans have
/// grown.
void memrt__large_cache_make_room(void);

/// Return the bytes in all caches that go back to the system after a decay.
size_t memrt__large_cache_aging(void);

#endif
