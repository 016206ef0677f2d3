#ifndef MEMRT_ALLOC_HEAP_LARGE_CACHE_H
#define MEMRT_ALLOC_HEAP_LARGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/alloc/heap/cache_room.h"
#include "runtime/config/options.h"

/// Large-object cache: freed large mappings, kept for reuse with their pages in memory. The process
/// has a cache for all policies. Each policy with its own limits has a cache for itself.
///
/// Invariant, for each cache: cached and used bytes together stay within the high-water mark of
/// use, and cached bytes stay within the limit. The cache of the process also counts the pages of
/// spans, and may exceed the mark by memrt__retention_budget(). Cached mappings therefore make the
/// process larger by at most the retention budget. All caches together keep at most
/// MEMRT_CACHE_LIMIT bytes.

/// Make an empty cache with `limits`. Failure: returns NULL when out of memory.
memrt__large_cache_t *memrt__large_cache_new(const memrt__limits_t *limits);

/// Have `map` called for new mappings, and `place` for each mapping that a new cache hands out. The
/// cache then never resizes a mapping, and zeroes mappings without taking their pages away.
void memrt__large_cache_place(memrt__large_cache_t *cache, memrt__map_fn map, memrt__place_fn place,
                              void *context);

/// Unmap all cached mappings, and from now on every mapping that is given back.
void memrt__large_cache_close(memrt__large_cache_t *cache);

/// Destroy a cache that has no mapping in use. Mappings that the system refuses to unmap move to
/// the cache of the process.
void memrt__large_cache_delete(memrt__large_cache_t *cache);

/// Compute the mapping size for a block of `size` bytes. The result is rounded up to a step, so
/// that blocks of similar size can reuse each other's mappings.
///
/// Failure: returns false if the size overflows.
bool memrt__large_cache_bytes(size_t size, size_t *bytes);

/// Return a mapping of `bytes`, whole pages, at a multiple of `align`. Results of
/// memrt__large_cache_bytes() are few, so that requests find a cached mapping of their size.
/// The mapping is all zero if `zeroed`.
///
/// Failure: returns NULL when out of memory, or when the mapping could not be placed.
void *memrt__large_cache_take(memrt__large_cache_t *cache, size_t bytes, size_t align, bool zeroed);

/// Give a mapping back to the cache that supplied the mapping.
void memrt__large_cache_give(memrt__large_cache_t *cache, void *mapping, size_t bytes);

/// Unmap a mapping that the cache supplied, instead of keeping the mapping for reuse.
void memrt__large_cache_drop(memrt__large_cache_t *cache, void *mapping, size_t bytes);

/// Resize a mapping, at the same address unless `may_move`. Failure: returns NULL, with nothing
/// changed.
void *memrt__large_cache_resize(memrt__large_cache_t *cache, void *mapping, size_t old_bytes,
                                size_t new_bytes, bool may_move);

/// Mark existing mappings after the huge page mode of the process has changed. A reuse then advises
/// a marked mapping anew.
void memrt__large_cache_readvise(void);

/// Change the limits of a cache that is not the cache of the process. The next change of the cache,
/// or memrt__large_cache_trim(), unmaps what exceeds the new limits.
void memrt__large_cache_change(memrt__large_cache_t *cache, const memrt__limits_t *limits);

/// Return the bytes in a cache, including mappings that the system refused to unmap.
size_t memrt__large_cache_cached(const memrt__large_cache_t *cache);

/// Add up the bytes of mappings in use, and the bytes in all caches of the process.
void memrt__large_cache_sums(size_t *in_use, size_t *cached);

/// Shortest decay that a policy has set for itself, in milliseconds, without decays of 0.
/// MEMRT__DECAY_NEVER: no policy has set a decay. Relaxed.
extern size_t memrt__large_cache_shortest;

#if MEMRT_DEBUG
/// Return whether the invariants of all caches hold. Takes the lock of rank LARGE_CACHE.
bool memrt__large_cache_is_valid(void);
#endif

#endif
