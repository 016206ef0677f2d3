#ifndef MEMRT_MEMINFO_BLOCK_RESIZE_H
#define MEMRT_MEMINFO_BLOCK_RESIZE_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/meminfo.h>
#include <memrt/status.h>

#include "runtime/meminfo/block.h"

/// Resizes of blocks. A caller claims a block, then resizes the block.

/// Claim a block for a resize: after success, no other thread holds or can acquire a reference.
/// False: other references exist.
bool memrt__block_claim(memrt_meminfo_t *mi);

/// Resize a claimed block in one attempt, and end the claim. Returns the block, which may have
/// moved. Failure: NULL when out of memory, and the block is unchanged. No failed request is
/// counted.
memrt_meminfo_t *memrt__block_resize(memrt_meminfo_t *mi, size_t size);

/// Fast path: resize a claimed block unknown to the live set and to all observers. NULL: the
/// fast path does not apply, and nothing changed.
memrt_meminfo_t *memrt__block_resize_fast(memrt_meminfo_t *mi, size_t size);

/// Grow a claimed block at its address, and keep the claim. A size that is not larger changes
/// nothing.
///
/// Failure: returns MEMRT_ENOMEM if a limit is reached or the allocator has no room after the
/// block. Nothing changed, and no failed request is counted.
memrt_status_t memrt__block_try_expand(memrt_meminfo_t *mi, size_t size) MEMRT_MUST_CHECK;

/// Return the bytes to which the data of a block grows at its address without further memory.
size_t memrt__block_usable_size(const memrt_meminfo_t *mi);

#endif
