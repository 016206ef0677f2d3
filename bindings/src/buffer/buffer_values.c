#include "buffer/buffer_values.h"

#include <string.h>

int memrt__buffer_store(const memrt_buffer_object_t *self, PyObject *value, void *out)
{
    if (self->descr->byteorder == '>' || !PyTypeNum_ISNUMBER(self->descr->type_num)) {
        return 0;
    }
    if (self->descr->type_num == NPY_DOUBLE && PyFloat_CheckExact(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        memcpy(out, &number, sizeof(number));
        return 1;
    }
    int is_int64 = self->descr->type_num == NPY_INT64, is_byte = self->descr->type_num == NPY_UINT8;
    if (!(is_int64 || is_byte) || !PyLong_CheckExact(value)) {
        return 0;
    }
    int overflow;
    int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0 || (is_byte && (number < 0 || number > UINT8_MAX))) {
        return 0; /* NumPy decides */
    }
    uint8_t byte = (uint8_t)number;
    memcpy(out, is_byte ? (const void *)&byte : (const void *)&number, self->itemsize);
    return 1;
}

/// Return the array if it has `ndim` dimensions, else NULL with ValueError. Steals the reference.
static PyArrayObject *require_dimensions(PyArrayObject *array, int ndim, const char *rule)
{
    if (array != NULL && PyArray_NDIM(array) != ndim) {
        PyErr_Format(PyExc_ValueError, rule, PyArray_NDIM(array));
        Py_CLEAR(array);
    }
    return array;
}

PyArrayObject *memrt__buffer_value(const memrt_buffer_object_t *self, PyObject *value)
{
    Py_INCREF(self->descr);
    return require_dimensions(
        (PyArrayObject *)PyArray_FromAny(value, self->descr, 0, 0, NPY_ARRAY_CARRAY_RO, NULL), 0,
        "value must be one item, got %d dimensions: use extend for several items");
}

PyArrayObject *memrt__buffer_values(const memrt_buffer_object_t *self, PyObject *values)
{
    Py_INCREF(self->descr);
    if (PyIter_Check(values)) {
        return (PyArrayObject *)PyArray_FromIter(values, self->descr, -1);
    }
    int flags = NPY_ARRAY_CARRAY_RO;
    if (PyArray_Check(values)) {
        PyArrayObject *array = (PyArrayObject *)values;
        if (!PyArray_CanCastArrayTo(array, self->descr, NPY_SAME_KIND_CASTING)) {
            PyErr_Format(PyExc_TypeError, "values must be of the same kind as dtype %R, got %R",
                         self->descr, PyArray_DESCR(array));
            Py_DECREF(self->descr);
            return NULL;
        }
        flags |= NPY_ARRAY_FORCECAST;
    }
    return require_dimensions(
        (PyArrayObject *)PyArray_FromAny(values, self->descr, 0, 0, flags, NULL), 1,
        "values must have one dimension, got %d: use ravel");
}
