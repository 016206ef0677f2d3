#ifndef MEMRT_DEVICE_MEMORY_H
#define MEMRT_DEVICE_MEMORY_H

#include <stdbool.h>

#include <memrt/cuda.h>

#include "runtime/alloc/policy.h"
#include "runtime/device/context.h"

/// Memory of CUDA by its kind: taking it from the driver and giving it back, with what is in use
/// counted and bounded.

/// What memory is to be taken, or was.
typedef struct memrt__piece {
    memrt_memory_t memory; ///< not MEMRT_MEMORY_HOST
    size_t size;           ///< bytes, not 0
    uintptr_t stream;      ///< it is used in, and freed in the order of; 0: none
    bool ordered;          ///< it came from a pool that follows the order of streams
    void *data;            ///< its address
} memrt__piece_t;

/// Fill in `ordered` and `data`. MEMRT_ENOMEM: the driver has none, or the limit is reached.
memrt_status_t memrt__memory_take(const memrt__context_t *context,
                                  memrt__piece_t *piece) MEMRT_MUST_CHECK;

/// Give it back once the work that waits in `stream` is done. What the driver does not take back is
/// counted as lost. `context` NULL: there is no driver any more to give it to.
void memrt__memory_give(const memrt__context_t *context, const memrt__piece_t *piece);

/// The policy on whose account buffers of a memory are; MEMRT_MEMORY_HOST for those that others
/// allocated. Made at its first use and never given up. NULL: no memory, or no room for a policy.
memrt_policy_t *memrt__memory_policy(memrt_memory_t memory);

/// The functions of memrt_api_t that begin with `cuda_`.
memrt_status_t memrt__memory_stats(memrt_memory_t memory, memrt_cuda_stats_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__memory_set_limit(memrt_memory_t memory, uint64_t limit) MEMRT_MUST_CHECK;

#endif
