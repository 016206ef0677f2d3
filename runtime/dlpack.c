#include "runtime/dlpack.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/failure.h"
#include "runtime/base/size.h"
#include "runtime/device/buffer.h"
#include "runtime/exchange.h"
#include "runtime/meminfo/meminfo.h"
#include "runtime/meminfo/named.h"

#define FLAGS (DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED)

static const char no_cuda[] =
    "there is no CUDA driver, no such device, or no memory of it at the address";

/* --- Where elements lie. --- */

/// Bytes of one element; 0: it is not exchanged.
static size_t itemsize_of(DLDataType dtype)
{
    /* Every size is a power of two: the bits of a word say which of them a code has. */
    static const uint8_t sizes[] = {
        [kDLInt] = 1 | 2 | 4 | 8, [kDLUInt] = 1 | 2 | 4 | 8, [kDLFloat] = 2 | 4 | 8,
        [kDLBfloat] = 2,          [kDLComplex] = 8 | 16,     [kDLBool] = 1,
        [kDLFloat8_e3m4] = 1,     [kDLFloat8_e4m3] = 1,      [kDLFloat8_e4m3b11fnuz] = 1,
        [kDLFloat8_e4m3fn] = 1,   [kDLFloat8_e4m3fnuz] = 1,  [kDLFloat8_e5m2] = 1,
        [kDLFloat8_e5m2fnuz] = 1, [kDLFloat8_e8m0fnu] = 1,
    };
    size_t size = dtype.bits / 8u;
    bool known = dtype.code < sizeof(sizes) && dtype.lanes == 1 && dtype.bits % 8 == 0 &&
                 memrt__is_power_of_two(size) && (sizes[dtype.code] & size) != 0;
    return known ? size : 0;
}

/// Bytes that elements lie in, from the first one of the first element on.
typedef struct reach {
    size_t before;
    size_t after;
} reach_t;

/// Bytes of as many elements; an extent of 0 counts as 1, so that the others are sound, too.
static bool multiply(const memrt_dlpack_view_t *view, size_t itemsize, size_t *bytes, bool *empty)
{
    *bytes = itemsize;
    *empty = false;
    for (int32_t i = 0; i < view->ndim; i++) {
        int64_t extent = view->shape[i];
        if (extent < 0) {
            return false;
        }
        *empty |= extent == 0;
        if (extent > 0 && !memrt__size_mul(*bytes, (size_t)extent, bytes)) {
            return false;
        }
    }
    return *bytes <= PTRDIFF_MAX;
}

/// Widen by a dimension of one element at least.
static bool extend(reach_t *reach, int64_t extent, int64_t stride, size_t itemsize)
{
    size_t step = stride < 0 ? 0 - (size_t)stride : (size_t)stride;
    size_t *end = stride < 0 ? &reach->before : &reach->after;
    return memrt__size_mul((size_t)extent - 1, step, &step) &&
           memrt__size_mul(step, itemsize, &step) && memrt__size_add(*end, step, end);
}

static bool extend_by_all(reach_t *reach, const memrt_dlpack_view_t *view, size_t itemsize)
{
    size_t sum;
    for (int32_t i = 0; i < view->ndim; i++) {
        if (!extend(reach, view->shape[i], view->strides[i], itemsize)) {
            return false;
        }
    }
    return memrt__size_add(reach->before, reach->after, &sum) && sum <= PTRDIFF_MAX;
}

static memrt_status_t measure(const memrt_dlpack_view_t *view, reach_t *out, const char **why)
{
    size_t itemsize = itemsize_of(view->dtype), bytes;
    bool empty;
    if (itemsize == 0) {
        return memrt__refuse(
            MEMRT_ENOTSUP, "elements of that type, number of bits or lanes are not exchanged", why);
    }
    if (view->ndim < 0 || view->ndim > MEMRT_DLPACK_NDIM_MAX) {
        return memrt__refuse(MEMRT_EINVAL, "the number of dimensions is not one from 0 to 64", why);
    }
    if (view->ndim > 0 && view->shape == NULL) {
        return memrt__refuse(MEMRT_EINVAL, "there are dimensions and no shape", why);
    }
    if (!multiply(view, itemsize, &bytes, &empty)) {
        return memrt__refuse(MEMRT_EINVAL, "an extent is negative, or all exceed the address space",
                             why);
    }
    *out = (reach_t){0, empty ? 0 : bytes};
    if (empty || view->strides == NULL) {
        return MEMRT_OK;
    }
    out->after = itemsize;
    return extend_by_all(out, view, itemsize)
               ? MEMRT_OK
               : memrt__refuse(MEMRT_EINVAL, "the strides exceed the address space", why);
}

static bool is_empty(const reach_t *reach)
{
    return reach->after == 0;
}

/* --- Where memory is. --- */

static bool is_read_by_the_host(DLDevice device)
{
    return device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
           device.device_type == kDLROCMHost || device.device_type == kDLCUDAManaged;
}

/// Only memory of a device itself has a number, says DLPack.
static DLDevice device_of(const memrt_meminfo_t *mi)
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
    return (DLDevice){types[info.memory], info.memory == MEMRT_MEMORY_DEVICE ? info.device : 0};
}

/// What the tensor over `mi` says: what the view does, if it can be so. What the host reads may be
/// named in more than one way.
static bool name_device(const memrt_meminfo_t *mi, DLDevice asked, DLDevice *out)
{
    *out = asked;
    if (asked.device_type != 0 && !memrt__meminfo_is_device(mi)) {
        return is_read_by_the_host(asked);
    }
    *out = device_of(mi);
    return asked.device_type == 0 ||
           (asked.device_type == out->device_type && asked.device_id == out->device_id);
}

/* --- From a MemInfo to a tensor. --- */

static bool is_readonly(const memrt_meminfo_t *mi, const memrt_dlpack_view_t *view)
{
    return (view->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0 ||
           (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_READONLY) != 0;
}

static memrt_status_t measure_given(const memrt_dlpack_view_t *view, reach_t *out, const char **why)
{
    if (view->struct_size < sizeof(*view) || (view->flags & ~(uint64_t)FLAGS) != 0) {
        return memrt__refuse(MEMRT_EINVAL, "the view is not filled in as it has to be", why);
    }
    return measure(view, out, why);
}

static memrt_status_t check_view(const memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                 reach_t *reach, DLDevice *device, const char **why)
{
    size_t end;
    memrt_status_t status = measure_given(view, reach, why);
    if (status != MEMRT_OK) {
        return status;
    }
    if (view->offset < reach->before || !memrt__size_add(view->offset, reach->after, &end) ||
        end > mi->size) {
        return memrt__refuse(MEMRT_EINVAL, "an element would lie outside of the MemInfo", why);
    }
    if (!name_device(mi, view->device, device)) {
        return memrt__refuse(MEMRT_ENOTSUP, "the memory is not on the device that the view names",
                             why);
    }
    return MEMRT_OK;
}

static DLTensor tensor_over(const memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                            const reach_t *reach, DLDevice device, int64_t *numbers)
{
    DLTensor tensor = {.data = is_empty(reach) ? NULL : (char *)mi->data + view->offset,
                       .device = device,
                       .ndim = view->ndim,
                       .dtype = view->dtype};
    if (view->ndim > 0) {
        tensor.shape = memcpy(numbers, view->shape, (size_t)view->ndim * sizeof(int64_t));
        tensor.strides = numbers + view->ndim;
        memrt_dlpack_strides(view, tensor.strides);
    }
    return tensor;
}

/// Room for a tensor of `size` bytes, with its shape and strides after it. NULL: no memory.
static void *new_room(const memrt_dlpack_view_t *view, size_t size)
{
    size_t layout = 2 * (size_t)view->ndim * sizeof(int64_t);
    return memrt__failure_due() ? NULL : malloc(size + layout);
}

/// Room for a tensor that holds `mi`.
static void *start_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view, size_t size)
{
    void *room = new_room(view, size);
    if (room != NULL && !memrt__named_note(mi, MEMRT_HOLDER_EXPORT, MEMRT_DLPACK_HOLDER)) {
        free(room);
        return NULL;
    }
    if (room != NULL) {
        memrt__meminfo_acquire(mi);
    }
    return room;
}

static void end_export(void *tensor, memrt_meminfo_t *mi)
{
    memrt__named_release(mi, MEMRT_HOLDER_EXPORT, MEMRT_DLPACK_HOLDER);
    free(tensor);
}

static void delete_export(DLManagedTensorVersioned *tensor)
{
    end_export(tensor, tensor->manager_ctx);
}

static void fill(DLManagedTensorVersioned *tensor, memrt_meminfo_t *mi,
                 const memrt_dlpack_view_t *view, const reach_t *reach, DLDevice device)
{
    uint64_t readonly = is_readonly(mi, view) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
    *tensor = (DLManagedTensorVersioned){
        .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
        .manager_ctx = mi,
        .deleter = delete_export,
        .flags = view->flags | readonly,
        .dl_tensor = tensor_over(mi, view, reach, device, (int64_t *)(void *)(tensor + 1))};
}

memrt_status_t memrt__dlpack_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                    DLManagedTensorVersioned **out, const char **why)
{
    reach_t reach;
    DLDevice device;
    memrt_status_t status = check_view(mi, view, &reach, &device, why);
    if (status != MEMRT_OK) {
        return status;
    }
    DLManagedTensorVersioned *tensor = start_export(mi, view, sizeof(*tensor));
    if (tensor == NULL) {
        return MEMRT_ENOMEM;
    }
    fill(tensor, mi, view, &reach, device);
    *out = tensor;
    return MEMRT_OK;
}

static void delete_unversioned(DLManagedTensor *tensor)
{
    end_export(tensor, tensor->manager_ctx);
}

memrt_status_t memrt__dlpack_export_unversioned(memrt_meminfo_t *mi,
                                                const memrt_dlpack_view_t *view,
                                                DLManagedTensor **out, const char **why)
{
    reach_t reach;
    DLDevice device;
    memrt_status_t status = check_view(mi, view, &reach, &device, why);
    if (status != MEMRT_OK) {
        return status;
    }
    if (is_readonly(mi, view)) {
        return memrt__refuse(
            MEMRT_ENOTSUP,
            "the memory is read-only, which a tensor from before version 1.0 cannot say", why);
    }
    DLManagedTensor *tensor = start_export(mi, view, sizeof(*tensor));
    if (tensor == NULL) {
        return MEMRT_ENOMEM;
    }
    *tensor = (DLManagedTensor){
        .dl_tensor = tensor_over(mi, view, &reach, device, (int64_t *)(void *)(tensor + 1)),
        .manager_ctx = mi,
        .deleter = delete_unversioned};
    *out = tensor;
    return MEMRT_OK;
}

/// A MemInfo whose first reference has the name of an export. NULL: no memory.
static memrt_meminfo_t *new_exported(size_t size, const memrt_new_options_t *options)
{
    memrt_meminfo_t *mi;
    memrt__birth_t birth = memrt__tracking_birth(size);
    if (memrt__meminfo_unborn(size, options, birth, &mi) != MEMRT_OK) {
        return NULL;
    }
    if (!memrt__named_note(mi, MEMRT_HOLDER_EXPORT, MEMRT_DLPACK_HOLDER)) {
        memrt__block_refused(memrt__policy_here(options->policy), size);
        memrt__block_discard(mi);
        return NULL;
    }
    return memrt__block_born(mi, birth.site);
}

/// MEMRT_MEMORY_HOST: it is none of CUDA's.
static memrt_memory_t memory_on(DLDevice device)
{
    return device.device_type == kDLCUDA          ? MEMRT_MEMORY_DEVICE
           : device.device_type == kDLCUDAManaged ? MEMRT_MEMORY_MANAGED
           : device.device_type == kDLCUDAHost    ? MEMRT_MEMORY_PINNED
                                                  : MEMRT_MEMORY_HOST;
}

/// What memory of CUDA has no words for is not asked of it.
static bool is_for_cuda(const memrt_new_options_t *options)
{
    return options->alignment == 0 && !options->zeroed && options->external == NULL;
}

static memrt_cuda_options_t cuda_options(const memrt_new_options_t *options, DLDevice device)
{
    return (memrt_cuda_options_t){.struct_size = sizeof(memrt_cuda_options_t),
                                  .policy = options->policy,
                                  .memory = memory_on(device),
                                  .device = device.device_id,
                                  .readonly = options->readonly,
                                  .dtor = options->dtor,
                                  .dtor_info = options->dtor_info,
                                  .name = options->name};
}

/// As new_exported, in memory of CUDA.
static memrt_status_t new_on_device(size_t size, DLDevice device,
                                    const memrt_new_options_t *options, memrt_meminfo_t **out)
{
    memrt_cuda_options_t cuda = cuda_options(options, device);
    memrt_status_t status =
        is_for_cuda(options) ? memrt__buffer_new(size, &cuda, out) : MEMRT_EINVAL;
    if (status == MEMRT_OK && !memrt__named_note(*out, MEMRT_HOLDER_EXPORT, MEMRT_DLPACK_HOLDER)) {
        memrt__meminfo_release(*out);
        return MEMRT_ENOMEM;
    }
    return status;
}

static memrt_status_t new_memory(size_t size, DLDevice device, const memrt_new_options_t *options,
                                 memrt_meminfo_t **out, const char **why)
{
    if (memory_on(device) == MEMRT_MEMORY_HOST) {
        *out = new_exported(size, options);
        return *out != NULL ? MEMRT_OK : MEMRT_ENOMEM;
    }
    memrt_status_t status = new_on_device(size, device, options, out);
    return status == MEMRT_OK || status == MEMRT_ENOMEM ? status
                                                        : memrt__refuse(status, no_cuda, why);
}

static memrt_status_t check_new(const memrt_dlpack_view_t *view, const memrt_new_options_t *options,
                                reach_t *reach, const char **why)
{
    if (options->readonly) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    memrt_status_t status = measure_given(view, reach, why);
    if (status == MEMRT_OK && (view->strides != NULL || view->offset != 0)) {
        return memrt__refuse(MEMRT_EINVAL, "new memory has no strides and no offset of its own",
                             why);
    }
    if (status == MEMRT_OK && view->device.device_type > kDLCPU &&
        memory_on(view->device) == MEMRT_MEMORY_HOST) {
        return memrt__refuse(MEMRT_ENOTSUP, "memrt allocates no memory of that device", why);
    }
    return status;
}

memrt_status_t memrt__dlpack_new(const memrt_dlpack_view_t *view,
                                 const memrt_new_options_t *options, DLManagedTensorVersioned **out,
                                 const char **why)
{
    memrt_new_options_t room;
    memrt_meminfo_t *mi;
    reach_t reach;
    DLDevice device;
    if (memrt__meminfo_options(options, &room, &options) != MEMRT_OK) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    memrt_status_t status = check_new(view, options, &reach, why);
    if (status != MEMRT_OK) {
        return status;
    }
    DLManagedTensorVersioned *tensor = new_room(view, sizeof(*tensor));
    if (tensor == NULL) {
        return MEMRT_ENOMEM;
    }
    status = new_memory(reach.after, view->device, options, &mi, why);
    if (status != MEMRT_OK) {
        free(tensor);
        return status;
    }
    (void)name_device(mi, view->device, &device); /* it was made there */
    fill(tensor, mi, view, &reach, device);
    *out = tensor;
    return MEMRT_OK;
}

/* --- From a tensor to a MemInfo. --- */

/// What is to be adopted, and how it is given back.
typedef struct source {
    const DLTensor *tensor;
    uint64_t flags;
    bool has_strides; ///< they may not be missing
    memrt_dtor_fn dtor;
    void *dtor_info;
} source_t;

/// Without dimensions, what shape and strides point to is not looked at.
static memrt_dlpack_view_t view_of(const source_t *source)
{
    const DLTensor *tensor = source->tensor;
    return (memrt_dlpack_view_t){.struct_size = sizeof(memrt_dlpack_view_t),
                                 .dtype = tensor->dtype,
                                 .device = tensor->device,
                                 .ndim = tensor->ndim,
                                 .flags = source->flags & FLAGS,
                                 .shape = tensor->ndim > 0 ? tensor->shape : NULL,
                                 .strides = tensor->ndim > 0 ? tensor->strides : NULL};
}

/// The lowest byte of any element into `*data`.
static memrt_status_t locate(const DLTensor *tensor, const reach_t *reach, void **data,
                             const char **why)
{
    size_t first = (size_t)tensor->data, end;
    if (is_empty(reach)) {
        *data = tensor->data;
        return MEMRT_OK;
    }
    if (tensor->data == NULL) {
        return memrt__refuse(MEMRT_EINVAL, "there are elements and no data", why);
    }
    if (!memrt__size_add(first, tensor->byte_offset, &first) || first < reach->before ||
        !memrt__size_add(first, reach->after, &end)) {
        return memrt__refuse(MEMRT_EINVAL, "elements would lie outside of the address space", why);
    }
    *data = (char *)tensor->data + tensor->byte_offset - reach->before;
    return MEMRT_OK;
}

static memrt_status_t examine(const source_t *source, memrt_dlpack_view_t *view, reach_t *reach,
                              void **data, const char **why)
{
    *view = view_of(source);
    if (!is_read_by_the_host(view->device) && view->device.device_type != kDLCUDA) {
        return memrt__refuse(MEMRT_ENOTSUP, "the memory is on a device that memrt cannot use", why);
    }
    memrt_status_t status = measure(view, reach, why);
    if (status != MEMRT_OK) {
        return status;
    }
    if (view->ndim > 0 && view->strides == NULL && source->has_strides) {
        return memrt__refuse(MEMRT_EINVAL, "from DLPack 1.2 on, dimensions have to have strides",
                             why);
    }
    view->offset = reach->before;
    return locate(source->tensor, reach, data, why);
}

/// Of work on it the producer has the legacy stream wait, unless it was asked for another one.
static memrt_status_t adopt_on_device(void *data, size_t size, const memrt_new_options_t *options,
                                      memrt_meminfo_t **out, const char **why)
{
    memrt_cuda_options_t cuda = cuda_options(options, (DLDevice){kDLCUDA, 0});
    cuda.stream = MEMRT_CUDA_STREAM_LEGACY;
    if (!is_for_cuda(options)) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    memrt_status_t status = memrt__buffer_adopt((uintptr_t)data, size, &cuda, out);
    return status == MEMRT_OK || status == MEMRT_ENOMEM ? status
                                                        : memrt__refuse(status, no_cuda, why);
}

static memrt_status_t adopt_data(DLDevice device, void *data, size_t size,
                                 const memrt_new_options_t *options, memrt_meminfo_t **out,
                                 const char **why)
{
    if (device.device_type == kDLCUDA) {
        return adopt_on_device(data, size, options, out, why);
    }
    memrt_status_t status = memrt__meminfo_adopt(data, size, options, out);
    return status == MEMRT_EINVAL ? memrt__refuse(status, MEMRT__BAD_OPTIONS, why) : status;
}

static memrt_status_t adopt(const source_t *source, const memrt_new_options_t *options,
                            memrt_dlpack_view_t *out_view, memrt_meminfo_t **out, const char **why)
{
    memrt_new_options_t room;
    memrt_dlpack_view_t view;
    reach_t reach;
    void *data;
    memrt_status_t status = memrt__meminfo_options(options, &room, &options);
    if (status != MEMRT_OK || out_view->struct_size < sizeof(*out_view)) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    status = examine(source, &view, &reach, &data, why);
    if (status != MEMRT_OK) {
        return status;
    }
    room = *options;
    room.struct_size = sizeof(room);
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

static void give_back(void *data, size_t size, void *info)
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
        return memrt__refuse(MEMRT_ENOTSUP, "it is of another major version of DLPack than 1", why);
    }
    source_t source = {.tensor = &tensor->dl_tensor,
                       .flags = tensor->flags,
                       .has_strides = tensor->version.minor >= 2,
                       .dtor = give_back,
                       .dtor_info = tensor};
    return adopt(&source, options, view, out, why);
}

static void give_back_unversioned(void *data, size_t size, void *info)
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
                       .dtor = give_back_unversioned,
                       .dtor_info = tensor};
    return adopt(&source, options, view, out, why);
}
