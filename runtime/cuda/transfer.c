#include "runtime/cuda/transfer.h"

#include "runtime/cuda/context.h"
#include "runtime/cuda/stream.h"

static memrt_status_t copy_in_context(const memrt__context_t *context,
                                      const memrt__transfer_t *transfer, uintptr_t stream,
                                      uintptr_t before)
{
    const memrt__driver_t *driver = context->driver;
    if (stream == MEMRT_CUDA_STREAM_NONE) {
        return MEMRT__CU(driver, copy, transfer->to, transfer->from, transfer->size);
    }
    memrt_status_t status = memrt__stream_follow(context, stream, before);
    if (status == MEMRT_OK) {
        status = MEMRT__CU(driver, copy_async, transfer->to, transfer->from, transfer->size,
                           memrt__stream_handle(stream));
    }
    if (status == MEMRT_OK) {
        status = MEMRT__CU(driver, stream_synchronize, memrt__stream_handle(stream));
    }
    return status;
}

memrt_status_t memrt__transfer_run(int32_t device, uintptr_t own, const memrt__transfer_t *transfer)
{
    memrt__context_t context;
    memrt_status_t status = memrt__context_enter(device, &context);
    if (status == MEMRT_OK) {
        uintptr_t stream = transfer->stream == MEMRT_CUDA_STREAM_NONE ? own : transfer->stream;
        status = copy_in_context(&context, transfer, stream, own);
        memrt__context_leave(&context);
    }
    return status;
}
