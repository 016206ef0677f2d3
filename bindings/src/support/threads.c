#include "support/threads.h"

/// Call `before`, then `function`. A failure of `before` is reported as unraisable, because a
/// thread without memrt's settings must still run.
static PyObject *call_after(PyObject *module, PyObject *args)
{
    PyObject *before, *function, *argument;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO:call_after", &before, &function, &argument)) {
        return NULL;
    }
    PyObject *done = PyObject_CallOneArg(before, argument);
    if (done == NULL) {
        PyErr_WriteUnraisable(before);
    }
    Py_XDECREF(done);
    return PyObject_CallOneArg(function, argument);
}

PyMethodDef memrt__thread_methods[] = {
    {"call_after", call_after, METH_VARARGS,
     "call_after(before, function, argument) -> object\n\n"
     "Call before(argument), then return function(argument). An exception of before() is\n"
     "unraisable. No frame of call_after() is on the stack of function()."},
    {NULL, NULL, 0, NULL},
};
