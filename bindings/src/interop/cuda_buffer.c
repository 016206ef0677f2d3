#include "interop/cuda_buffer.h"

#include "core/current_scope.h"
#include "core/device_sync.h"
#include "core/mem_handler.h"
#include "core/owner.h"
#include "support/arguments.h"
#include "support/errors.h"
#include "support/free_threading.h"

/// Parameters of a new or adopted buffer, with the Python object that the buffer keeps alive.
typedef struct buffer_request {
    memrt_cuda_options_t options;
    size_t size;
    uintptr_t address; ///< address of adopted memory
    int adopted;
    PyObject *keep; ///< object that lives as long as the buffer; may be NULL
} buffer_request_t;

/// Allocate or adopt the buffer, with the GIL released.
static memrt_status_t create_buffer(const buffer_request_t *request, memrt_meminfo_t **out)
{
    const memrt_api_t *api = memrt__api();
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = request->adopted
                 ? api->cuda_adopt(request->address, request->size, &request->options, out)
                 : api->cuda_new(request->size, &request->options, out);
    Py_END_ALLOW_THREADS;
    return status;
}

/// Create the MemInfo object of a buffer whose policy is set. NULL with an exception.
static PyObject *create_meminfo_object(buffer_request_t *request)
{
    memrt_meminfo_t *mi;
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    memrt_owner_t *owner =
        shell == NULL ? NULL
                      : memrt__owner_new(request->keep, NULL, request->address, request->size);
    if (owner == NULL) {
        Py_XDECREF(shell);
        return NULL;
    }
    request->options.dtor = memrt__owner_dtor;
    request->options.dtor_info = owner;
    memrt_status_t status = create_buffer(request, &mi);
    if (status != MEMRT_OK) {
        memrt__owner_discard(owner);
        Py_DECREF(shell);
        return memrt__raise_cuda(status, request->options.memory, request->size);
    }
    return memrt__meminfo_fill_waiting(shell, mi);
}

/// Create the handler of the policy that accounts for buffers of a memory kind. NULL with an
/// exception.
static PyObject *create_memory_handler(memrt_memory_t memory)
{
    memrt_policy_t *policy = memrt__api()->cuda_policy(memory);
    if (policy == NULL) {
        return PyErr_NoMemory();
    }
    memrt__api()->policy_acquire(policy);
    return memrt__handler_new(policy);
}

/// Return the handler of the policy that accounts for buffers of a memory kind, in the scope of
/// this context. MEMRT_MEMORY_HOST stands for adopted buffers. New reference, or NULL with an
/// exception.
static PyObject *get_memory_handler(memrt_memory_t memory)
{
    static memrt_mutex_t mutex = MEMRT_MUTEX_INIT;
    static PyObject *handlers[MEMRT_MEMORY_PINNED + 1];
    if (memory > MEMRT_MEMORY_PINNED) {
        return PyErr_Format(PyExc_ValueError, "memory must be a kind of CUDA memory, got %u",
                            (unsigned)memory);
    }
    MEMRT_MUTEX_LOCK(&mutex);
    if (handlers[memory] == NULL) {
        handlers[memory] = create_memory_handler(memory);
    }
    PyObject *handler = Py_XNewRef(handlers[memory]);
    MEMRT_MUTEX_UNLOCK(&mutex);
    return handler == NULL ? NULL : memrt__current_scope_handler(handler);
}

static PyObject *create_meminfo(buffer_request_t *request)
{
    memrt__owner_drain();
    if (memrt__need_cuda() < 0) {
        return NULL;
    }
    PyObject *handler =
        get_memory_handler(request->adopted ? MEMRT_MEMORY_HOST : request->options.memory);
    if (handler == NULL) {
        return NULL;
    }
    request->options.policy = memrt__handler_policy(handler);
    PyObject *meminfo = create_meminfo_object(request);
    Py_DECREF(handler);
    return meminfo;
}

memrt_meminfo_object_t *memrt__cuda_buffer_new(uint32_t memory, int32_t device, size_t size,
                                               PyObject *keep)
{
    buffer_request_t request = {
        .options = {.struct_size = sizeof(request.options), .memory = memory, .device = device},
        .size = size,
        .keep = keep};
    return (memrt_meminfo_object_t *)create_meminfo(&request);
}

PyObject *memrt__cuda_buffer_foreign_handler(void)
{
    return get_memory_handler(MEMRT_MEMORY_HOST);
}

memrt_meminfo_object_t *memrt__cuda_buffer_copy(memrt_meminfo_t *mi, size_t offset, size_t size,
                                                PyObject *keep)
{
    memrt_cuda_info_t info;
    memrt_status_t status;
    (void)memrt__device_get_info(mi, &info);
    memrt_meminfo_object_t *copy = memrt__cuda_buffer_new(info.memory, info.device, size, keep);
    if (copy == NULL) {
        return NULL;
    }
    const char *from = (const char *)memrt__api()->get_data(mi) + offset;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->cuda_write(copy->mi, 0, from, size, info.stream);
    Py_END_ALLOW_THREADS;
    if (status != MEMRT_OK) {
        memrt__raise_cuda(status, MEMRT_MEMORY_HOST, 0);
        Py_CLEAR(copy);
    }
    return copy;
}

static PyObject *cuda_alloc(PyObject *module, PyObject *args)
{
    buffer_request_t request = {.options = {.struct_size = sizeof(request.options)}};
    (void)module;
    if (!PyArg_ParseTuple(args, "O&IiO&OO&:cuda_alloc", memrt__size_argument, &request.size,
                          &request.options.memory, &request.options.device, memrt__address_argument,
                          &request.options.stream, &request.keep, memrt__name_argument,
                          &request.options.name)) {
        return NULL;
    }
    return create_meminfo(&request);
}

static PyObject *cuda_wrap(PyObject *module, PyObject *args)
{
    buffer_request_t request = {.options = {.struct_size = sizeof(request.options)}, .adopted = 1};
    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&pO&O:cuda_wrap", memrt__address_argument, &request.address,
                          memrt__size_argument, &request.size, &request.options.readonly,
                          memrt__address_argument, &request.options.stream, &request.keep)) {
        return NULL;
    }
    return create_meminfo(&request);
}

PyMethodDef memrt__cuda_buffer_methods[] = {
    {"cuda_alloc", cuda_alloc, METH_VARARGS,
     "cuda_alloc(nbytes, memory, device, stream, keep, name) -> MemInfo\n\n"
     "Allocate a buffer, which keeps `keep` alive. device -1: the device of the current context."},
    {"cuda_wrap", cuda_wrap, METH_VARARGS,
     "cuda_wrap(address, nbytes, readonly, stream, owner) -> MemInfo\n\n"
     "Put foreign CUDA memory under a MemInfo, which keeps `owner` alive."},
    {NULL, NULL, 0, NULL},
};
