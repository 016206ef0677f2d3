#include "runtime/cuda/stream.h"

/* Each function enters the context of a device for its driver calls, and leaves the context before
   it returns, or runs in the context that the caller entered. */

/// Order two streams by an event. The event may be destroyed at once: the driver keeps the state
/// until the wait is over.
memrt_status_t memrt__stream_follow(const memrt__context_t *context, uintptr_t stream,
                                    uintptr_t before)
{
    const memrt__driver_t *driver = context->driver;
    memrt__cu_handle_t event = NULL;
    if (stream == before || before == MEMRT_CUDA_STREAM_NONE) {
        return MEMRT_OK;
    }
    memrt_status_t status = MEMRT__CU(driver, event_create, &event, MEMRT__CU_EVENT_DISABLE_TIMING);
    if (status != MEMRT_OK) {
        return status;
    }
    status = MEMRT__CU(driver, event_record, event, memrt__stream_handle(before));
    if (status == MEMRT_OK) {
        status = MEMRT__CU(driver, stream_wait_event, memrt__stream_handle(stream), event, 0);
    }
    (void)driver->event_destroy(event);
    return status;
}

memrt_status_t memrt__stream_new(int32_t device, uintptr_t *out)
{
    memrt__context_t context;
    memrt__cu_handle_t stream = NULL;
    memrt_status_t status = memrt__context_enter(device, &context);
    if (status != MEMRT_OK) {
        return status;
    }
    status = MEMRT__CU(context.driver, stream_create, &stream, MEMRT__CU_STREAM_NON_BLOCKING);
    if (status == MEMRT_OK) {
        *out = (uintptr_t)stream;
    }
    memrt__context_leave(&context);
    return status;
}

memrt_status_t memrt__stream_free(int32_t device, uintptr_t stream)
{
    memrt__context_t context;
    if (stream <= MEMRT_CUDA_STREAM_PER_THREAD) {
        return MEMRT_EINVAL;
    }
    memrt_status_t status = memrt__context_enter(device, &context);
    if (status != MEMRT_OK) {
        return status;
    }
    status = MEMRT__CU(context.driver, stream_destroy, memrt__stream_handle(stream));
    memrt__context_leave(&context);
    return status;
}

memrt_status_t memrt__stream_synchronize(int32_t device, uintptr_t stream)
{
    memrt__context_t context;
    if (stream == MEMRT_CUDA_STREAM_NONE) {
        return MEMRT_EINVAL;
    }
    memrt_status_t status = memrt__context_enter(device, &context);
    if (status != MEMRT_OK) {
        return status;
    }
    status = MEMRT__CU(context.driver, stream_synchronize, memrt__stream_handle(stream));
    memrt__context_leave(&context);
    return status;
}
