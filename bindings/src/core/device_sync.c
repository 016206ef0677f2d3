#include "core/device_sync.h"

#include "support/errors.h"
#include "support/ndarray.h"

int memrt__device_get_info(const memrt_meminfo_t *mi, memrt_cuda_info_t *out)
{
    *out = (memrt_cuda_info_t){.struct_size = sizeof(*out)};
    return memrt__api()->cuda_info(mi, out) == MEMRT_OK;
}

static int check_status(memrt_status_t status)
{
    if (status != MEMRT_OK) {
        memrt__raise_cuda(status, MEMRT_MEMORY_HOST, 0);
        return -1;
    }
    return 0;
}

int memrt__device_wait(const memrt_cuda_info_t *info)
{
    memrt_status_t status = MEMRT_OK;
    if (info->stream != MEMRT_CUDA_STREAM_NONE) {
        Py_BEGIN_ALLOW_THREADS;
        status = memrt__api()->cuda_stream_synchronize(info->device, info->stream);
        Py_END_ALLOW_THREADS;
    }
    return check_status(status);
}

int memrt__device_order_stream(memrt_meminfo_t *mi, uintptr_t stream)
{
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->cuda_wait(mi, stream);
    Py_END_ALLOW_THREADS;
    return check_status(status);
}

int memrt__device_prepare_host(const memrt_meminfo_t *mi)
{
    memrt_cuda_info_t info;
    if (memrt__device_check(mi) < 0) {
        return -1;
    }
    return memrt__device_get_info(mi, &info) ? memrt__device_wait(&info) : 0;
}

int memrt__device_get_host_bytes(memrt_meminfo_object_t *self, memrt_bytes_t *out)
{
    static char nothing;
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    if (mi == NULL || memrt__device_prepare_host(mi) < 0) {
        return -1;
    }
    void *data = memrt__api()->get_data(mi);
    *out = (memrt_bytes_t){.data = data != NULL ? data : &nothing,
                           .size = data != NULL ? memrt__api()->size(mi) : 0,
                           .readonly = memrt__api()->readonly(mi)};
    return 0;
}

int memrt__device_read_bytes(memrt_meminfo_t *mi, size_t offset, size_t size, void *out)
{
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->cuda_read(mi, offset, out, size, MEMRT_CUDA_STREAM_NONE);
    Py_END_ALLOW_THREADS;
    return check_status(status);
}
