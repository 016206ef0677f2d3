#ifndef MEMRT_DEVICE_STREAM_H
#define MEMRT_DEVICE_STREAM_H

#include "runtime/device/context.h"

/// Streams by their handles: MEMRT_CUDA_STREAM_LEGACY, MEMRT_CUDA_STREAM_PER_THREAD, or one that
/// the driver gave to anybody.

static inline memrt__cu_handle_t memrt__stream_handle(uintptr_t stream)
{
    return (memrt__cu_handle_t)stream;
}

/// Have all that is put into `stream` from now on wait for all that is in `before` by now; nobody
/// waits here. Nothing where both are the same, or `before` is none.
memrt_status_t memrt__stream_follow(const memrt__context_t *context, uintptr_t stream,
                                    uintptr_t before) MEMRT_MUST_CHECK;

/// The functions of memrt_api_t of the same names.
memrt_status_t memrt__stream_new(int32_t device, uintptr_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__stream_free(int32_t device, uintptr_t stream) MEMRT_MUST_CHECK;
memrt_status_t memrt__stream_synchronize(int32_t device, uintptr_t stream) MEMRT_MUST_CHECK;

#endif
