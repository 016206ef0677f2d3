#include "cuda.h"

#include "argument.h"
#include "errors.h"
#include "handler.h"
#include "meminfo.h"
#include "owner.h"
#include "placement.h"
#include "scope.h"

static PyObject *text_or_none(const char *text, size_t length)
{
    return length == 0 ? Py_NewRef(Py_None)
                       : PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *cuda_why_not(PyObject *module, PyObject *unused)
{
    char text[MEMRT__WHY_MAX];
    size_t length;
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    length = memrt__api()->cuda_why_not(text, sizeof(text));
    Py_END_ALLOW_THREADS;
    return text_or_none(text, length);
}

/// The row of an option stays where it is.
static PyObject *cuda_sync(PyObject *module, PyObject *unused)
{
    static size_t row;
    memrt_option_t option = {.name = ""};
    (void)module;
    (void)unused;
    while (memrt__api()->option(row, &option) && strcmp(option.name, "MEMRT_CUDA_SYNC") != 0) {
        row++;
    }
    return PyBool_FromLong(option.value[0] != '0');
}

/// What a buffer is to be, and the Python objects that come with it.
typedef struct birth {
    memrt_cuda_options_t options;
    size_t size;
    uintptr_t address; ///< of adopted memory
    int adopted;
    PyObject *keep; ///< lives as long as the buffer
} birth_t;

static memrt_status_t give_birth(const birth_t *birth, memrt_meminfo_t **out)
{
    const memrt_api_t *api = memrt__api();
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = birth->adopted ? api->cuda_adopt(birth->address, birth->size, &birth->options, out)
                            : api->cuda_new(birth->size, &birth->options, out);
    Py_END_ALLOW_THREADS;
    return status;
}

static PyObject *new_on_account(birth_t *birth)
{
    memrt_meminfo_t *mi;
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    memrt_owner_t *owner =
        shell == NULL ? NULL : memrt__owner_new(birth->keep, NULL, birth->address, birth->size);
    if (owner == NULL) {
        Py_XDECREF(shell);
        return NULL;
    }
    birth->options.dtor = memrt__owner_dtor;
    birth->options.dtor_info = owner;
    memrt_status_t status = give_birth(birth, &mi);
    if (status != MEMRT_OK) {
        memrt__owner_discard(owner);
        Py_DECREF(shell);
        return memrt__raise_cuda(status, birth->options.memory, birth->size);
    }
    return memrt__meminfo_fill_waiting(shell, mi);
}

/// The handler of the policy that buffers of a memory are on the account of, in the scope of this
/// context; that of adopted ones for MEMRT_MEMORY_HOST. A new reference.
static PyObject *handler_of(memrt_memory_t memory)
{
    static PyObject *handlers[MEMRT_MEMORY_PINNED + 1];
    if (memory > MEMRT_MEMORY_PINNED) {
        return PyErr_Format(PyExc_ValueError, "there is no memory %u", (unsigned)memory);
    }
    if (handlers[memory] == NULL) {
        memrt_policy_t *policy = memrt__api()->cuda_policy(memory);
        if (policy == NULL) {
            return PyErr_NoMemory();
        }
        memrt__api()->policy_acquire(policy);
        handlers[memory] = memrt__handler_new(policy);
    }
    return handlers[memory] == NULL ? NULL : memrt__scope_handler(Py_NewRef(handlers[memory]));
}

static PyObject *new_meminfo(birth_t *birth)
{
    memrt__owner_drain();
    if (memrt__need_cuda() < 0) {
        return NULL;
    }
    PyObject *handler = handler_of(birth->adopted ? MEMRT_MEMORY_HOST : birth->options.memory);
    if (handler == NULL) {
        return NULL;
    }
    birth->options.policy = memrt__handler_policy(handler);
    PyObject *meminfo = new_on_account(birth);
    Py_DECREF(handler);
    return meminfo;
}

memrt_meminfo_object_t *memrt__cuda_new(uint32_t memory, int32_t device, size_t size)
{
    birth_t birth = {
        .options = {.struct_size = sizeof(birth.options), .memory = memory, .device = device},
        .size = size,
        .keep = Py_None};
    return (memrt_meminfo_object_t *)new_meminfo(&birth);
}

PyObject *memrt__cuda_foreign_handler(void)
{
    return handler_of(MEMRT_MEMORY_HOST);
}

static PyObject *cuda_alloc(PyObject *module, PyObject *args)
{
    birth_t birth = {.options = {.struct_size = sizeof(birth.options)}};
    (void)module;
    if (!PyArg_ParseTuple(args, "O&IiO&OO&:cuda_alloc", memrt__size_argument, &birth.size,
                          &birth.options.memory, &birth.options.device, memrt__address_argument,
                          &birth.options.stream, &birth.keep, memrt__name_argument,
                          &birth.options.name)) {
        return NULL;
    }
    return new_meminfo(&birth);
}

static PyObject *cuda_wrap(PyObject *module, PyObject *args)
{
    birth_t birth = {.options = {.struct_size = sizeof(birth.options)}, .adopted = 1};
    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&pO&O:cuda_wrap", memrt__address_argument, &birth.address,
                          memrt__size_argument, &birth.size, &birth.options.readonly,
                          memrt__address_argument, &birth.options.stream, &birth.keep)) {
        return NULL;
    }
    return new_meminfo(&birth);
}

/// The MemInfo of an argument; NULL with an exception.
static memrt_meminfo_t *meminfo_argument(PyObject *object)
{
    if (!memrt__meminfo_check(object)) {
        PyErr_Format(PyExc_TypeError, "expected a memrt.MemInfo, got %.200s",
                     Py_TYPE(object)->tp_name);
        return NULL;
    }
    return memrt__meminfo_get((memrt_meminfo_object_t *)object);
}

static PyObject *cuda_info(PyObject *module, PyObject *object)
{
    memrt_cuda_info_t info = {.struct_size = sizeof(info)};
    memrt_meminfo_t *mi = meminfo_argument(object);
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

static PyObject *done(memrt_status_t status, size_t size)
{
    return status == MEMRT_OK ? Py_NewRef(Py_None)
                              : memrt__raise_cuda(status, MEMRT_MEMORY_HOST, size);
}

typedef memrt_status_t (*order_fn)(memrt_meminfo_t *mi, uintptr_t stream);

static PyObject *order(PyObject *args, const char *format, order_fn function)
{
    PyObject *object;
    uintptr_t stream;
    memrt_status_t status;
    if (!PyArg_ParseTuple(args, format, &object, memrt__address_argument, &stream)) {
        return NULL;
    }
    memrt_meminfo_t *mi = meminfo_argument(object);
    if (mi == NULL) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = function(mi, stream);
    Py_END_ALLOW_THREADS;
    return done(status, 0);
}

static PyObject *cuda_used(PyObject *module, PyObject *args)
{
    (void)module;
    return order(args, "OO&:cuda_used", memrt__api()->cuda_used);
}

static PyObject *cuda_wait(PyObject *module, PyObject *args)
{
    (void)module;
    return order(args, "OO&:cuda_wait", memrt__api()->cuda_wait);
}

/// A copy between a part of a buffer and all of an object with a buffer of the host.
typedef struct transfer {
    PyObject *object;
    size_t offset;
    Py_buffer host;
    uintptr_t stream;
} transfer_t;

static memrt_status_t copy(memrt_meminfo_t *mi, const transfer_t *transfer, int write)
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

static PyObject *copy_parsed(transfer_t *transfer, int write)
{
    memrt_meminfo_t *mi = meminfo_argument(transfer->object);
    size_t size = (size_t)transfer->host.len;
    PyObject *result = mi == NULL ? NULL : done(copy(mi, transfer, write), size);
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
    return copy_parsed(&transfer, 0);
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
    return copy_parsed(&transfer, 1);
}

static PyObject *cuda_copy(PyObject *module, PyObject *args)
{
    PyObject *object;
    size_t offset, size;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO&O&:cuda_copy", &object, memrt__size_argument, &offset,
                          memrt__size_argument, &size)) {
        return NULL;
    }
    memrt_cuda_info_t info;
    memrt_meminfo_t *mi = meminfo_argument(object);
    if (mi == NULL) {
        return NULL;
    }
    size_t bytes = memrt__api()->size(mi);
    if (!memrt__placement(mi, &info) || offset > bytes || size > bytes - offset) {
        PyErr_SetString(PyExc_ValueError, "there are no such bytes in memory of CUDA");
        return NULL;
    }
    return (PyObject *)memrt__placement_copy(mi, offset, size);
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

static PyObject *of_stream(PyObject *args, const char *format, stream_fn function)
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
    return done(status, 0);
}

static PyObject *cuda_stream_free(PyObject *module, PyObject *args)
{
    (void)module;
    return of_stream(args, "iO&:cuda_stream_free", memrt__api()->cuda_stream_free);
}

static PyObject *cuda_stream_synchronize(PyObject *module, PyObject *args)
{
    (void)module;
    return of_stream(args, "iO&:cuda_stream_synchronize", memrt__api()->cuda_stream_synchronize);
}

static PyObject *cuda_stats(PyObject *module, PyObject *args)
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
    return Py_BuildValue("(KKKKKKK)", (unsigned long long)stats.live,
                         (unsigned long long)stats.peak, (unsigned long long)stats.limit,
                         (unsigned long long)stats.alloc, (unsigned long long)stats.free,
                         (unsigned long long)stats.failed, (unsigned long long)stats.lost);
}

static PyObject *cuda_set_limit(PyObject *module, PyObject *args)
{
    unsigned memory;
    size_t limit;
    (void)module;
    if (!PyArg_ParseTuple(args, "IO&:cuda_set_limit", &memory, memrt__size_argument, &limit)) {
        return NULL;
    }
    return done(memrt__api()->cuda_set_limit((memrt_memory_t)memory, limit), 0);
}

PyMethodDef memrt__cuda_methods[] = {
    {"cuda_why_not", cuda_why_not, METH_NOARGS,
     "cuda_why_not() -> str or None\n\nWhy CUDA cannot be used; None: it can."},
    {"cuda_sync", cuda_sync, METH_NOARGS,
     "cuda_sync() -> bool\n\nWhether streams of other libraries' arrays are heeded."},
    {"cuda_alloc", cuda_alloc, METH_VARARGS,
     "cuda_alloc(nbytes, memory, device, stream, keep, name) -> MemInfo\n\n"
     "New buffer. `keep` lives as long as it; device -1: that of the current context."},
    {"cuda_wrap", cuda_wrap, METH_VARARGS,
     "cuda_wrap(address, nbytes, readonly, stream, owner) -> MemInfo\n\n"
     "Put memory of CUDA that somebody else allocated under a MemInfo; `owner` lives as long."},
    {"cuda_info", cuda_info, METH_O,
     "cuda_info(mi) -> (memory, device, stream, adopted) or None\n\n"
     "What CUDA knows of a buffer; None: it is in ordinary memory."},
    {"cuda_used", cuda_used, METH_VARARGS,
     "cuda_used(mi, stream) -> None\n\nWork on the buffer was put into a stream."},
    {"cuda_wait", cuda_wait, METH_VARARGS,
     "cuda_wait(mi, stream) -> None\n\nHave a stream wait for all work on the buffer."},
    {"cuda_read", cuda_read, METH_VARARGS,
     "cuda_read(mi, offset, buffer, stream) -> None\n\n"
     "Fill `buffer` with bytes of the buffer from `offset` on."},
    {"cuda_write", cuda_write, METH_VARARGS,
     "cuda_write(mi, offset, buffer, stream) -> None\n\n"
     "Copy all of `buffer` to `offset` of the buffer."},
    {"cuda_copy", cuda_copy, METH_VARARGS,
     "cuda_copy(mi, offset, nbytes) -> MemInfo\n\n"
     "New buffer of the same memory and device with a copy of bytes that lie in this one."},
    {"cuda_stream_new", cuda_stream_new, METH_VARARGS,
     "cuda_stream_new(device) -> int\n\nNew stream, by its handle."},
    {"cuda_stream_free", cuda_stream_free, METH_VARARGS,
     "cuda_stream_free(device, stream) -> None\n\nThe end of a stream that memrt made."},
    {"cuda_stream_synchronize", cuda_stream_synchronize, METH_VARARGS,
     "cuda_stream_synchronize(device, stream) -> None\n\nWait for all work in a stream."},
    {"cuda_stats", cuda_stats, METH_VARARGS,
     "cuda_stats(memory) -> tuple of int\n\n"
     "The account of a memory, in the order of memrt_cuda_stats_t."},
    {"cuda_set_limit", cuda_set_limit, METH_VARARGS,
     "cuda_set_limit(memory, nbytes) -> None\n\nMost bytes in use at once."},
    {NULL, NULL, 0, NULL},
};
