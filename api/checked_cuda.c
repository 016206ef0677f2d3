#include "api/checked_slots.h"
#include "api/plain_table.h"
#include "api/verify_meminfo.h"
#include "api/verify_policy.h"

memrt_status_t memrt__checked_cuda_new(size_t size, const memrt_cuda_options_t *options,
                                       memrt_meminfo_t **out)
{
    memrt__verify_cuda_options("cuda_new", options);
    return memrt__plain_table.cuda_new(size, options, out);
}

memrt_status_t memrt__checked_cuda_adopt(uintptr_t address, size_t size,
                                         const memrt_cuda_options_t *options, memrt_meminfo_t **out)
{
    memrt__verify_cuda_options("cuda_adopt", options);
    return memrt__plain_table.cuda_adopt(address, size, options, out);
}

memrt_status_t memrt__checked_cuda_info(const memrt_meminfo_t *mi, memrt_cuda_info_t *out)
{
    memrt__verify_meminfo("cuda_info", mi);
    return memrt__plain_table.cuda_info(mi, out);
}

memrt_status_t memrt__checked_cuda_used(memrt_meminfo_t *mi, uintptr_t stream)
{
    memrt__verify_held_meminfo("cuda_used", mi);
    return memrt__plain_table.cuda_used(mi, stream);
}

memrt_status_t memrt__checked_cuda_wait(memrt_meminfo_t *mi, uintptr_t stream)
{
    memrt__verify_held_meminfo("cuda_wait", mi);
    return memrt__plain_table.cuda_wait(mi, stream);
}

memrt_status_t memrt__checked_cuda_read(memrt_meminfo_t *mi, size_t offset, void *out, size_t size,
                                        uintptr_t stream)
{
    memrt__verify_held_meminfo("cuda_read", mi);
    return memrt__plain_table.cuda_read(mi, offset, out, size, stream);
}

memrt_status_t memrt__checked_cuda_write(memrt_meminfo_t *mi, size_t offset, const void *data,
                                         size_t size, uintptr_t stream)
{
    memrt__verify_held_meminfo("cuda_write", mi);
    return memrt__plain_table.cuda_write(mi, offset, data, size, stream);
}
