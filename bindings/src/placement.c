#include "placement.h"

#include "cuda.h"
#include "errors.h"
#include "ndarray.h"

int memrt__placement(const memrt_meminfo_t *mi, memrt_cuda_info_t *out)
{
    *out = (memrt_cuda_info_t){.struct_size = sizeof(*out)};
    return memrt__api()->cuda_info(mi, out) == MEMRT_OK;
}

static int done(memrt_status_t status)
{
    if (status != MEMRT_OK) {
        memrt__raise_cuda(status, MEMRT_MEMORY_HOST, 0);
        return -1;
    }
    return 0;
}

int memrt__placement_settle(const memrt_cuda_info_t *info)
{
    memrt_status_t status = MEMRT_OK;
    if (info->stream != MEMRT_CUDA_STREAM_NONE) {
        Py_BEGIN_ALLOW_THREADS;
        status = memrt__api()->cuda_stream_synchronize(info->device, info->stream);
        Py_END_ALLOW_THREADS;
    }
    return done(status);
}

int memrt__placement_lead(memrt_meminfo_t *mi, uintptr_t stream)
{
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->cuda_wait(mi, stream);
    Py_END_ALLOW_THREADS;
    return done(status);
}

int memrt__placement_for_host(const memrt_meminfo_t *mi)
{
    memrt_cuda_info_t info;
    if (memrt__device_check(mi) < 0) {
        return -1;
    }
    return memrt__placement(mi, &info) ? memrt__placement_settle(&info) : 0;
}

memrt_meminfo_object_t *memrt__placement_copy(memrt_meminfo_t *mi, size_t offset, size_t size)
{
    memrt_cuda_info_t info;
    memrt_status_t status;
    (void)memrt__placement(mi, &info);
    memrt_meminfo_object_t *copy = memrt__cuda_new(info.memory, info.device, size);
    if (copy == NULL) {
        return NULL;
    }
    const char *from = (const char *)memrt__api()->get_data(mi) + offset;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->cuda_write(copy->mi, 0, from, size, info.stream);
    Py_END_ALLOW_THREADS;
    if (done(status) < 0) {
        Py_CLEAR(copy);
    }
    return copy;
}

int memrt__placement_read(memrt_meminfo_t *mi, size_t offset, size_t size, void *out)
{
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->cuda_read(mi, offset, out, size, MEMRT_CUDA_STREAM_NONE);
    Py_END_ALLOW_THREADS;
    return done(status);
}
