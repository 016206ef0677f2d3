/// Implement `__dlpack__`: copy the elements or order the streams as the consumer requests, and
/// wrap an export in a capsule.

#include "interop/dlpack_export.h"

#include "core/current_policy.h"
#include "core/device_sync.h"
#include "core/mem_handler.h"
#include "core/owner.h"
#include "interop/cuda_buffer.h"
#include "interop/dlpack_layout.h"
#include "interop/dlpack_request.h"
#include "interop/foreign_tensor.h"
#include "support/errors.h"

/* --- The device of memory. --- */

/// Return the DLPack device of a placement. In DLPack only device memory itself has a device
/// number.
static DLDevice get_cuda_device(const memrt_cuda_info_t *info)
{
    return info->memory == MEMRT_MEMORY_DEVICE    ? (DLDevice){kDLCUDA, info->device}
           : info->memory == MEMRT_MEMORY_MANAGED ? (DLDevice){kDLCUDAManaged, 0}
                                                  : (DLDevice){kDLCUDAHost, 0};
}

DLDevice memrt__dlpack_device(const memrt_meminfo_t *mi)
{
    memrt_cuda_info_t info;
    const DLTensor *tensor = memrt__foreign_tensor_behind(mi);
    if (tensor != NULL) {
        return tensor->device;
    }
    return memrt__device_get_info(mi, &info) ? get_cuda_device(&info) : (DLDevice){kDLCPU, 0};
}

PyObject *memrt__dlpack_device_tuple(const memrt_meminfo_t *mi)
{
    DLDevice device = memrt__dlpack_device(mi);
    return Py_BuildValue("(ii)", (int)device.device_type, (int)device.device_id);
}

/* --- Exports. --- */

static const char cannot_export[] = "cannot export the memory by DLPack";

static void destroy_versioned_capsule(PyObject *capsule)
{
    /* A consumer renames the capsule when it takes the tensor. */
    if (PyCapsule_IsValid(capsule, MEMRT_DLPACK_VERSIONED)) {
        DLManagedTensorVersioned *tensor = PyCapsule_GetPointer(capsule, MEMRT_DLPACK_VERSIONED);
        tensor->deleter(tensor);
    }
}

static void destroy_unversioned_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, MEMRT_DLPACK_UNVERSIONED)) {
        DLManagedTensor *tensor = PyCapsule_GetPointer(capsule, MEMRT_DLPACK_UNVERSIONED);
        tensor->deleter(tensor);
    }
}

int memrt__dlpack_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                         DLManagedTensorVersioned **out)
{
    const char *why = NULL;
    memrt_status_t status = memrt__api()->dlpack_export(mi, view, out, &why);
    if (status != MEMRT_OK) {
        memrt__raise_refusal(status, cannot_export, why);
        return -1;
    }
    return 0;
}

static PyObject *create_versioned_capsule(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                          uint32_t minor)
{
    DLManagedTensorVersioned *tensor;
    if (memrt__dlpack_export(mi, view, &tensor) < 0) {
        return NULL;
    }
    tensor->version.minor = minor;
    PyObject *capsule = PyCapsule_New(tensor, MEMRT_DLPACK_VERSIONED, destroy_versioned_capsule);
    if (capsule == NULL) {
        tensor->deleter(tensor);
    }
    return capsule;
}

static PyObject *create_unversioned_capsule(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view)
{
    DLManagedTensor *tensor;
    const char *why = NULL;
    memrt_status_t status = memrt__api()->dlpack_export_unversioned(mi, view, &tensor, &why);
    if (status != MEMRT_OK) {
        return memrt__raise_refusal(status, cannot_export, why);
    }
    PyObject *capsule =
        PyCapsule_New(tensor, MEMRT_DLPACK_UNVERSIONED, destroy_unversioned_capsule);
    if (capsule == NULL) {
        tensor->deleter(tensor);
    }
    return capsule;
}

static PyObject *create_capsule(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                const memrt_dlpack_request_t *request)
{
    return request->versioned ? create_versioned_capsule(mi, view, request->minor)
                              : create_unversioned_capsule(mi, view);
}

static memrt_meminfo_object_t *allocate_copy(size_t size)
{
    PyObject *handler = memrt__current_handler_for(Py_None);
    if (handler == NULL) {
        return NULL;
    }
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .policy = memrt__handler_policy(handler)};
    PyObject *base = memrt__meminfo_allocate(size, &options);
    Py_DECREF(handler);
    return (memrt_meminfo_object_t *)base;
}

static int copy_elements(memrt_meminfo_object_t *from, const memrt_dlpack_view_t *from_view,
                         memrt_meminfo_object_t *to, const memrt_dlpack_view_t *to_view)
{
    PyObject *source = memrt__dlpack_layout_as_array(from, from_view);
    PyObject *copy = source != NULL ? memrt__dlpack_layout_as_array(to, to_view) : NULL;
    int result =
        copy != NULL ? PyArray_CopyInto((PyArrayObject *)copy, (PyArrayObject *)source) : -1;
    Py_XDECREF(copy);
    Py_XDECREF(source);
    return result;
}

/// Export a contiguous copy of elements that the host can read.
static PyObject *export_copied_elements(memrt_meminfo_object_t *base,
                                        const memrt_dlpack_view_t *view,
                                        const memrt_dlpack_request_t *request)
{
    memrt_dlpack_view_t compact = *view;
    compact.offset = 0;
    compact.strides = NULL;
    compact.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
    memrt_meminfo_object_t *copy = allocate_copy(memrt__dlpack_layout_nbytes(view));
    if (copy == NULL) {
        return NULL;
    }
    PyObject *capsule = copy_elements(base, view, copy, &compact) == 0
                            ? create_capsule(copy->mi, &compact, request)
                            : NULL;
    Py_DECREF(copy); /* the tensor holds the only other reference */
    return capsule;
}

static memrt_meminfo_object_t *copy_bytes_to_host(memrt_meminfo_t *mi, size_t offset, size_t size)
{
    memrt_meminfo_object_t *copy = allocate_copy(size);
    if (copy != NULL &&
        memrt__device_read_bytes(mi, offset, size, memrt__api()->get_data(copy->mi)) < 0) {
        Py_CLEAR(copy);
    }
    return copy;
}

/// Export a copy of the bytes that the elements span, including gaps between elements. CUDA makes
/// the copy.
static PyObject *export_copied_bytes(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                     const memrt_dlpack_request_t *request)
{
    memrt_dlpack_view_t moved = *view;
    size_t size = memrt__dlpack_layout_reach(view, &moved.offset);
    size_t first = view->offset - moved.offset;
    memrt_meminfo_object_t *copy = request->device.device_type == kDLCPU
                                       ? copy_bytes_to_host(mi, first, size)
                                       : memrt__cuda_buffer_copy(mi, first, size, NULL);
    if (copy == NULL) {
        return NULL;
    }
    moved.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
    PyObject *capsule = create_capsule(copy->mi, &moved, request);
    Py_DECREF(copy);
    return capsule;
}

/// Export a copy, by elements if the host can read the source, otherwise by bytes.
static PyObject *export_copy(memrt_meminfo_object_t *base, const memrt_dlpack_view_t *view,
                             const memrt_dlpack_request_t *request)
{
    return request->device.device_type == kDLCPU &&
                   memrt__dlpack_device(base->mi).device_type != kDLCUDA
               ? export_copied_elements(base, view, request)
               : export_copied_bytes(base->mi, view, request);
}

/// Order pending work on the memory before the consumer's work. Without a stream, the host waits if
/// it can read the memory; otherwise the legacy stream waits.
static int order_streams(memrt_meminfo_t *mi, const memrt_dlpack_request_t *request)
{
    memrt_cuda_info_t info;
    if (request->stream == MEMRT_DLPACK_NO_ORDER || !memrt__device_get_info(mi, &info) ||
        info.stream == MEMRT_CUDA_STREAM_NONE) {
        return 0;
    }
    if (request->stream == MEMRT_DLPACK_NO_STREAM && info.memory != MEMRT_MEMORY_DEVICE) {
        return memrt__device_wait(&info);
    }
    return memrt__device_order_stream(
        mi, request->stream == MEMRT_DLPACK_NO_STREAM ? MEMRT_CUDA_STREAM_LEGACY : request->stream);
}

PyObject *memrt__dlpack_produce(memrt_meminfo_object_t *base, const memrt_dlpack_view_t *view,
                                PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    memrt_dlpack_request_t request;
    memrt_dlpack_view_t requested = *view;
    if (memrt__dlpack_request_read(base->mi, memrt__dlpack_device(base->mi), args, count, names,
                                   &request) < 0) {
        return NULL;
    }
    memrt__owner_drain();
    requested.device = request.device;
    if (request.must_copy) {
        return export_copy(base, &requested, &request);
    }
    return order_streams(base->mi, &request) == 0 ? create_capsule(base->mi, &requested, &request)
                                                  : NULL;
}

memrt_dlpack_view_t memrt__dlpack_bytes(const memrt_meminfo_t *mi)
{
    static int64_t none;
    _Static_assert(sizeof(mi->size) == sizeof(int64_t), "the size must have the type of an extent");
    return (memrt_dlpack_view_t){
        .struct_size = sizeof(memrt_dlpack_view_t),
        .dtype = {kDLUInt, 8, 1},
        .ndim = 1,
        .shape = memrt__api()->get_data((memrt_meminfo_t *)(uintptr_t)mi) != NULL
                     ? (const int64_t *)(const void *)&mi->size
                     : &none};
}
