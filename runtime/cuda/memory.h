#ifndef MEMRT_CUDA_MEMORY_H
#define MEMRT_CUDA_MEMORY_H

#include <stdbool.h>

#include <memrt/cuda.h>

#include "runtime/cuda/context.h"
#include "runtime/policy/policy.h"

/// CUDA memory by kind: allocate from the driver and free to the driver, with statistics and a
/// limit.

/// A request for CUDA memory, and the memory that answers the request.
typedef struct memrt__piece {
    memrt_memory_t memory; ///< not MEMRT_MEMORY_HOST
    size_t size;           ///< bytes, not 0
    uintptr_t stream;      ///< stream of use, in whose order the memory is freed; 0: none
    bool ordered;          ///< allocated from a pool in the order of the stream
    void *data;            ///< address of the memory
} memrt__piece_t;

/// Allocate memory: fill in `ordered` and `data`. Returns MEMRT_ENOMEM when the driver has no
/// memory or the limit is reached, and MEMRT_EDEVICE for any other error of the driver.
memrt_status_t memrt__memory_take(const memrt__context_t *context,
                                  memrt__piece_t *piece) MEMRT_MUST_CHECK;

/// Free the memory after the work queued in `stream`. If the driver fails to free the memory, the
/// statistics count the memory as lost. `context` is NULL when the driver is gone.
void memrt__memory_give(const memrt__context_t *context, const memrt__piece_t *piece);

/// Free the cached pinned memory by calls of the driver. Returns the bytes.
size_t memrt__memory_release_unused(void);

/// Return the policy that accounts for buffers of a kind of memory. MEMRT_MEMORY_HOST stands for
/// adopted buffers, which foreign code allocated. The policy is created at the first use and kept
/// for good. Returns NULL without memory, or without room for another policy.
memrt_policy_t *memrt__memory_policy(memrt_memory_t memory);

/// Implement memrt_api_t.cuda_stats and memrt_api_t.cuda_set_limit.
memrt_status_t memrt__memory_stats(memrt_memory_t memory, memrt_cuda_stats_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__memory_set_limit(memrt_memory_t memory, uint64_t limit) MEMRT_MUST_CHECK;

#endif
