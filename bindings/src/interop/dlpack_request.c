#include "interop/dlpack_request.h"

#include "core/device_sync.h"
#include "support/arguments.h"

static PyObject *refuse_argument(const char *what, PyObject *value)
{
    return PyErr_Format(PyExc_ValueError, "%s, got %R", what, value);
}

/// Read a tuple of two ints; values outside of int64_t are clamped.
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

static int read_version(PyObject *version, memrt_dlpack_request_t *out)
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

/// Read dl_device. The device must be the memory's own device or the CPU. The CPU reads the memory
/// directly or gets a copy.
static int read_device(PyObject *device, DLDevice memory_device, memrt_dlpack_request_t *out)
{
    int64_t pair[2];
    out->device = memory_device;
    if (device == Py_None) {
        return 0;
    }
    if (read_pair(device, "dl_device must be None or a tuple (type, id)", pair) < 0) {
        return -1;
    }
    if (pair[0] == kDLCPU && pair[1] == 0) {
        out->device = (DLDevice){kDLCPU, 0};
    } else if (pair[0] != (int64_t)memory_device.device_type ||
               pair[1] != memory_device.device_id) {
        PyErr_Format(PyExc_BufferError,
                     "dl_device must be None, (1, 0) or the device (%d, %d) of the memory, got %R",
                     (int)memory_device.device_type, (int)memory_device.device_id, device);
        return -1;
    }
    return 0;
}

/// Return whether an int is valid as a stream: -1, a handle above 2, and the special values of the
/// device. ROCm has 0; CUDA has 1 and 2, since 0 is ambiguous.
static int is_valid_stream(long long value, DLDevice device)
{
    int is_rocm = device.device_type == kDLROCMHost;
    return value > 2 || value == -1 || (is_rocm ? value == 0 : value == 1 || value == 2);
}

/// Read the stream. CPU memory has no streams.
static int read_stream(PyObject *stream, memrt_dlpack_request_t *out)
{
    int overflow = 0;
    out->stream = MEMRT_DLPACK_NO_STREAM;
    if (stream == Py_None) {
        return 0;
    }
    int is_int = PyLong_Check(stream) && !PyBool_Check(stream);
    long long value = is_int ? PyLong_AsLongLongAndOverflow(stream, &overflow) : -2;
    size_t handle = overflow > 0 ? PyLong_AsSize_t(stream) : (size_t)value;
    if (out->device.device_type == kDLCPU || overflow < 0 || PyErr_Occurred() ||
        (overflow == 0 && !is_valid_stream(value, out->device))) {
        PyErr_Clear();
        refuse_argument("stream must be None for memory of the CPU, and None, -1 or a stream of "
                        "the device for other memory",
                        stream);
        return -1;
    }
    out->stream = overflow == 0 && value == -1 ? MEMRT_DLPACK_NO_ORDER : handle;
    return 0;
}

static int refuse_copy(const char *what, DLDevice memory_device)
{
    PyErr_Format(PyExc_BufferError, what, (int)memory_device.device_type,
                 (int)memory_device.device_id);
    return -1;
}

/// Read the argument `copy`. Copies for the CPU are required for device memory, and otherwise made
/// only on request.
static int read_copy(PyObject *copy, const memrt_meminfo_t *mi, DLDevice memory_device,
                     memrt_dlpack_request_t *out)
{
    memrt_cuda_info_t info;
    if (copy != Py_None && !PyBool_Check(copy)) {
        refuse_argument("copy must be None, True or False", copy);
        return -1;
    }
    int goes_to_host = memory_device.device_type == kDLCUDA && out->device.device_type == kDLCPU;
    if (goes_to_host && copy == Py_False) {
        return refuse_copy(
            "copy must be True or None to export memory of device (%d, %d) to the CPU, got False",
            memory_device);
    }
    out->must_copy = goes_to_host || copy == Py_True;
    if (out->must_copy && out->device.device_type != kDLCPU && !memrt__device_get_info(mi, &info)) {
        return refuse_copy(
            "a copy of memory of device (%d, %d) is always on the CPU: pass dl_device=(1, 0)",
            memory_device);
    }
    return 0;
}

int memrt__dlpack_request_read(const memrt_meminfo_t *mi, DLDevice memory_device,
                               PyObject *const *args, Py_ssize_t count, PyObject *names,
                               memrt_dlpack_request_t *out)
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
    return read_version(values[MAX_VERSION], out) < 0 ||
                   read_device(values[DL_DEVICE], memory_device, out) < 0 ||
                   read_stream(values[STREAM], out) < 0 ||
                   read_copy(values[COPY], mi, memory_device, out) < 0
               ? -1
               : 0;
}
