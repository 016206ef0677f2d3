#include "support/free_threading.h"

#ifndef Py_GIL_DISABLED

int memrt__need_gil(void)
{
    return 0;
}

#else

/// Return whether the GIL is on now. -1 with an exception.
static int is_gil_on(void)
{
    PyObject *sys = PyImport_ImportModule("sys");
    PyObject *answer = sys != NULL ? PyObject_CallMethod(sys, "_is_gil_enabled", NULL) : NULL;
    int is_on = answer != NULL ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    Py_XDECREF(sys);
    return is_on;
}

int memrt__need_gil(void)
{
    int is_on = is_gil_on();
    if (is_on == 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "holders of buffers cannot be found while the GIL is off, because other "
                        "threads change objects during the search: start Python with PYTHON_GIL=1");
    }
    return is_on > 0 ? 0 : -1;
}

#endif
