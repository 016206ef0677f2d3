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

static int intern(memrt_signature_t *signature)
{
    for (int i = signature->interned; i < signature->total; i++) {
        signature->names[i] = PyUnicode_InternFromString(signature->keywords[i]);
        if (signature->names[i] == NULL) {
            return -1;
        }
        signature->interned = i + 1;
    }
    return 0;
}

/// The place of the parameter `name`, or -1 without an exception. Names in a program's source are
/// interned, so that the first loop finds them.
static int find_parameter(const memrt_signature_t *signature, PyObject *name)
{
    for (int i = 0; i < signature->total; i++) {
        if (signature->names[i] == name) {
            return i;
        }
    }
    for (int i = 0; i < signature->total; i++) {
        if (PyUnicode_CompareWithASCIIString(name, signature->keywords[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static int take_keyword(const memrt_signature_t *signature, PyObject *name, PyObject *value,
                        PyObject **values)
{
    int place = find_parameter(signature, name);
    if (place < 0) {
        PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                     signature->function, name);
        return -1;
    }
    if (values[place] != NULL) {
        PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'",
                     signature->function, name);
        return -1;
    }
    values[place] = value;
    return 0;
}

int memrt__arguments(memrt_signature_t *signature, PyObject *const *args, Py_ssize_t count,
                     PyObject *keywords, PyObject **values)
{
    if (count > signature->positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments (%zd given)",
                     signature->function, signature->positional, count);
        return -1;
    }
    for (int i = 0; i < signature->total; i++) {
        values[i] = i < count ? args[i] : NULL;
    }
    Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    if (named != 0 && intern(signature) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        if (take_keyword(signature, PyTuple_GET_ITEM(keywords, i), args[count + i], values) < 0) {
            return -1;
        }
    }
    for (int i = 0; i < signature->required; i++) {
        if (values[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s'",
                         signature->function, signature->keywords[i]);
            return -1;
        }
    }
    return 0;
}
