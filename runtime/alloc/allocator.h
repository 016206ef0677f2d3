#ifndef MEMRT_ALLOC_ALLOCATOR_H
#define MEMRT_ALLOC_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/allocator.h>
#include <memrt/status.h>

/// Calling an allocator: the defaults for functions that it does not have stand here, so that
/// wrappers and policies need not know what an upstream lacks.

/// Copy a table that somebody filled, reading no further than its struct_size.
/// MEMRT_EINVAL: another version, or alloc or free is missing.
memrt_status_t memrt__allocator_copy(const memrt_allocator_t *from,
                                     memrt_allocator_t *to) MEMRT_MUST_CHECK;

/// NULL: out of memory.
void *memrt__allocator_alloc(const memrt_allocator_t *allocator, size_t size, size_t align,
                             bool zeroed);

/// NULL: out of memory, the old block is as it was.
void *memrt__allocator_realloc(const memrt_allocator_t *allocator, void *ptr, size_t old_size,
                               size_t new_size, size_t align);

/// Resize by a new block, a copy and a free, for allocators that have nothing better.
void *memrt__allocator_move(const memrt_allocator_t *from, const memrt_allocator_t *to, void *ptr,
                            size_t old_size, size_t new_size, size_t align);

void memrt__allocator_free(const memrt_allocator_t *allocator, void *ptr, size_t size,
                           size_t align);
size_t memrt__allocator_release_unused(const memrt_allocator_t *allocator);
size_t memrt__allocator_cached(const memrt_allocator_t *allocator);
void memrt__allocator_destroy(const memrt_allocator_t *allocator);

/// Blocks of this many bytes and more are large: mapped by the plain allocator, data page-aligned.
#define MEMRT__LARGE (((size_t)1 << 20) + 1)

/// The C library's malloc, brought to the alignment asked for.
extern const memrt_allocator_t memrt__system_allocator;

/// Have malloc keep memory for blocks of `size` bytes. glibc maps and unmaps each large block until
/// a program has freed one of that size, and from then on keeps twice as much. It does not see the
/// blocks that memrt has instead, so without this the rest of the program's would never be kept.
void memrt__system_learn(size_t size);

/// Pages from the operating system, lazily zero; on huge pages from 4 MiB.
extern const memrt_allocator_t memrt__mapped_allocator;

/// Small blocks from the system allocator, large ones mapped; keeps nothing for reuse.
extern const memrt_allocator_t memrt__plain_allocator;

/// Blocks by size class from a cache of the calling thread, large ones on mappings kept warm.
extern const memrt_allocator_t memrt__pool_allocator;

/// The allocator of policies that name none: the pool, or, where MEMRT_CACHE is off, the plain one.
const memrt_allocator_t *memrt__default_allocator(void);

#endif
