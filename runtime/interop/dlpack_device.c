#include "runtime/interop/dlpack_device.h"

#include "runtime/cuda/buffer.h"
#include "runtime/meminfo/meminfo.h"

const char memrt__dlpack_no_device[] =
    "the CUDA driver was not found, no device of the given number, or no "
    "device memory at the address";

bool memrt__dlpack_is_host(DLDevice device)
{
    return device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
           device.device_type == kDLROCMHost || device.device_type == kDLCUDAManaged;
}

/// Return the DLPack device of a MemInfo. DLPack defines a device number for device memory only.
static DLDevice get_device(const memrt_meminfo_t *mi)
{
    static const DLDeviceType types[] = {
        [MEMRT_MEMORY_HOST] = kDLCPU,
        [MEMRT_MEMORY_DEVICE] = kDLCUDA,
        [MEMRT_MEMORY_MANAGED] = kDLCUDAManaged,
        [MEMRT_MEMORY_PINNED] = kDLCUDAHost,
    };
    memrt_cuda_info_t info = {.struct_size = sizeof(info)};
    if (memrt__buffer_info(mi, &info) != MEMRT_OK) {
        return (DLDevice){kDLCPU, 0};
    }
    MEMRT__ASSERT(info.memory < sizeof(types) / sizeof(types[0]));
    return (DLDevice){types[info.memory], info.memory == MEMRT_MEMORY_DEVICE ? info.device : 0};
}

bool memrt__dlpack_choose_device(const memrt_meminfo_t *mi, DLDevice requested, DLDevice *out)
{
    *out = requested;
    if (requested.device_type != 0 && !memrt__meminfo_is_device(mi)) {
        return memrt__dlpack_is_host(requested);
    }
    *out = get_device(mi);
    return requested.device_type == 0 ||
           (requested.device_type == out->device_type && requested.device_id == out->device_id);
}

memrt_memory_t memrt__dlpack_memory_of(DLDevice device)
{
    return device.device_type == kDLCUDA          ? MEMRT_MEMORY_DEVICE
           : device.device_type == kDLCUDAManaged ? MEMRT_MEMORY_MANAGED
           : device.device_type == kDLCUDAHost    ? MEMRT_MEMORY_PINNED
                                                  : MEMRT_MEMORY_HOST;
}

bool memrt__dlpack_fits_cuda(const memrt_new_options_t *options)
{
    return options->alignment == 0 && options->align_offset == 0 && !options->zeroed &&
           options->external == NULL;
}

memrt_cuda_options_t memrt__dlpack_cuda_options(const memrt_new_options_t *options, DLDevice device)
{
    return (memrt_cuda_options_t){.struct_size = sizeof(memrt_cuda_options_t),
                                  .policy = options->policy,
                                  .memory = memrt__dlpack_memory_of(device),
                                  .device = device.device_id,
                                  .readonly = options->readonly,
                                  .dtor = options->dtor,
                                  .dtor_info = options->dtor_info,
                                  .name = options->name};
}
