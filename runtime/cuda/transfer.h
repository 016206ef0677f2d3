#ifndef MEMRT_CUDA_TRANSFER_H
#define MEMRT_CUDA_TRANSFER_H

#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#include "runtime/cuda/driver.h"

/// Transfers: copies between host and device memory that are complete when the call returns.

typedef struct memrt__transfer {
    memrt__cu_ptr_t to, from;
    size_t size;
    uintptr_t stream; ///< 0: the stream of the buffer
} memrt__transfer_t;

/// Copy in the primary context of `device`, after the work queued in `own`, the stream of the
/// buffer.
memrt_status_t memrt__transfer_run(int32_t device, uintptr_t own,
                                   const memrt__transfer_t *transfer) MEMRT_MUST_CHECK;

#endif
