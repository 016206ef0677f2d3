#include "allocators/adaptor.h"

#include <memrt/allocator/adaptor.h>

#include "allocators/allocator_capsule.h"
#include "allocators/held_allocator.h"
#include "core/interpreter.h"
#include "support/errors.h"

/// Call the function of a retrying adaptor. Where Python code must not run, and after an exception,
/// which goes to sys.unraisablehook, the request is refused.
static int call_failed(size_t size, size_t align, void *context)
{
    PyObject *function = context;
    memrt_pending_t pending;
    int state;
    if (!memrt__interpreter_enter(&state)) {
        return 0;
    }
    memrt__pending_save(&pending);
    PyObject *result = PyObject_CallFunction(function, "nn", (Py_ssize_t)size, (Py_ssize_t)align);
    int repeats = result != NULL ? PyObject_IsTrue(result) : -1;
    Py_XDECREF(result);
    if (repeats < 0) {
        PyErr_WriteUnraisable(function);
    }
    memrt__pending_restore(&pending);
    memrt__interpreter_leave(state);
    return repeats > 0;
}

/// Return whether the stack of a new adaptor runs Python code. -1 with TypeError: a thread-safe
/// adaptor would hold its lock while Python code waits for the GIL, and another thread may hold the
/// GIL and wait for the lock.
static int check_runs_python(PyObject *capsule, const memrt_adaptor_options_t *options)
{
    int runs = capsule != Py_None && memrt__allocator_runs_python(capsule);
    if (options == NULL) {
        return runs;
    }
    if (runs && options->kind == MEMRT_ADAPTOR_THREAD_SAFE) {
        PyErr_SetString(PyExc_TypeError,
                        "upstream of thread_safe() must be C code, got Python functions: take a "
                        "threading.RLock in the functions");
        return -1;
    }
    return runs || options->failed != NULL;
}

/// Create an adaptor, or a guard without `options`, over the allocator of a capsule. `keeper` lives
/// as long as the adaptor; NULL: the adaptor needs no object. NULL with an exception, and the
/// capsule keeps its allocator.
static PyObject *create_over(PyObject *capsule, const memrt_adaptor_options_t *options,
                             PyObject *keeper)
{
    const memrt_api_t *api = memrt__api();
    const memrt_allocator_t *upstream = api->allocator_default();
    memrt_allocator_t made, held;
    if (capsule != Py_None && memrt__allocator_take(capsule, &upstream) < 0) {
        return NULL;
    }
    int runs_python = check_runs_python(capsule, options);
    memrt_status_t status = runs_python < 0   ? MEMRT_EINVAL
                            : options != NULL ? api->allocator_adaptor(upstream, options, &made)
                                              : api->allocator_guard(upstream, &made);
    if (status != MEMRT_OK) {
        if (capsule != Py_None) {
            memrt__allocator_untake(capsule);
        }
        return runs_python < 0 ? NULL : memrt__raise(status, "cannot create an adaptor");
    }
    if (keeper == NULL) {
        return memrt__allocator_as_capsule(&made, runs_python);
    }
    if (memrt__held_allocator_new(&made, keeper, &held) < 0) {
        made.destroy(made.ctx);
        return NULL;
    }
    return memrt__allocator_as_capsule(&held, runs_python);
}

static PyObject *allocator_adaptor(PyObject *module, PyObject *args)
{
    memrt_adaptor_options_t options = {.struct_size = sizeof(options)};
    PyObject *capsule, *counts, *function;
    Py_buffer view = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OInOOi:allocator_adaptor", &capsule, &options.kind,
                          &options.amount, &counts, &function, &options.file)) {
        return NULL;
    }
    if (counts != Py_None) {
        if (PyObject_GetBuffer(counts, &view, PyBUF_WRITABLE) < 0) {
            return NULL;
        }
        options.counts = (size_t)view.len >= sizeof(*options.counts) ? view.buf : NULL;
        PyBuffer_Release(&view); /* the module memrt.adaptors never resizes the buffer */
    }
    if (function != Py_None) {
        options.failed = call_failed;
        options.context = function;
    }
    if (counts == Py_None && function == Py_None) {
        return create_over(capsule, &options, NULL);
    }
    PyObject *keeper = PyTuple_Pack(2, counts, function);
    PyObject *made = keeper != NULL ? create_over(capsule, &options, keeper) : NULL;
    Py_XDECREF(keeper);
    return made;
}

static PyObject *allocator_guard(PyObject *module, PyObject *capsule)
{
    (void)module;
    return create_over(capsule, NULL, Py_None);
}

static PyObject *allocator_release_unused(PyObject *module, PyObject *capsule)
{
    const memrt_allocator_t *allocator = memrt__allocator_of_policy(capsule);
    (void)module;
    if (allocator == NULL) {
        return NULL;
    }
    size_t bytes =
        allocator->release_unused != NULL ? allocator->release_unused(allocator->ctx) : 0;
    return PyLong_FromSize_t(bytes);
}

PyMethodDef memrt__adaptor_methods[] = {
    {"allocator_adaptor", allocator_adaptor, METH_VARARGS,
     "allocator_adaptor(upstream, kind, amount, counts, failed, file, /) -> capsule\n\n"
     "Create an adaptor over an allocator, or over memrt's allocator for None. `counts` is a\n"
     "buffer of 48 bytes or None, `failed` a callable or None."},
    {"allocator_guard", allocator_guard, METH_O,
     "allocator_guard(upstream, /) -> capsule\n\n"
     "Create a guard over an allocator, or over memrt's allocator for None."},
    {"allocator_release_unused", allocator_release_unused, METH_O,
     "allocator_release_unused(capsule, /) -> bytes\n\n"
     "Give the unused memory of an allocator back. A policy that the caller holds has taken the\n"
     "allocator from the capsule."},
    {NULL, NULL, 0, NULL},
};
