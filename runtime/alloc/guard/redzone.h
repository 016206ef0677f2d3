#ifndef MEMRT_ALLOC_GUARD_REDZONE_H
#define MEMRT_ALLOC_GUARD_REDZONE_H

#include <stdbool.h>
#include <stddef.h>

/// Redzones around a block. The front redzone contains a record of the block: size, alignment, and
/// the call stacks of allocation and free.
///
///     | redzone | record | near redzone, 64 | size bytes | rear redzone, 64 |
///     ^ aligned                             ^ `ptr`, aligned
///
/// `size` and `align` are the requested values. Of the front, at most the 4 KiB next to the block
/// are filled and verified. The cost of a redzone thus does not grow with the alignment.

/// Return the bytes in front of a block; a multiple of `align`.
size_t memrt__redzone_front(size_t align);

/// Compute the bytes from the start of the front to the end of the rear. Failure: returns false on
/// overflow.
bool memrt__redzone_outer(size_t size, size_t align, size_t *outer);

/// Write the redzones and the record of a new block, with the current call stack. The first
/// `unused` bytes of the block are padding: no function of this file reads or writes the padding.
void memrt__redzone_write(unsigned char *ptr, size_t unused, size_t size, size_t align);

/// Move the rear redzone of a live block to the end of a larger size, for which the block has room.
/// The bytes in between are not written.
void memrt__redzone_grow(unsigned char *ptr, size_t size);

/// Return true if a live block has a damaged redzone, or another size or alignment. `text` is then
/// a sentence about the fault.
bool memrt__redzone_fault(const unsigned char *ptr, size_t size, size_t align, char *text,
                          size_t length);

/// Mark a block as freed: fill the block with MEMRT_POISON_FREED and record the current call stack.
void memrt__redzone_write_dead(unsigned char *ptr);

/// Return true if a block is marked as freed.
bool memrt__redzone_is_dead(const unsigned char *ptr);

/// Return true if a freed block, or a redzone of the block, was written to. `text` then states the
/// position.
bool memrt__redzone_dead_fault(const unsigned char *ptr, char *text, size_t length);

/// Return the size, or the alignment, from the record of a block. Returns 0 if the record is
/// damaged.
size_t memrt__redzone_size(const unsigned char *ptr);
size_t memrt__redzone_align(const unsigned char *ptr);

/// Return the `unused` of memrt__redzone_write(). The redzones of the block must be intact.
size_t memrt__redzone_unused(const unsigned char *ptr);

/// Write the call stacks of the allocation and free of a block. Each line begins with a newline.
/// The text is empty if the call stacks are unknown.
void memrt__redzone_explain(const unsigned char *ptr, char *text, size_t length);

#endif
