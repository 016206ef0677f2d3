#include "callbacks/reclaim.h"

#include "core/interpreter.h"
#include "support/errors.h"

/// Return whether a callback may run in the middle of an allocation on the calling thread.
static int may_call_python(void)
{
    return memrt__holds_python() && !memrt__interpreter_is_finalizing() && PyErr_Occurred() == NULL;
}

/// Call a Python object with the wanted bytes. The registration holds a reference to the object,
/// which the object itself may end, so the call holds a reference of its own.
static size_t call_object(void *object, size_t wanted)
{
    if (may_call_python()) {
        Py_INCREF((PyObject *)object);
        PyObject *result = PyObject_CallFunction(object, "K", (unsigned long long)wanted);
        if (result == NULL) {
            PyErr_WriteUnraisable(object);
        }
        Py_XDECREF(result);
        Py_DECREF((PyObject *)object);
    }
    return 0;
}

static PyObject *reclaim_add(PyObject *module, PyObject *args)
{
    PyObject *object;
    int priority;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oi:reclaim_add", &object, &priority)) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->reclaim_add(call_object, object, priority);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot add a callback, of at most %d", MEMRT_RECLAIM_MAX);
    }
    Py_INCREF(object);
    Py_RETURN_NONE;
}

/// Remove a callback without the GIL, since a run in another thread needs the GIL to end.
static PyObject *reclaim_remove(PyObject *module, PyObject *object)
{
    memrt_status_t status;
    (void)module;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->reclaim_remove(call_object, object);
    Py_END_ALLOW_THREADS;
    if (status == MEMRT_OK) {
        Py_DECREF(object);
    }
    return PyBool_FromLong(status != MEMRT_EBUSY);
}

PyMethodDef memrt__reclaim_methods[] = {
    {"reclaim_add", reclaim_add, METH_VARARGS,
     "reclaim_add(callback, priority)\n\n"
     "Call an object with the wanted bytes before an allocation is refused. Each object can be\n"
     "added once."},
    {"reclaim_remove", reclaim_remove, METH_O,
     "reclaim_remove(callback) -> bool\n\n"
     "Remove an object, and wait for the end of calls in other threads. False: the caller is\n"
     "inside of a callback, and another thread calls the object, which therefore stays."},
    {NULL, NULL, 0, NULL},
};
