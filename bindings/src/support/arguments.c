#include "support/arguments.h"

#include <stdio.h>

#include "support/free_threading.h"
#include "support/ndarray.h"

/// Return the digits of a number, or its length in bits where Python refuses to write the digits.
static PyObject *format_digits(PyObject *number)
{
    PyObject *digits = PyObject_Str(number);
    if (digits != NULL || !PyErr_ExceptionMatches(PyExc_ValueError)) {
        return digits;
    }
    PyErr_Clear();
    PyObject *bits = PyObject_CallMethod(number, "bit_length", NULL);
    if (bits != NULL) {
        digits = PyUnicode_FromFormat("a number of %S bits", bits);
        Py_DECREF(bits);
    }
    return digits;
}

/// Raise an exception that ends with a number.
static void refuse_number(PyObject *kind, const char *rule, PyObject *number)
{
    PyObject *digits = format_digits(number);
    if (digits != NULL) {
        PyErr_Format(kind, "%s, got %U", rule, digits);
        Py_DECREF(digits);
    }
}

/// Return the integer behind `object` as a new reference. ValueError below 0.
static PyObject *read_natural(PyObject *object, const char *what)
{
    PyObject *number = PyNumber_Index(object);
    if (number == NULL) {
        return NULL;
    }
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow < 0 || (overflow == 0 && value < 0)) {
        char rule[64];
        snprintf(rule, sizeof(rule), "%s must be 0 or more", what);
        refuse_number(PyExc_ValueError, rule, number);
        Py_DECREF(number);
        return NULL;
    }
    return number;
}

int memrt__size_argument(PyObject *object, void *size)
{
    PyObject *number = read_natural(object, "number of bytes");
    if (number == NULL) {
        return 0;
    }
    size_t value = PyLong_AsSize_t(number);
    if (value == (size_t)-1 && PyErr_Occurred()) {
        refuse_number(PyExc_MemoryError, "number of bytes must fit the address space", number);
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
    /* GCOV_EXCL_BR_START: PyLong_AsSize_t() of an int raises OverflowError only */
    if (failed && !PyErr_ExceptionMatches(PyExc_OverflowError)) {
        /* GCOV_EXCL_BR_STOP */
        Py_DECREF(number);
        return 0;
    }
    if (failed || !is_alignment(value)) {
        char rule[64];
        snprintf(rule, sizeof(rule), "alignment must be a power of two from 1 to %zu bytes",
                 (size_t)MEMRT_ALIGN_MAX);
        refuse_number(PyExc_ValueError, rule, number);
        Py_DECREF(number);
        return 0;
    }
    Py_DECREF(number);
    *(size_t *)align = value;
    return 1;
}

int memrt__align_offset_argument(PyObject *object, void *offset)
{
    PyObject *number = read_natural(object, "align_offset");
    if (number == NULL) {
        return 0;
    }
    size_t value = PyLong_AsSize_t(number);
    if (PyErr_Occurred() != NULL || value % 8 != 0) {
        refuse_number(PyExc_ValueError, "align_offset must be a multiple of 8 below 2**64", number);
        Py_DECREF(number);
        return 0;
    }
    Py_DECREF(number);
    *(size_t *)offset = value;
    return 1;
}

int memrt__order_argument(PyObject *object, void *order)
{
    if (!PyArray_OrderConverter(object, order)) {
        return 0;
    }
    NPY_ORDER read = *(NPY_ORDER *)order;
    if (read != NPY_CORDER && read != NPY_FORTRANORDER) {
        PyErr_Format(PyExc_ValueError, "order must be 'C' or 'F', got %R", object);
        return 0;
    }
    return 1;
}

int memrt__address_argument(PyObject *object, void *address)
{
    PyObject *number = read_natural(object, "address");
    if (number == NULL) {
        return 0;
    }
    size_t value = PyLong_AsSize_t(number);
    if (value == (size_t)-1 && PyErr_Occurred()) {
        refuse_number(PyExc_ValueError, "address must fit the address space", number);
    }
    Py_DECREF(number);
    *(uintptr_t *)address = (uintptr_t)value;
    return !PyErr_Occurred();
}

PyObject *memrt__text(const char *name)
{
    return name == NULL ? Py_NewRef(Py_None)
                        : PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
}

int memrt__name_argument(PyObject *object, void *name)
{
    if (object == Py_None) {
        *(const char **)name = NULL;
        return 1;
    }
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "name must be a str or None, got %.200s",
                     Py_TYPE(object)->tp_name);
        return 0;
    }
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(object, &length);
    if (text == NULL) {
        return 0;
    }
    if (length > (Py_ssize_t)MEMRT_NAME_MAX || memchr(text, 0, (size_t)length) != NULL) {
        PyErr_Format(PyExc_ValueError,
                     "name must have at most %u bytes in UTF-8 and no zero byte, got %R",
                     MEMRT_NAME_MAX, object);
        return 0;
    }
    *(const char **)name = text;
    return 1;
}

/// Intern the parameter names of a signature that are not interned yet. -1 with an exception.
/// Several threads may store the same names at once.
static int intern_names(memrt_signature_t *signature)
{
    for (int i = MEMRT_SHARED_READ(signature->interned); i < signature->total; i++) {
        PyObject *name = PyUnicode_InternFromString(signature->keywords[i]);
        if (name == NULL) {
            return -1;
        }
        MEMRT_SHARED_WRITE(signature->names[i], name);
        MEMRT_SHARED_WRITE(signature->interned, i + 1);
    }
    return 0;
}

/// Return the position of the parameter `name`, or -1 without an exception. Names in a program's
/// source are interned, so the first loop usually finds them.
static int find_parameter(const memrt_signature_t *signature, PyObject *name)
{
    for (int i = 0; i < signature->total; i++) {
        if (MEMRT_SHARED_READ(signature->names[i]) == name) {
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

static int store_keyword(const memrt_signature_t *signature, PyObject *name, PyObject *value,
                         PyObject **values)
{
    int position = find_parameter(signature, name);
    if (position < 0) {
        PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                     signature->function, name);
        return -1;
    }
    if (values[position] != NULL) {
        PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'",
                     signature->function, name);
        return -1;
    }
    values[position] = value;
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
    if (named != 0 && intern_names(signature) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        if (store_keyword(signature, PyTuple_GET_ITEM(keywords, i), args[count + i], values) < 0) {
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
