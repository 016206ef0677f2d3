#ifndef MEMRT_ALLOC_ADAPTORS_ARENA_H
#define MEMRT_ALLOC_ADAPTORS_ARENA_H

#include <stdbool.h>

#include <memrt/allocator/adaptor.h>

#include "runtime/base/check.h"

/// Arena: an adaptor that places small blocks one behind the other in chunks of its upstream.
///
/// A chunk counts live blocks. The free of the last block empties the chunk at once. The newest
/// block of a chunk returns its bytes at the free, and grows in place. All other freed bytes stay
/// unused until the chunk is empty. Memory of a live block is therefore never reused.
///
/// Blocks above an eighth of a chunk, in size or alignment, come from the upstream. The arena keeps
/// empty chunks for the next blocks, until release_unused or destroy.
///
/// Threads: any thread, without a lock. All threads allocate from the same chunk.
/// Fork: a block that another thread was allocating or freeing at the fork keeps its chunk, and a
/// chunk that was between arena and upstream is lost, in the child until the process ends.

/// Bytes of a chunk: smallest, largest, and the default for 0. A power of two.
#define MEMRT__ARENA_CHUNK_MIN ((size_t)64 << 10)
#define MEMRT__ARENA_CHUNK_MAX ((size_t)1 << 30)
#define MEMRT__ARENA_CHUNK ((size_t)1 << 20)

/// Create an arena with chunks of `bytes` over a copy of `upstream`.
/// Failure: MEMRT_EINVAL for a bad allocator table or bad `bytes`; MEMRT_ENOMEM.
memrt_status_t memrt__arena_new(const memrt_allocator_t *upstream, size_t bytes,
                                memrt_allocator_t *out) MEMRT_MUST_CHECK;

/// Return true if an allocator is an arena.
bool memrt__is_arena(const memrt_allocator_t *allocator);

/// Return the allocator that an arena takes its chunks from.
const memrt_allocator_t *memrt__arena_upstream(const memrt_allocator_t *arena);

#if MEMRT_DEBUG
/// Return whether the invariants of an arena hold. No other thread may use the arena.
bool memrt__arena_is_valid(const memrt_allocator_t *arena);
#endif

#endif
