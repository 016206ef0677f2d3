#ifndef MEMRT_ALLOC_WARM_H
#define MEMRT_ALLOC_WARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Large mappings, kept for reuse with their pages in memory.
///
/// Invariant: what is kept and what is in use together, here and in pages.h, are no more than what
/// was in use at once before, nor is more kept than the limit: keeping mappings never makes a
/// process bigger than it has been.

/// Bytes of the mapping for a block of `size` bytes: from it to the next step, so that blocks of
/// about the same size fit each other's. False: the size overflows.
bool memrt__warm_bytes(size_t size, size_t *bytes);

/// A mapping of `bytes`, a result of memrt__warm_bytes(), at a multiple of `align`; all zero when
/// `zeroed`. `huge`: on huge pages where the system has them. NULL: out of memory.
void *memrt__warm_take(size_t bytes, size_t align, bool zeroed);

/// Give a mapping back.
void memrt__warm_give(void *mapping, size_t bytes);

/// Resize a mapping. NULL: not possible, nothing changed.
void *memrt__warm_resize(void *mapping, size_t old_bytes, size_t new_bytes, size_t align);

/// Give the system the mappings that came here before `then`, on the clock of memrt__os_now_ns();
/// returns bytes.
size_t memrt__warm_purge(uint64_t then);

/// Keep no more than there is room for now that spans have grown.
void memrt__warm_shrink(void);

/// Bytes kept, as they were a moment ago.
size_t memrt__warm_cached(void);

#endif
