#include "runtime/interop/dlpack_export.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/cuda/buffer.h"
#include "runtime/event/guard_sampling.h"
#include "runtime/interop/dlpack_device.h"
#include "runtime/interop/dlpack_view.h"
#include "runtime/interop/refusal.h"
#include "runtime/meminfo/meminfo.h"
#include "runtime/meminfo/named.h"
#include "runtime/meminfo/references.h"

static bool is_readonly(const memrt_meminfo_t *mi, const memrt_dlpack_view_t *view)
{
    return (view->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0 ||
           (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_READONLY) != 0;
}

static memrt_status_t measure_given_view(const memrt_dlpack_view_t *view,
                                         memrt__dlpack_reach_t *out, const char **why)
{
    if (view->struct_size < sizeof(*view) || (view->flags & ~(uint64_t)MEMRT__DLPACK_FLAGS) != 0) {
        return memrt__refuse(MEMRT_EINVAL, "the view has a wrong struct_size or unknown flags",
                             why);
    }
    return memrt__dlpack_measure(view, out, why);
}

static memrt_status_t check_view(const memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                 memrt__dlpack_reach_t *reach, DLDevice *device, const char **why)
{
    size_t end;
    memrt_status_t status = measure_given_view(view, reach, why);
    if (status != MEMRT_OK) {
        return status;
    }
    if (view->offset < reach->before || !memrt__size_add(view->offset, reach->after, &end) ||
        end > mi->size) {
        return memrt__refuse(MEMRT_EINVAL, "an element would lie outside of the MemInfo", why);
    }
    if (!memrt__dlpack_choose_device(mi, view->device, device)) {
        return memrt__refuse(MEMRT_ENOTSUP, "the memory is not on the device of the view", why);
    }
    return MEMRT_OK;
}

static DLTensor make_tensor(const memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                            const memrt__dlpack_reach_t *reach, DLDevice device, int64_t *numbers)
{
    DLTensor tensor = {.data =
                           memrt__dlpack_is_empty(reach) ? NULL : (char *)mi->data + view->offset,
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

/// Allocate a tensor of `size` bytes, with room for shape and strides behind. Returns NULL without
/// memory.
static void *alloc_tensor(const memrt_dlpack_view_t *view, size_t size)
{
    MEMRT__ASSERT(view->ndim >= 0);
    size_t layout = 2 * (size_t)view->ndim * sizeof(int64_t);
    return memrt__fault_is_due() ? NULL : malloc(size + layout);
}

/// Allocate a tensor, and acquire a named reference to `mi` for the export. Returns NULL without
/// memory.
static void *start_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view, size_t size)
{
    void *room = alloc_tensor(view, size);
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

static void delete_versioned_export(DLManagedTensorVersioned *tensor)
{
    end_export(tensor, tensor->manager_ctx);
}

static void fill_tensor(DLManagedTensorVersioned *tensor, memrt_meminfo_t *mi,
                        const memrt_dlpack_view_t *view, const memrt__dlpack_reach_t *reach,
                        DLDevice device)
{
    MEMRT__ASSERT(memrt__meminfo_refcount(mi) != 0 && view->ndim >= 0);
    uint64_t readonly = is_readonly(mi, view) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
    *tensor = (DLManagedTensorVersioned){
        .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
        .manager_ctx = mi,
        .deleter = delete_versioned_export,
        .flags = view->flags | readonly,
        .dl_tensor = make_tensor(mi, view, reach, device, (int64_t *)(void *)(tensor + 1))};
}

memrt_status_t memrt__dlpack_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                    DLManagedTensorVersioned **out, const char **why)
{
    memrt__dlpack_reach_t reach;
    DLDevice device;
    memrt_status_t status = check_view(mi, view, &reach, &device, why);
    if (status != MEMRT_OK) {
        return status;
    }
    DLManagedTensorVersioned *tensor = start_export(mi, view, sizeof(*tensor));
    if (tensor == NULL) {
        return MEMRT_ENOMEM;
    }
    fill_tensor(tensor, mi, view, &reach, device);
    MEMRT__ASSERT(tensor->manager_ctx == mi && tensor->deleter != NULL);
    *out = tensor;
    return MEMRT_OK;
}

static void delete_unversioned_export(DLManagedTensor *tensor)
{
    end_export(tensor, tensor->manager_ctx);
}

memrt_status_t memrt__dlpack_export_unversioned(memrt_meminfo_t *mi,
                                                const memrt_dlpack_view_t *view,
                                                DLManagedTensor **out, const char **why)
{
    memrt__dlpack_reach_t reach;
    DLDevice device;
    memrt_status_t status = check_view(mi, view, &reach, &device, why);
    if (status != MEMRT_OK) {
        return status;
    }
    if (is_readonly(mi, view)) {
        return memrt__refuse(
            MEMRT_ENOTSUP,
            "the memory is read-only, and a tensor before DLPack 1.0 has no read-only flag", why);
    }
    DLManagedTensor *tensor = start_export(mi, view, sizeof(*tensor));
    if (tensor == NULL) {
        return MEMRT_ENOMEM;
    }
    *tensor = (DLManagedTensor){
        .dl_tensor = make_tensor(mi, view, &reach, device, (int64_t *)(void *)(tensor + 1)),
        .manager_ctx = mi,
        .deleter = delete_unversioned_export};
    *out = tensor;
    return MEMRT_OK;
}

/// Create a MemInfo whose first reference has the name of an export. Returns NULL without memory.
static memrt_meminfo_t *create_exported_meminfo(size_t size, const memrt_new_options_t *options)
{
    memrt_meminfo_t *mi;
    memrt__alloc_event_t event = memrt__tracking_alloc(size);
    event.guarded =
        memrt__guard_is_on() && memrt__guard_pick(memrt__home_policy(options->policy), size);
    if (memrt__meminfo_prepare(size, options, event, &mi) != MEMRT_OK) {
        return NULL;
    }
    if (!memrt__named_note(mi, MEMRT_HOLDER_EXPORT, MEMRT_DLPACK_HOLDER)) {
        memrt__block_refused(memrt__home_policy(options->policy), size);
        memrt__block_discard(mi);
        return NULL;
    }
    return memrt__block_notify_alloc(mi, event.site);
}

/// Create a MemInfo in CUDA memory, with a first reference as in create_exported_meminfo().
static memrt_status_t create_device_meminfo(size_t size, DLDevice device,
                                            const memrt_new_options_t *options,
                                            memrt_meminfo_t **out)
{
    memrt_cuda_options_t cuda = memrt__dlpack_cuda_options(options, device);
    memrt_status_t status =
        memrt__dlpack_fits_cuda(options) ? memrt__buffer_new(size, &cuda, out) : MEMRT_EINVAL;
    if (status == MEMRT_OK && !memrt__named_note(*out, MEMRT_HOLDER_EXPORT, MEMRT_DLPACK_HOLDER)) {
        memrt__meminfo_release(*out);
        return MEMRT_ENOMEM;
    }
    return status;
}

static memrt_status_t create_meminfo(size_t size, DLDevice device,
                                     const memrt_new_options_t *options, memrt_meminfo_t **out,
                                     const char **why)
{
    if (memrt__dlpack_memory_of(device) == MEMRT_MEMORY_HOST) {
        *out = create_exported_meminfo(size, options);
        return *out != NULL ? MEMRT_OK : MEMRT_ENOMEM;
    }
    memrt_status_t status = create_device_meminfo(size, device, options, out);
    return status == MEMRT_OK || status == MEMRT_ENOMEM
               ? status
               : memrt__refuse(status, memrt__dlpack_no_device, why);
}

static memrt_status_t check_new_view(const memrt_dlpack_view_t *view,
                                     const memrt_new_options_t *options,
                                     memrt__dlpack_reach_t *reach, const char **why)
{
    if (options->readonly) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    memrt_status_t status = measure_given_view(view, reach, why);
    if (status == MEMRT_OK && (view->strides != NULL || view->offset != 0)) {
        return memrt__refuse(MEMRT_EINVAL, "strides must be NULL and the offset 0 for new memory",
                             why);
    }
    if (status == MEMRT_OK && view->device.device_type > kDLCPU &&
        memrt__dlpack_memory_of(view->device) == MEMRT_MEMORY_HOST) {
        return memrt__refuse(MEMRT_ENOTSUP, "memrt does not allocate on the given type of device",
                             why);
    }
    return status;
}

memrt_status_t memrt__dlpack_new(const memrt_dlpack_view_t *view,
                                 const memrt_new_options_t *options, DLManagedTensorVersioned **out,
                                 const char **why)
{
    memrt_new_options_t room;
    memrt_meminfo_t *mi;
    memrt__dlpack_reach_t reach;
    DLDevice device;
    if (memrt__meminfo_options(options, &room, &options) != MEMRT_OK) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    memrt_status_t status = check_new_view(view, options, &reach, why);
    if (status != MEMRT_OK) {
        return status;
    }
    DLManagedTensorVersioned *tensor = alloc_tensor(view, sizeof(*tensor));
    if (tensor == NULL) {
        return MEMRT_ENOMEM;
    }
    status = create_meminfo(reach.after, view->device, options, &mi, why);
    if (status != MEMRT_OK) {
        free(tensor);
        return status;
    }
    (void)memrt__dlpack_choose_device(mi, view->device,
                                      &device); /* cannot fail: the memory was created there */
    fill_tensor(tensor, mi, view, &reach, device);
    *out = tensor;
    return MEMRT_OK;
}
