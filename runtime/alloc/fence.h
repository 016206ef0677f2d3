#ifndef MEMRT_ALLOC_FENCE_H
#define MEMRT_ALLOC_FENCE_H

#include <stdbool.h>
#include <stddef.h>

/// Fences around a block, and a record in the front one of what the block is and where it was made
/// and freed:
///
///     | fence | record | near fence, 64 | size bytes | rear fence, 64 |
///     ^ aligned                         ^ `ptr`, aligned
///
/// `size` and `align` are what was asked for.

/// Bytes in front of a block; a multiple of `align`.
size_t memrt__fence_front(size_t align);

/// Bytes from the front to the end of the rear. False: they overflow.
bool memrt__fence_outer(size_t size, size_t align, size_t *outer);

/// Put fences up around a block that is made here and now.
void memrt__fence_put_up(unsigned char *ptr, size_t size, size_t align);

/// Whether a live block is not as it was made, or not of that size and alignment; `text` says in a
/// sentence what is wrong.
bool memrt__fence_fault(const unsigned char *ptr, size_t size, size_t align, char *text,
                        size_t length);

/// The block is freed here and now: it is filled with MEMRT_POISON_FREED.
void memrt__fence_bury(unsigned char *ptr);

/// Whether a block was buried.
bool memrt__fence_is_buried(const unsigned char *ptr);

/// Whether a buried block was written to, or around; `text` says where.
bool memrt__fence_dead_fault(const unsigned char *ptr, char *text, size_t length);

/// What a record says that was not written over. Where it was, a size of 0.
size_t memrt__fence_size(const unsigned char *ptr);
size_t memrt__fence_align(const unsigned char *ptr);

/// Where a block was made and freed, as lines that begin with a line's end; "" when that is not
/// known.
void memrt__fence_tell(const unsigned char *ptr, char *text, size_t length);

#endif
