#include "thread.h"

#include "errors.h"

/// Call without arguments and drop the result; -1 with an exception.
static int call(PyObject *function)
{
    PyObject *result = PyObject_CallNoArgs(function);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

static PyObject *call_between(PyObject *module, PyObject *args)
{
    PyObject *before, *function, *after;
    memrt_pending_t pending;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO:call_between", &before, &function, &after) ||
        call(before) < 0) {
        return NULL;
    }
    PyObject *result = PyObject_CallNoArgs(function);
    memrt__pending_save(&pending);
    if (call(after) < 0) {
        Py_CLEAR(result);
    }
    memrt__pending_restore(&pending);
    return result;
}

PyMethodDef memrt__thread_methods[] = {
    {"call_between", call_between, METH_VARARGS,
     "call_between(before, function, after) -> object\n\n"
     "The result of function(), with before() called first and after() last, also when it raised.\n"
     "Leaves no frame of its own in a traceback."},
    {NULL, NULL, 0, NULL},
};
