/// Wrap the `cuda_` functions of the table for memrt.cuda. Calls that may block in the driver
/// release the GIL.

#include "interop/cuda.h"

#include "core/device_sync.h"
#include "core/meminfo_object.h"
#include "interop/cuda_buffer.h"
#include "support/arguments.h"
#include "support/errors.h"
#include "support/free_threading.h"

static PyObject *decode_text_or_none(const char *text, size_t length)
{
    return length == 0 ? Py_NewRef(Py_None)
                       : PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *get_cuda_refusal(PyObject *module, PyObject *unused)
{
    char text[MEMRT__WHY_MAX];
    size_t length;
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    length = memrt__api()->cuda_why_not(text, sizeof(text));
    Py_END_ALLOW_THREADS;
    return decode_text_or_none(text, length);
}

/// Return the value of the option MEMRT_CUDA_SYNC. The row of the option is looked up once, since
/// rows never move.
static PyObject *get_cuda_sync(PyObject *module, PyObject *unused)
{
    static size_t known_row;
    size_t row = MEMRT_SHARED_READ(known_row);
    memrt_option_t option = {.name = ""};
    (void)module;
    (void)unused;
    /* GCOV_EXCL_BR_START: every libmemrt has this option */
    while (memrt__api()->option(row, &option) && strcmp(option.name, "MEMRT_CUDA_SYNC") != 0) {
        /* GCOV_EXCL_BR_STOP */
        row++;
    }
    MEMRT_SHARED_WRITE(known_row, row);
    return PyBool_FromLong(option.value[0] != '0');
}

/// Return the MemInfo of an argument, borrowed; NULL with an exception.
static memrt_meminfo_t *read_meminfo_argument(PyObject *object)
{
    if (!memrt__meminfo_check(object)) {
        PyErr_Format(PyExc_TypeError, "expected a memrt.MemInfo, got %.200s",
                     Py_TYPE(object)->tp_name);
        return NULL;
    }
    return memrt__meminfo_get((memrt_meminfo_object_t *)object);
}

static PyObject *get_cuda_info(PyObject *module, PyObject *object)
{
    memrt_cuda_info_t info = {.struct_size = sizeof(info)};
    memrt_meminfo_t *mi = read_meminfo_argument(object);
    (void)module;
    if (mi == NULL) {
        return NULL;
    }
    if (memrt__api()->cuda_info(mi, &info) != MEMRT_OK) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(IiKN)", (unsigned)info.memory, (int)info.device,
                         (unsigned long long)info.stream, PyBool_FromLong(info.adopted));
}

static PyObject *convert_status(memrt_status_t status, size_t size)
{
    return status == MEMRT_OK ? Py_NewRef(Py_None)
                              : memrt__raise_cuda(status, MEMRT_MEMORY_HOST, size);
}

typedef memrt_status_t (*buffer_fn)(memrt_meminfo_t *mi, uintptr_t stream);

static PyObject *call_buffer_function(PyObject *args, const char *format, buffer_fn function)
{
    PyObject *object;
    uintptr_t stream;
    memrt_status_t status;
    if (!PyArg_ParseTuple(args, format, &object, memrt__address_argument, &stream)) {
        return NULL;
    }
    memrt_meminfo_t *mi = read_meminfo_argument(object);
    if (mi == NULL) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = function(mi, stream);
    Py_END_ALLOW_THREADS;
    return convert_status(status, 0);
}

static PyObject *record_cuda_use(PyObject *module, PyObject *args)
{
    (void)module;
    return call_buffer_function(args, "OO&:cuda_used", memrt__api()->cuda_used);
}

static PyObject *cuda_wait(PyObject *module, PyObject *args)
{
    (void)module;
    return call_buffer_function(args, "OO&:cuda_wait", memrt__api()->cuda_wait);
}

/// A copy between a part of a CUDA buffer and the whole host buffer of a Python object.
typedef struct transfer {
    PyObject *object;
    size_t offset;
    Py_buffer host;
    uintptr_t stream;
} transfer_t;

static memrt_status_t copy_bytes(memrt_meminfo_t *mi, const transfer_t *transfer, int write)
{
    const memrt_api_t *api = memrt__api();
    size_t size = (size_t)transfer->host.len;
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = write
                 ? api->cuda_write(mi, transfer->offset, transfer->host.buf, size, transfer->stream)
                 : api->cuda_read(mi, transfer->offset, transfer->host.buf, size, transfer->stream);
    Py_END_ALLOW_THREADS;
    return status;
}

static PyObject *copy_transfer(transfer_t *transfer, int write)
{
    memrt_meminfo_t *mi = read_meminfo_argument(transfer->object);
    size_t size = (size_t)transfer->host.len;
    PyObject *result = mi == NULL ? NULL : convert_status(copy_bytes(mi, transfer, write), size);
    PyBuffer_Release(&transfer->host);
    return result;
}

static PyObject *cuda_read(PyObject *module, PyObject *args)
{
    transfer_t transfer;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO&w*O&:cuda_read", &transfer.object, memrt__size_argument,
                          &transfer.offset, &transfer.host, memrt__address_argument,
                          &transfer.stream)) {
        return NULL;
    }
    return copy_transfer(&transfer, 0);
}

static PyObject *cuda_write(PyObject *module, PyObject *args)
{
    transfer_t transfer;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO&y*O&:cuda_write", &transfer.object, memrt__size_argument,
                          &transfer.offset, &transfer.host, memrt__address_argument,
                          &transfer.stream)) {
        return NULL;
    }
    return copy_transfer(&transfer, 1);
}

static PyObject *cuda_copy(PyObject *module, PyObject *args)
{
    PyObject *object, *keep;
    size_t offset, size;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO&O&O:cuda_copy", &object, memrt__size_argument, &offset,
                          memrt__size_argument, &size, &keep)) {
        return NULL;
    }
    memrt_cuda_info_t info;
    memrt_meminfo_t *mi = read_meminfo_argument(object);
    if (mi == NULL) {
        return NULL;
    }
    size_t bytes = memrt__api()->size(mi);
    if (!memrt__device_get_info(mi, &info) || offset > bytes || size > bytes - offset) {
        PyErr_SetString(PyExc_ValueError,
                        "offset and nbytes must describe bytes inside a buffer in CUDA memory");
        return NULL;
    }
    return (PyObject *)memrt__cuda_buffer_copy(mi, offset, size, keep);
}

static PyObject *cuda_stream_new(PyObject *module, PyObject *args)
{
    int device;
    uintptr_t stream = 0;
    memrt_status_t status;
    (void)module;
    if (!PyArg_ParseTuple(args, "i:cuda_stream_new", &device)) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->cuda_stream_new(device, &stream);
    Py_END_ALLOW_THREADS;
    return status == MEMRT_OK ? PyLong_FromSize_t(stream)
                              : memrt__raise_cuda(status, MEMRT_MEMORY_HOST, 0);
}

typedef memrt_status_t (*stream_fn)(int32_t device, uintptr_t stream);

static PyObject *call_stream_function(PyObject *args, const char *format, stream_fn function)
{
    int device;
    uintptr_t stream;
    memrt_status_t status;
    if (!PyArg_ParseTuple(args, format, &device, memrt__address_argument, &stream)) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = function(device, stream);
    Py_END_ALLOW_THREADS;
    return convert_status(status, 0);
}

static PyObject *cuda_stream_free(PyObject *module, PyObject *args)
{
    (void)module;
    return call_stream_function(args, "iO&:cuda_stream_free", memrt__api()->cuda_stream_free);
}

static PyObject *cuda_stream_synchronize(PyObject *module, PyObject *args)
{
    (void)module;
    return call_stream_function(args, "iO&:cuda_stream_synchronize",
                                memrt__api()->cuda_stream_synchronize);
}

static PyObject *get_cuda_stats(PyObject *module, PyObject *args)
{
    memrt_cuda_stats_t stats = {.struct_size = sizeof(stats)};
    unsigned memory;
    (void)module;
    if (!PyArg_ParseTuple(args, "I:cuda_stats", &memory)) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->cuda_stats((memrt_memory_t)memory, &stats);
    if (status != MEMRT_OK) {
        return memrt__raise_cuda(status, MEMRT_MEMORY_HOST, 0);
    }
    return Py_BuildValue("(KKKKKKKK)", (unsigned long long)stats.live,
                         (unsigned long long)stats.peak, (unsigned long long)stats.limit,
                         (unsigned long long)stats.alloc, (unsigned long long)stats.free,
                         (unsigned long long)stats.failed, (unsigned long long)stats.lost,
                         (unsigned long long)stats.cached);
}

static PyObject *cuda_set_limit(PyObject *module, PyObject *args)
{
    unsigned memory;
    size_t limit;
    (void)module;
    if (!PyArg_ParseTuple(args, "IO&:cuda_set_limit", &memory, memrt__size_argument, &limit)) {
        return NULL;
    }
    return convert_status(memrt__api()->cuda_set_limit((memrt_memory_t)memory, limit), 0);
}

PyMethodDef memrt__cuda_methods[] = {
    {"cuda_why_not", get_cuda_refusal, METH_NOARGS,
     "cuda_why_not() -> str or None\n\n"
     "Return the reason why CUDA is not usable; None: CUDA is usable."},
    {"cuda_sync", get_cuda_sync, METH_NOARGS,
     "cuda_sync() -> bool\n\n"
     "Return whether arrays are exchanged with CUDA libraries in the order of streams."},
    {"cuda_info", get_cuda_info, METH_O,
     "cuda_info(mi) -> (memory, device, stream, adopted) or None\n\n"
     "Return the CUDA placement of a buffer; None: the buffer is in ordinary memory."},
    {"cuda_used", record_cuda_use, METH_VARARGS,
     "cuda_used(mi, stream) -> None\n\nRecord that work on the buffer was put into a stream."},
    {"cuda_wait", cuda_wait, METH_VARARGS,
     "cuda_wait(mi, stream) -> None\n\nMake a stream wait for all work on the buffer."},
    {"cuda_read", cuda_read, METH_VARARGS,
     "cuda_read(mi, offset, buffer, stream) -> None\n\n"
     "Fill `buffer` with bytes of the CUDA buffer from `offset` on."},
    {"cuda_write", cuda_write, METH_VARARGS,
     "cuda_write(mi, offset, buffer, stream) -> None\n\n"
     "Copy all of `buffer` to `offset` of the CUDA buffer."},
    {"cuda_copy", cuda_copy, METH_VARARGS,
     "cuda_copy(mi, offset, nbytes, keep) -> MemInfo\n\n"
     "Copy bytes of the buffer into a new buffer of the same memory kind and device.\n"
     "The new buffer keeps `keep` alive."},
    {"cuda_stream_new", cuda_stream_new, METH_VARARGS,
     "cuda_stream_new(device) -> int\n\nCreate a stream and return the handle."},
    {"cuda_stream_free", cuda_stream_free, METH_VARARGS,
     "cuda_stream_free(device, stream) -> None\n\nDestroy a stream that memrt created."},
    {"cuda_stream_synchronize", cuda_stream_synchronize, METH_VARARGS,
     "cuda_stream_synchronize(device, stream) -> None\n\nWait for all work in a stream."},
    {"cuda_stats", get_cuda_stats, METH_VARARGS,
     "cuda_stats(memory) -> tuple of int\n\n"
     "Return the account of a memory kind, in the order of memrt_cuda_stats_t."},
    {"cuda_set_limit", cuda_set_limit, METH_VARARGS,
     "cuda_set_limit(memory, nbytes) -> None\n\nLimit the bytes in use of a memory kind."},
    {NULL, NULL, 0, NULL},
};
