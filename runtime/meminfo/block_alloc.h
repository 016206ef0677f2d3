#ifndef MEMRT_MEMINFO_BLOCK_ALLOC_H
#define MEMRT_MEMINFO_BLOCK_ALLOC_H

#include <stddef.h>

#include "runtime/policy/policy.h"

/// Allocate blocks and tiny blocks, and return their data: the slots block_alloc and block_calloc
/// of memrt_api_t, and the allocations of a resize.

void *memrt__block_alloc(void *policy, size_t size);
void *memrt__block_calloc(void *policy, size_t count, size_t size);

/// Return the largest size of a block with the memory of a request for `size` bytes: the slot
/// block_good_size.
size_t memrt__block_good_size(const memrt_policy_t *policy, size_t size);

/// Allocate from exactly `policy`, ignoring the calling thread's scope. A resize uses this
/// function, so that the new block stays in the scope of the old block. One attempt, without
/// reclaim and without a failure event.
void *memrt__block_alloc_from(memrt_policy_t *policy, size_t size);

/// Allocate like memrt__block_alloc_from(), for a block that replaces the block of a resize. The
/// new block is not sampled and not listed. The caller undoes the count of the allocation.
void *memrt__block_alloc_moved(memrt_policy_t *policy, size_t size);

#endif
