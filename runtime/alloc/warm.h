#ifndef MEMRT_ALLOC_WARM_H
#define MEMRT_ALLOC_WARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/options.h"

/// Large mappings, kept for reuse with their pages in memory: by the process for all policies, and
/// by each policy with limits of its own for itself.
///
/// Invariant, for each: what is kept and what is in use together are no more than what was in use
/// at once before, nor is more kept than its limit. For that of the process the pages of spans
/// count, too, and memrt__spare() is allowed beyond: keeping mappings makes a process bigger than
/// it has been by no more than that. And all of them together keep no more than MEMRT_CACHE_LIMIT.
typedef struct memrt__warm memrt__warm_t;

/// That of all policies without limits of their own.
extern memrt__warm_t memrt__warm_shared;

/// One more, empty. NULL: out of memory.
memrt__warm_t *memrt__warm_new(const memrt__limits_t *limits);

/// Give back all that is kept, and from now on at once what comes.
void memrt__warm_close(memrt__warm_t *warm);

/// The end of one of whose mappings none is in use. What the system does not take of it now is
/// kept by the process.
void memrt__warm_delete(memrt__warm_t *warm);

/// Bytes of the mapping for a block of `size` bytes: from it to the next step, so that blocks of
/// about the same size fit each other's. False: the size overflows.
bool memrt__warm_bytes(size_t size, size_t *bytes);

/// A mapping of `bytes`, a result of memrt__warm_bytes(), at a multiple of `align`; all zero when
/// `zeroed`. NULL: out of memory.
void *memrt__warm_take(memrt__warm_t *warm, size_t bytes, size_t align, bool zeroed);

/// Give a mapping back to where it came from.
void memrt__warm_give(memrt__warm_t *warm, void *mapping, size_t bytes);

/// Resize a mapping. NULL: not possible, nothing changed.
void *memrt__warm_resize(memrt__warm_t *warm, void *mapping, size_t old_bytes, size_t new_bytes,
                         size_t align);

/// Give the system the mappings that came before `then`, on the clock of memrt__os_now_ns();
/// returns bytes.
size_t memrt__warm_purge(memrt__warm_t *warm, uint64_t then);

/// Give the system all mappings that are kept anywhere, or those of them whose time is over;
/// returns bytes.
size_t memrt__warm_purge_all(void);
size_t memrt__warm_purge_old(uint64_t now);

/// The limits of the process have changed: give back what is too much by now.
void memrt__warm_trim(void);

/// Spans have grown: keep no more than there is room for beside them.
void memrt__warm_make_room(void);

/// The mode of the process has changed: mappings that were made before are advised anew when they
/// are reused.
void memrt__warm_readvise(void);

/// Bytes kept.
size_t memrt__warm_cached(const memrt__warm_t *warm);

/// Bytes kept anywhere that go back when their time is over.
size_t memrt__warm_aging(void);

/// Milliseconds of the shortest decay that a policy has set for itself, 0 left out;
/// MEMRT__DECAY_NEVER for none. Relaxed.
extern size_t memrt__warm_shortest;

#endif
