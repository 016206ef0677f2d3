#include "argument.h"

/// The integer behind `object` as a new reference, checked not to be negative.
static PyObject *natural(PyObject *object, const char *what)
{
    PyObject *number = PyNumber_Index(object);
    if (number == NULL) {
        return NULL;
    }
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow < 0 || (overflow == 0 && value < 0)) {
        PyErr_Format(PyExc_ValueError, "%s must be 0 or more, got %S", what, number);
        Py_DECREF(number);
        return NULL;
    }
    return number;
}

int memrt__size_argument(PyObject *object, void *size)
{
    PyObject *number = natural(object, "a number of bytes");
    if (number == NULL) {
        return 0;
    }
    size_t value = PyLong_AsSize_t(number);
    if (value == (size_t)-1 && PyErr_Occurred()) {
        PyErr_Format(PyExc_MemoryError, "%S bytes are more than the address space holds", number);
    }
    Py_DECREF(number);
    *(size_t *)size = value;
    return !PyErr_Occurred();
}

static int is_alignment(size_t value)
{
    return value != 0 && (value & (value - 1)) == 0 && value <= MEMRT_ALIGN_MAX;
}

int memrt__align_argument(PyObject *object, void *align)
{
    if (object == Py_None) {
        *(size_t *)align = 0;
        return 1;
    }
    PyObject *number = PyNumber_Index(object);
    if (number == NULL) {
        return 0;
    }
    size_t value = PyLong_AsSize_t(number);
    int failed = PyErr_Occurred() != NULL;
    if (failed && !PyErr_ExceptionMatches(PyExc_OverflowError)) {
        Py_DECREF(number);
        return 0;
    }
    if (failed || !is_alignment(value)) {
        PyErr_Format(PyExc_ValueError,
                     "an alignment must be a power of two from 1 to %zu bytes, got %S",
                     (size_t)MEMRT_ALIGN_MAX, number);
        Py_DECREF(number);
        return 0;
    }
    Py_DECREF(number);
    *(size_t *)align = value;
    return 1;
}

int memrt__address_argument(PyObject *object, void *address)
{
    PyObject *number = natural(object, "an address");
    if (number == NULL) {
        return 0;
    }
    size_t value = PyLong_AsSize_t(number);
    if (value == (size_t)-1 && PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError, "address %S is beyond the address space", number);
    }
    Py_DECREF(number);
    *(uintptr_t *)address = (uintptr_t)value;
    return !PyErr_Occurred();
}

int memrt__name_argument(PyObject *object, void *name)
{
    if (object == Py_None) {
        *(const char **)name = NULL;
        return 1;
    }
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(object, &length);
    if (text == NULL) {
        return 0;
    }
    if (length > (Py_ssize_t)MEMRT_NAME_MAX || memchr(text, 0, (size_t)length) != NULL) {
        PyErr_Format(PyExc_ValueError,
                     "a name has at most %u bytes in UTF-8 and no zero byte, got %R",
                     MEMRT_NAME_MAX, object);
        return 0;
    }
    *(const char **)name = text;
    return 1;
}
