#ifndef MEMRT_ALLOC_RESERVED_H
#define MEMRT_ALLOC_RESERVED_H

#include <memrt/allocator.h>

/// Allocator whose blocks grow without a move: each block lies in a mapping of its own, with
/// reserved addresses after the block. Only the pages of the block are accessible.
///
/// Huge pages follow the mode of the process, not the mode of a policy.

/// Bytes at the start of a mapping for the sizes of the mapping. The block starts at the first
/// aligned address behind these bytes.
#define MEMRT__RESERVED_RECORD ((size_t)64)

/// Return the table of the allocator. Each block reserves at least `reserve` bytes, the block
/// included. `realloc` moves a block only beyond its reserve. `reserve` has no effect on existing
/// blocks.
memrt_allocator_t memrt__reserved_allocator(size_t reserve);

#endif
