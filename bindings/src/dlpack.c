#include "dlpack.h"

#include "argument.h"
#include "errors.h"
#include "handler.h"
#include "intake.h"
#include "layout.h"
#include "owner.h"
#include "placement.h"

/* --- Where memory is. --- */

/// Only memory of a device itself has a number, says DLPack.
static DLDevice device_of(const memrt_cuda_info_t *info)
{
    return info->memory == MEMRT_MEMORY_DEVICE    ? (DLDevice){kDLCUDA, info->device}
           : info->memory == MEMRT_MEMORY_MANAGED ? (DLDevice){kDLCUDAManaged, 0}
                                                  : (DLDevice){kDLCUDAHost, 0};
}

DLDevice memrt__dlpack_device(const memrt_meminfo_t *mi)
{
    memrt_cuda_info_t info;
    const DLTensor *tensor = memrt__tensor_behind(mi);
    if (tensor != NULL) {
        return tensor->device;
    }
    return memrt__placement(mi, &info) ? device_of(&info) : (DLDevice){kDLCPU, 0};
}

PyObject *memrt__dlpack_device_tuple(const memrt_meminfo_t *mi)
{
    DLDevice device = memrt__dlpack_device(mi);
    return Py_BuildValue("(ii)", (int)device.device_type, (int)device.device_id);
}

/* --- What a consumer asks for. --- */

/// Arguments of `__dlpack__`.
typedef struct request {
    int versioned;
    uint32_t minor; ///< newest that the consumer knows of major version 1
    DLDevice device;
    uintptr_t stream; ///< of the consumer, or one of the two below
    int must_copy;
} request_t;

#define NO_STREAM MEMRT_CUDA_STREAM_NONE ///< it named none
#define NO_ORDER UINTPTR_MAX             ///< it sees to the order itself

static PyObject *refuse_argument(const char *what, PyObject *value)
{
    return PyErr_Format(PyExc_ValueError, "%s, got %R", what, value);
}

/// A pair of ints; larger ones than an int64_t are brought down to it.
static int read_pair(PyObject *pair, const char *what, int64_t *out)
{
    int is_pair = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2;
    for (int i = 0; i < 2; i++) {
        int overflow;
        if (!is_pair || !PyLong_Check(PyTuple_GET_ITEM(pair, i))) {
            refuse_argument(what, pair);
            return -1;
        }
        out[i] = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(pair, i), &overflow);
        out[i] = overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : out[i];
    }
    return 0;
}

static int read_version(PyObject *version, request_t *out)
{
    int64_t pair[2] = {0, 0};
    if (version != Py_None &&
        read_pair(version, "max_version must be None or a tuple (major, minor)", pair) < 0) {
        return -1;
    }
    out->versioned = pair[0] >= DLPACK_MAJOR_VERSION;
    out->minor = DLPACK_MINOR_VERSION;
    if (pair[0] == DLPACK_MAJOR_VERSION && pair[1] < DLPACK_MINOR_VERSION) {
        out->minor = pair[1] < 0 ? 0 : (uint32_t)pair[1];
    }
    return 0;
}

/// That of the memory, or the CPU, which can read it or gets a copy.
static int read_device(PyObject *device, DLDevice own, request_t *out)
{
    int64_t pair[2];
    out->device = own;
    if (device == Py_None) {
        return 0;
    }
    if (read_pair(device, "dl_device must be None or a tuple (type, id)", pair) < 0) {
        return -1;
    }
    if (pair[0] == kDLCPU && pair[1] == 0) {
        out->device = (DLDevice){kDLCPU, 0};
    } else if (pair[0] != (int64_t)own.device_type || pair[1] != own.device_id) {
        PyErr_Format(PyExc_BufferError,
                     "memory of device (%d, %d) cannot be exported as that of device %R",
                     (int)own.device_type, (int)own.device_id, device);
        return -1;
    }
    return 0;
}

/// Whether a number that is no handle stands for a stream. 0 may mean either in CUDA's.
static int is_stream(long long value, DLDevice device)
{
    int is_rocm = device.device_type == kDLROCMHost;
    return value > 2 || value == -1 || (is_rocm ? value == 0 : value == 1 || value == 2);
}

/// Of the memory of the CPU there are no streams.
static int read_stream(PyObject *stream, request_t *out)
{
    int overflow = 0;
    out->stream = NO_STREAM;
    if (stream == Py_None) {
        return 0;
    }
    int is_int = PyLong_Check(stream) && !PyBool_Check(stream);
    long long value = is_int ? PyLong_AsLongLongAndOverflow(stream, &overflow) : -2;
    size_t handle = overflow > 0 ? PyLong_AsSize_t(stream) : (size_t)value;
    if (out->device.device_type == kDLCPU || overflow < 0 || PyErr_Occurred() ||
        (overflow == 0 && !is_stream(value, out->device))) {
        PyErr_Clear();
        refuse_argument("stream must be None for memory of the CPU, for other memory None, -1 or a "
                        "stream of its device",
                        stream);
        return -1;
    }
    out->stream = overflow == 0 && value == -1 ? NO_ORDER : handle;
    return 0;
}

static int refuse_copy(const char *what, DLDevice own)
{
    PyErr_Format(PyExc_BufferError, what, (int)own.device_type, (int)own.device_id);
    return -1;
}

static int read_copy(PyObject *copy, const memrt_meminfo_t *mi, DLDevice own, request_t *out)
{
    memrt_cuda_info_t info;
    if (copy != Py_None && !PyBool_Check(copy)) {
        refuse_argument("copy must be None, True or False", copy);
        return -1;
    }
    int goes_to_host = own.device_type == kDLCUDA && out->device.device_type == kDLCPU;
    if (goes_to_host && copy == Py_False) {
        return refuse_copy("memory of device (%d, %d) has to be copied for the CPU", own);
    }
    out->must_copy = goes_to_host || copy == Py_True;
    if (out->must_copy && out->device.device_type != kDLCPU && !memrt__placement(mi, &info)) {
        return refuse_copy("a copy of memory of device (%d, %d) is one of the CPU: ask with "
                           "dl_device=(1, 0)",
                           own);
    }
    return 0;
}

static int read_request(const memrt_meminfo_t *mi, PyObject *const *args, Py_ssize_t count,
                        PyObject *names, request_t *out)
{
    static const char *const keywords[] = {"stream", "max_version", "dl_device", "copy"};
    static memrt_signature_t signature = {
        .function = "__dlpack__", .keywords = keywords, .total = 4};
    enum { STREAM, MAX_VERSION, DL_DEVICE, COPY, TOTAL };
    PyObject *values[TOTAL];
    if (memrt__arguments(&signature, args, count, names, values) < 0) {
        return -1;
    }
    for (int i = 0; i < TOTAL; i++) {
        values[i] = values[i] != NULL ? values[i] : Py_None;
    }
    DLDevice own = memrt__dlpack_device(mi);
    return read_version(values[MAX_VERSION], out) < 0 ||
                   read_device(values[DL_DEVICE], own, out) < 0 ||
                   read_stream(values[STREAM], out) < 0 || read_copy(values[COPY], mi, own, out) < 0
               ? -1
               : 0;
}

/* --- Exports. --- */

static const char cannot_export[] = "cannot export the memory by DLPack";

static void destroy_versioned(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, MEMRT_DLPACK_VERSIONED)) { /* else a consumer has it */
        DLManagedTensorVersioned *tensor = PyCapsule_GetPointer(capsule, MEMRT_DLPACK_VERSIONED);
        tensor->deleter(tensor);
    }
}

static void destroy_unversioned(PyObject *capsule)
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

static PyObject *versioned_capsule(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                   uint32_t minor)
{
    DLManagedTensorVersioned *tensor;
    if (memrt__dlpack_export(mi, view, &tensor) < 0) {
        return NULL;
    }
    tensor->version.minor = minor;
    PyObject *capsule = PyCapsule_New(tensor, MEMRT_DLPACK_VERSIONED, destroy_versioned);
    if (capsule == NULL) {
        tensor->deleter(tensor);
    }
    return capsule;
}

static PyObject *unversioned_capsule(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view)
{
    DLManagedTensor *tensor;
    const char *why = NULL;
    memrt_status_t status = memrt__api()->dlpack_export_unversioned(mi, view, &tensor, &why);
    if (status != MEMRT_OK) {
        return memrt__raise_refusal(status, cannot_export, why);
    }
    PyObject *capsule = PyCapsule_New(tensor, MEMRT_DLPACK_UNVERSIONED, destroy_unversioned);
    if (capsule == NULL) {
        tensor->deleter(tensor);
    }
    return capsule;
}

static PyObject *capsule_over(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                              const request_t *request)
{
    return request->versioned ? versioned_capsule(mi, view, request->minor)
                              : unversioned_capsule(mi, view);
}

/// New memory for a copy, from the policy in force.
static memrt_meminfo_object_t *allocate(size_t size)
{
    PyObject *handler = memrt__handler_for(Py_None);
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
    PyObject *source = memrt__layout_as_array(from, from_view);
    PyObject *copy = source != NULL ? memrt__layout_as_array(to, to_view) : NULL;
    int result =
        copy != NULL ? PyArray_CopyInto((PyArrayObject *)copy, (PyArrayObject *)source) : -1;
    Py_XDECREF(copy);
    Py_XDECREF(source);
    return result;
}

/// Elements that the host can read, next to each other.
static PyObject *capsule_of_elements(memrt_meminfo_object_t *base, const memrt_dlpack_view_t *view,
                                     const request_t *request)
{
    memrt_dlpack_view_t compact = *view;
    compact.offset = 0;
    compact.strides = NULL;
    compact.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
    memrt_meminfo_object_t *copy = allocate(memrt__layout_nbytes(view));
    if (copy == NULL) {
        return NULL;
    }
    PyObject *capsule = copy_elements(base, view, copy, &compact) == 0
                            ? capsule_over(copy->mi, &compact, request)
                            : NULL;
    Py_DECREF(copy); /* the tensor has the memory to itself */
    return capsule;
}

static memrt_meminfo_object_t *copy_to_host(memrt_meminfo_t *mi, size_t offset, size_t size)
{
    memrt_meminfo_object_t *copy = allocate(size);
    if (copy != NULL &&
        memrt__placement_read(mi, offset, size, memrt__api()->get_data(copy->mi)) < 0) {
        Py_CLEAR(copy);
    }
    return copy;
}

/// Elements as CUDA copies them, with what lies between them.
static PyObject *capsule_of_bytes(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                  const request_t *request)
{
    memrt_dlpack_view_t moved = *view;
    size_t size = memrt__layout_reach(view, &moved.offset);
    size_t first = view->offset - moved.offset;
    memrt_meminfo_object_t *copy = request->device.device_type == kDLCPU
                                       ? copy_to_host(mi, first, size)
                                       : memrt__placement_copy(mi, first, size);
    if (copy == NULL) {
        return NULL;
    }
    moved.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
    PyObject *capsule = capsule_over(copy->mi, &moved, request);
    Py_DECREF(copy);
    return capsule;
}

static PyObject *capsule_of_copy(memrt_meminfo_object_t *base, const memrt_dlpack_view_t *view,
                                 const request_t *request)
{
    return request->device.device_type == kDLCPU &&
                   memrt__dlpack_device(base->mi).device_type != kDLCUDA
               ? capsule_of_elements(base, view, request)
               : capsule_of_bytes(base->mi, view, request);
}

/// Have work on the memory come before the consumer's. Who names no stream waits in the legacy one,
/// or may be the host, where that can read the memory.
static int order(memrt_meminfo_t *mi, const request_t *request)
{
    memrt_cuda_info_t info;
    if (request->stream == NO_ORDER || !memrt__placement(mi, &info) ||
        info.stream == MEMRT_CUDA_STREAM_NONE) {
        return 0;
    }
    if (request->stream == NO_STREAM && info.memory != MEMRT_MEMORY_DEVICE) {
        return memrt__placement_settle(&info);
    }
    return memrt__placement_lead(mi, request->stream == NO_STREAM ? MEMRT_CUDA_STREAM_LEGACY
                                                                  : request->stream);
}

PyObject *memrt__dlpack_produce(memrt_meminfo_object_t *base, const memrt_dlpack_view_t *view,
                                PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    request_t request;
    memrt_dlpack_view_t asked = *view;
    if (read_request(base->mi, args, count, names, &request) < 0) {
        return NULL;
    }
    memrt__owner_drain();
    asked.device = request.device;
    if (request.must_copy) {
        return capsule_of_copy(base, &asked, &request);
    }
    return order(base->mi, &request) == 0 ? capsule_over(base->mi, &asked, &request) : NULL;
}

memrt_dlpack_view_t memrt__dlpack_bytes(const memrt_meminfo_t *mi)
{
    static int64_t none;
    _Static_assert(sizeof(mi->size) == sizeof(int64_t), "the size is an extent");
    return (memrt_dlpack_view_t){
        .struct_size = sizeof(memrt_dlpack_view_t),
        .dtype = {kDLUInt, 8, 1},
        .ndim = 1,
        .shape = memrt__api()->get_data((memrt_meminfo_t *)(uintptr_t)mi) != NULL
                     ? (const int64_t *)(const void *)&mi->size
                     : &none};
}
