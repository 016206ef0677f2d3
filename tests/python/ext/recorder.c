/// A NEP 49 handler that records all calls and passes each call to another handler.
///
/// No library has a recording handler: NumPy's own tests compile a handler without records of all
/// calls.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <numpy/arrayobject.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY = 1 << 16 };

typedef struct event {
    const char *op;
    uintptr_t before;
    uintptr_t after;
    size_t size;
    unsigned long thread;
    int gil;
} event_t;

typedef struct recorder {
    PyDataMem_Handler handler;
    PyDataMemAllocator upstream;
    PyObject *upstream_capsule; /* NULL: the C library */
    pthread_mutex_t lock;
    size_t count;
    size_t fail_at; /* number of the allocation that fails; 0: none */
    size_t allocations;
    event_t events[CAPACITY];
} recorder_t;

/// Return whether the thread holds the GIL. PyGILState_Check() returns 1 on every thread once a
/// subinterpreter existed.
static int holds_gil(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    const PyThreadState *attached = PyThreadState_GetUnchecked();
#else
    const PyThreadState *attached = _PyThreadState_UncheckedGet();
#endif
    return attached != NULL && attached == PyGILState_GetThisThreadState();
}

static void note(recorder_t *recorder, const char *op, void *before, void *after, size_t size)
{
    pthread_mutex_lock(&recorder->lock);
    if (recorder->count < CAPACITY) {
        recorder->events[recorder->count++] = (event_t){
            op,         (uintptr_t)before, (uintptr_t)after, size, (unsigned long)pthread_self(),
            holds_gil()};
    }
    pthread_mutex_unlock(&recorder->lock);
}

static int refuses(recorder_t *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    int refused = ++recorder->allocations == recorder->fail_at;
    pthread_mutex_unlock(&recorder->lock);
    return refused;
}

static void *on_malloc(void *ctx, size_t size)
{
    recorder_t *recorder = ctx;
    void *data = refuses(recorder) ? NULL : recorder->upstream.malloc(recorder->upstream.ctx, size);
    note(recorder, "malloc", NULL, data, size);
    return data;
}

static void *on_calloc(void *ctx, size_t count, size_t size)
{
    recorder_t *recorder = ctx;
    void *data =
        refuses(recorder) ? NULL : recorder->upstream.calloc(recorder->upstream.ctx, count, size);
    note(recorder, "calloc", NULL, data, count * size);
    return data;
}

static void *on_realloc(void *ctx, void *old, size_t size)
{
    recorder_t *recorder = ctx;
    void *data =
        refuses(recorder) ? NULL : recorder->upstream.realloc(recorder->upstream.ctx, old, size);
    note(recorder, "realloc", old, data, size);
    return data;
}

static void on_free(void *ctx, void *data, size_t size)
{
    recorder_t *recorder = ctx;
    note(recorder, "free", data, NULL, size);
    recorder->upstream.free(recorder->upstream.ctx, data, size);
}

static void *libc_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void *libc_calloc(void *ctx, size_t count, size_t size)
{
    (void)ctx;
    return calloc(count, size);
}

static void *libc_realloc(void *ctx, void *data, size_t size)
{
    (void)ctx;
    return realloc(data, size);
}

static void libc_free(void *ctx, void *data, size_t size)
{
    (void)ctx;
    (void)size;
    free(data);
}

static recorder_t *recorder_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, "mem_handler");
}

static void destroy(PyObject *capsule)
{
    recorder_t *recorder = recorder_of(capsule);
    Py_XDECREF(recorder->upstream_capsule);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
}

static int set_upstream(recorder_t *recorder, PyObject *upstream)
{
    if (upstream == Py_None) {
        recorder->upstream =
            (PyDataMemAllocator){NULL, libc_malloc, libc_calloc, libc_realloc, libc_free};
        return 0;
    }
    PyDataMem_Handler *handler = PyCapsule_GetPointer(upstream, "mem_handler");
    if (handler == NULL) {
        return -1;
    }
    recorder->upstream = handler->allocator;
    recorder->upstream_capsule = Py_NewRef(upstream);
    return 0;
}

/// new(upstream or None, name) -> handler
static PyObject *new(PyObject *module, PyObject *args)
{
    PyObject *upstream;
    const char *name;
    (void)module;
    if (!PyArg_ParseTuple(args, "Os", &upstream, &name)) {
        return NULL;
    }
    recorder_t *recorder = calloc(1, sizeof(*recorder));
    if (recorder == NULL) {
        return PyErr_NoMemory();
    }
    if (set_upstream(recorder, upstream) < 0) {
        free(recorder);
        return NULL;
    }
    strncpy(recorder->handler.name, name, sizeof(recorder->handler.name) - 1);
    recorder->handler.version = 1;
    recorder->handler.allocator =
        (PyDataMemAllocator){recorder, on_malloc, on_calloc, on_realloc, on_free};
    pthread_mutex_init(&recorder->lock, NULL);
    return PyCapsule_New(recorder, "mem_handler", destroy);
}

/// events(handler) -> list of (op, before, after, size, thread, gil), oldest first; then clear the
/// list
static PyObject *events(PyObject *module, PyObject *capsule)
{
    (void)module;
    recorder_t *recorder = recorder_of(capsule);
    if (recorder == NULL) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < recorder->count; i++) {
        event_t *event = &recorder->events[i];
        PyObject *row = Py_BuildValue("(sKKnkO)", event->op, (unsigned long long)event->before,
                                      (unsigned long long)event->after, (Py_ssize_t)event->size,
                                      event->thread, event->gil ? Py_True : Py_False);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    recorder->count = 0;
    return list;
}

/// fail_at(handler, n): the n-th allocation from now on fails; 0: none
static PyObject *fail_at(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    Py_ssize_t nth;
    (void)module;
    if (!PyArg_ParseTuple(args, "On", &capsule, &nth)) {
        return NULL;
    }
    recorder_t *recorder = recorder_of(capsule);
    if (recorder == NULL) {
        return NULL;
    }
    recorder->allocations = 0;
    recorder->fail_at = (size_t)nth;
    Py_RETURN_NONE;
}

/// call(handler, op, *numbers): call a function of any handler directly
static PyObject *call(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    const char *op;
    unsigned long long a, b = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OsK|K", &capsule, &op, &a, &b)) {
        return NULL;
    }
    PyDataMem_Handler *handler = PyCapsule_GetPointer(capsule, "mem_handler");
    if (handler == NULL) {
        return NULL;
    }
    PyDataMemAllocator *functions = &handler->allocator;
    void *result = NULL;
    if (strcmp(op, "malloc") == 0) {
        result = functions->malloc(functions->ctx, (size_t)a);
    } else if (strcmp(op, "calloc") == 0) {
        result = functions->calloc(functions->ctx, (size_t)a, (size_t)b);
    } else if (strcmp(op, "realloc") == 0) {
        result = functions->realloc(functions->ctx, (void *)(uintptr_t)a, (size_t)b);
    } else {
        functions->free(functions->ctx, (void *)(uintptr_t)a, (size_t)b);
    }
    return PyLong_FromVoidPtr(result);
}

static PyMethodDef methods[] = {
    {"new", new, METH_VARARGS, NULL},
    {"events", events, METH_O, NULL},
    {"fail_at", fail_at, METH_VARARGS, NULL},
    {"call", call, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "recorder", .m_size = -1,
                                 .m_methods = methods};

PyMODINIT_FUNC PyInit_recorder(void)
{
    import_array();
    return PyModule_Create(&definition);
}
