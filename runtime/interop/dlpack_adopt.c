#include "runtime/interop/dlpack_adopt.h"

#include "runtime/base/size.h"
#include "runtime/cuda/buffer.h"
#include "runtime/interop/dlpack_device.h"
#include "runtime/interop/dlpack_view.h"
#include "runtime/interop/refusal.h"
#include "runtime/meminfo/meminfo.h"

/// A tensor to adopt, and the destructor that returns the tensor to its producer.
typedef struct source {
    const DLTensor *tensor;
    uint64_t flags;
    bool has_strides; ///< strides must not be NULL
    memrt_dtor_fn dtor;
    void *dtor_info;
} source_t;

/// Return the view of a tensor. Without dimensions, shape and strides are ignored.
static memrt_dlpack_view_t make_view(const source_t *source)
{
    const DLTensor *tensor = source->tensor;
    return (memrt_dlpack_view_t){.struct_size = sizeof(memrt_dlpack_view_t),
                                 .dtype = tensor->dtype,
                                 .device = tensor->device,
                                 .ndim = tensor->ndim,
                                 .flags = source->flags & MEMRT__DLPACK_FLAGS,
                                 .shape = tensor->ndim > 0 ? tensor->shape : NULL,
                                 .strides = tensor->ndim > 0 ? tensor->strides : NULL};
}

/// Write the address of the lowest byte of all elements to `*data`.
static memrt_status_t locate_elements(const DLTensor *tensor, const memrt__dlpack_reach_t *reach,
                                      void **data, const char **why)
{
    size_t first = (size_t)tensor->data, end;
    if (memrt__dlpack_is_empty(reach)) {
        *data = tensor->data;
        return MEMRT_OK;
    }
    if (tensor->data == NULL) {
        return memrt__refuse(MEMRT_EINVAL, "the tensor has elements but no data", why);
    }
    if (!memrt__size_add(first, tensor->byte_offset, &first) || first < reach->before ||
        !memrt__size_add(first, reach->after, &end)) {
        return memrt__refuse(MEMRT_EINVAL, "elements would lie outside of the address space", why);
    }
    MEMRT__ASSERT(end >= first);
    *data = (char *)tensor->data + tensor->byte_offset - reach->before;
    return MEMRT_OK;
}

static memrt_status_t read_tensor(const source_t *source, memrt_dlpack_view_t *view,
                                  memrt__dlpack_reach_t *reach, void **data, const char **why)
{
    *view = make_view(source);
    if (!memrt__dlpack_is_host(view->device) && view->device.device_type != kDLCUDA) {
        return memrt__refuse(MEMRT_ENOTSUP, "memrt does not support the device of the memory", why);
    }
    memrt_status_t status = memrt__dlpack_measure(view, reach, why);
    if (status != MEMRT_OK) {
        return status;
    }
    if (view->ndim > 0 && view->strides == NULL && source->has_strides) {
        return memrt__refuse(MEMRT_EINVAL, "a tensor of DLPack 1.2 or newer must have strides",
                             why);
    }
    view->offset = reach->before;
    return locate_elements(source->tensor, reach, data, why);
}

/// Adopt memory of a CUDA device. The producer orders its work on the tensor before the legacy
/// stream, unless the consumer requested another stream.
static memrt_status_t adopt_device_data(void *data, size_t size, const memrt_new_options_t *options,
                                        memrt_meminfo_t **out, const char **why)
{
    memrt_cuda_options_t cuda = memrt__dlpack_cuda_options(options, (DLDevice){kDLCUDA, 0});
    cuda.stream = MEMRT_CUDA_STREAM_LEGACY;
    if (!memrt__dlpack_fits_cuda(options)) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    memrt_status_t status = memrt__buffer_adopt((uintptr_t)data, size, &cuda, out);
    return status == MEMRT_OK || status == MEMRT_ENOMEM
               ? status
               : memrt__refuse(status, memrt__dlpack_no_device, why);
}

static memrt_status_t adopt_data(DLDevice device, void *data, size_t size,
                                 const memrt_new_options_t *options, memrt_meminfo_t **out,
                                 const char **why)
{
    if (device.device_type == kDLCUDA) {
        return adopt_device_data(data, size, options, out, why);
    }
    memrt_status_t status = memrt__meminfo_adopt(data, size, options, out);
    return status == MEMRT_EINVAL ? memrt__refuse(status, MEMRT__BAD_OPTIONS, why) : status;
}

static memrt_status_t adopt_tensor(const source_t *source, const memrt_new_options_t *options,
                                   memrt_dlpack_view_t *out_view, memrt_meminfo_t **out,
                                   const char **why)
{
    memrt_new_options_t room;
    memrt_dlpack_view_t view;
    memrt__dlpack_reach_t reach;
    void *data;
    memrt_status_t status = memrt__meminfo_options(options, &room, &options);
    if (status != MEMRT_OK || out_view->struct_size < sizeof(*out_view)) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    status = read_tensor(source, &view, &reach, &data, why);
    if (status != MEMRT_OK) {
        return status;
    }
    room = *options;
    room.struct_size = sizeof(room);
    MEMRT__ASSERT(memrt__dlpack_is_empty(&reach) || data != NULL);
    room.readonly |= (source->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    if (room.dtor == NULL) {
        room.dtor = source->dtor;
        room.dtor_info = source->dtor_info;
    }
    status = adopt_data(view.device, data, reach.before + reach.after, &room, out, why);
    if (status == MEMRT_OK) {
        *out_view = view;
    }
    return status;
}

static void delete_adopted_tensor(void *data, size_t size, void *info)
{
    DLManagedTensorVersioned *tensor = info;
    (void)data;
    (void)size;
    if (tensor->deleter != NULL) {
        tensor->deleter(tensor);
    }
}

memrt_status_t memrt__dlpack_adopt(DLManagedTensorVersioned *tensor,
                                   const memrt_new_options_t *options, memrt_dlpack_view_t *view,
                                   memrt_meminfo_t **out, const char **why)
{
    if (tensor->version.major != DLPACK_MAJOR_VERSION) {
        return memrt__refuse(MEMRT_ENOTSUP, "the major version of DLPack must be 1", why);
    }
    source_t source = {.tensor = &tensor->dl_tensor,
                       .flags = tensor->flags,
                       .has_strides = tensor->version.minor >= 2,
                       .dtor = delete_adopted_tensor,
                       .dtor_info = tensor};
    return adopt_tensor(&source, options, view, out, why);
}

static void delete_adopted_unversioned(void *data, size_t size, void *info)
{
    DLManagedTensor *tensor = info;
    (void)data;
    (void)size;
    if (tensor->deleter != NULL) {
        tensor->deleter(tensor);
    }
}

memrt_status_t memrt__dlpack_adopt_unversioned(DLManagedTensor *tensor,
                                               const memrt_new_options_t *options,
                                               memrt_dlpack_view_t *view, memrt_meminfo_t **out,
                                               const char **why)
{
    source_t source = {.tensor = &tensor->dl_tensor,
                       .flags = DLPACK_FLAG_BITMASK_READ_ONLY,
                       .dtor = delete_adopted_unversioned,
                       .dtor_info = tensor};
    return adopt_tensor(&source, options, view, out, why);
}
