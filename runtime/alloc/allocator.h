#ifndef MEMRT_ALLOC_ALLOCATOR_H
#define MEMRT_ALLOC_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/allocator.h>
#include <memrt/status.h>

/// Calls to an allocator table. The functions supply the defaults for missing table entries, so
/// wrappers and policies work with any upstream without checks.

/// Copy an allocator table that a caller filled, reading at most `struct_size` bytes.
///
/// Failure: returns MEMRT_EINVAL for another version, a table that ends before `alloc`, or a
/// missing alloc or free.
memrt_status_t memrt__allocator_copy(const memrt_allocator_t *from,
                                     memrt_allocator_t *to) MEMRT_MUST_CHECK;

/// Allocate a block. Failure: returns NULL when out of memory.
void *memrt__allocator_alloc(const memrt_allocator_t *allocator, size_t size, size_t align,
                             bool zeroed);

/// Resize a block. Failure: returns NULL when out of memory, with the old block unchanged.
void *memrt__allocator_realloc(const memrt_allocator_t *allocator, void *ptr, size_t old_size,
                               size_t new_size, size_t align);

/// Resize a block by a new block, a copy and a free, for allocators without a better way. Failure:
/// returns NULL when out of memory, with the old block unchanged.
void *memrt__allocator_move(const memrt_allocator_t *from, const memrt_allocator_t *to, void *ptr,
                            size_t old_size, size_t new_size, size_t align);

/// Grow a block at its address to a larger size. Returns false, with nothing changed, if the block
/// cannot grow in place.
bool memrt__allocator_try_expand(const memrt_allocator_t *allocator, void *ptr, size_t old_size,
                                 size_t new_size, size_t align);

/// Return the size to which a block grows in place without further memory, at least `size`.
size_t memrt__allocator_usable_size(const memrt_allocator_t *allocator, const void *ptr,
                                    size_t size, size_t align);

/// Return the largest size with the memory of a request for `size` bytes, at least `size`.
size_t memrt__allocator_good_size(const memrt_allocator_t *allocator, size_t size, size_t align);

void memrt__allocator_free(const memrt_allocator_t *allocator, void *ptr, size_t size,
                           size_t align);
size_t memrt__allocator_release_unused(const memrt_allocator_t *allocator);
size_t memrt__allocator_cached(const memrt_allocator_t *allocator);
void memrt__allocator_destroy(const memrt_allocator_t *allocator);

/// Minimum bytes of a large block: more than the data of any size class. The uncached allocator
/// maps large blocks, with page-aligned data.
#define MEMRT__LARGE (((size_t)1 << 20) + 1)

/// The C library's malloc, with the requested alignment.
extern const memrt_allocator_t memrt__system_allocator;

/// Pages from the operating system, lazily zero; with huge pages from 4 MiB on.
extern const memrt_allocator_t memrt__mapped_allocator;

/// The uncached allocator: large blocks are mapped, and all other blocks come from the system
/// allocator. Keeps nothing for reuse.
extern const memrt_allocator_t memrt__uncached_allocator;

/// The heap: small and medium blocks by size class from the calling thread's cache, large blocks
/// from the large-object cache.
extern const memrt_allocator_t memrt__heap_allocator;

/// Return the allocator of policies without an explicit allocator: the heap, the uncached allocator
/// if MEMRT_CACHE is off, or the system allocator if MEMRT_TOOLS is on.
const memrt_allocator_t *memrt__default_allocator(void);

#endif
