#ifndef MEMRT_CUDA_STREAM_H
#define MEMRT_CUDA_STREAM_H

#include "runtime/cuda/context.h"

/// Streams by handle: MEMRT_CUDA_STREAM_LEGACY, MEMRT_CUDA_STREAM_PER_THREAD, or any stream created
/// by the driver.

static inline memrt__cu_handle_t memrt__stream_handle(uintptr_t stream)
{
    return (memrt__cu_handle_t)stream;
}

/// Make work that is queued in `stream` from now on wait for work already queued in `before`. The
/// call itself does not wait. Does nothing if both streams are equal, or `before` is
/// MEMRT_CUDA_STREAM_NONE.
memrt_status_t memrt__stream_follow(const memrt__context_t *context, uintptr_t stream,
                                    uintptr_t before) MEMRT_MUST_CHECK;

/// Implement the members of memrt_api_t with the same names.
memrt_status_t memrt__stream_new(int32_t device, uintptr_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__stream_free(int32_t device, uintptr_t stream) MEMRT_MUST_CHECK;
memrt_status_t memrt__stream_synchronize(int32_t device, uintptr_t stream) MEMRT_MUST_CHECK;

#endif
