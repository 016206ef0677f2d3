#include "numba/array.h"

#include <string.h>

#include "core/owner.h"
#include "core/tracemalloc.h"
#include "types/nrt_meminfo.h"

_Static_assert(offsetof(memrt_nrt_array_t, meminfo) == 0, "Numba's ArrayModel: meminfo");
_Static_assert(offsetof(memrt_nrt_array_t, parent) == 8, "Numba's ArrayModel: parent");
_Static_assert(offsetof(memrt_nrt_array_t, nitems) == 16, "Numba's ArrayModel: nitems");
_Static_assert(offsetof(memrt_nrt_array_t, itemsize) == 24, "Numba's ArrayModel: itemsize");
_Static_assert(offsetof(memrt_nrt_array_t, data) == 32, "Numba's ArrayModel: data");
_Static_assert(offsetof(memrt_nrt_array_t, shape_and_strides) == 40, "Numba's ArrayModel: shape");

memrt_meminfo_t *memrt__nrt_meminfo_new_from_pyobject(void *data, PyObject *owner)
{
    memrt_meminfo_t *mi;
    memrt_owner_t *keeper = memrt__owner_new(owner, NULL, 0, 0);
    if (keeper == NULL) {
        return NULL;
    }
    memrt_new_options_t options = memrt__owner_options(keeper, NULL);
    if (memrt__api()->meminfo_adopt(data, 0, &options, &mi) != MEMRT_OK) {
        memrt__owner_discard(keeper);
        PyErr_NoMemory();
        return NULL;
    }
    return mi;
}

/// Fill in shape and strides, and return the number of elements.
static npy_intp fill_shape_and_strides(memrt_nrt_array_t *out, int ndim, const npy_intp *shape,
                                       const npy_intp *strides)
{
    npy_intp nitems = 1;
    for (int i = 0; i < ndim; i++) {
        nitems *= shape[i];
        out->shape_and_strides[i] = shape[i];
        out->shape_and_strides[ndim + i] = strides[i];
    }
    return nitems;
}

int memrt__nrt_adapt_ndarray_from_python(PyObject *object, memrt_nrt_array_t *out)
{
    if (!PyArray_Check(object)) {
        return -1;
    }
    PyArrayObject *array = (PyArrayObject *)object;
    memrt_meminfo_t *mi = memrt__nrt_meminfo_new_from_pyobject(PyArray_DATA(array), object);
    if (mi == NULL) {
        return -1;
    }
    out->meminfo = mi;
    out->parent = object;
    out->itemsize = (npy_intp)PyArray_ITEMSIZE(array);
    out->data = PyArray_DATA(array);
    out->nitems = fill_shape_and_strides(out, PyArray_NDIM(array), PyArray_DIMS(array),
                                         PyArray_STRIDES(array));
    return 0;
}

void memrt__nrt_adapt_buffer_from_python(const Py_buffer *buffer, memrt_nrt_array_t *out)
{
    out->meminfo =
        buffer->obj != NULL ? memrt__nrt_meminfo_new_from_pyobject(buffer->buf, buffer->obj) : NULL;
    out->parent = buffer->obj;
    out->itemsize = buffer->itemsize;
    out->data = buffer->buf;
    out->nitems = fill_shape_and_strides(out, buffer->ndim, buffer->shape, buffer->strides);
}

/// Return whether `parent` is an array with the same data, shape, strides and dtype as `array`.
/// Writeability is not compared. -1 with an exception.
static int has_equal_parent(const memrt_nrt_array_t *array, int ndim, PyArray_Descr *descr)
{
    if (array->parent == NULL || !PyArray_Check(array->parent)) {
        return 0;
    }
    PyArrayObject *parent = (PyArrayObject *)array->parent;
    size_t extents = (size_t)ndim * sizeof(npy_intp);
    if (PyArray_DATA(parent) != array->data || PyArray_NDIM(parent) != ndim ||
        memcmp(PyArray_DIMS(parent), array->shape_and_strides, extents) != 0 ||
        memcmp(PyArray_STRIDES(parent), array->shape_and_strides + ndim, extents) != 0) {
        return 0;
    }
    return PyObject_RichCompareBool((PyObject *)PyArray_DESCR(parent), (PyObject *)descr, Py_EQ);
}

/// Create the base of a new array: a `_MemInfo` with its own reference. NULL with an exception, or
/// without an exception if the data has no owner.
static PyObject *create_base(const memrt_nrt_array_t *array)
{
    if (array->meminfo == NULL ||
        (!memrt__tracemalloc_is_off() &&
         memrt__tracemalloc_register_allocated(memrt__api(), array->meminfo) < 0)) {
        return NULL;
    }
    memrt__api()->acquire(array->meminfo);
    return memrt__nrt_meminfo_object(array->meminfo);
}

/// Create an array of compiled code's layout. Steals `base`, also on failure; `base` may be NULL.
static PyObject *create_array(const memrt_nrt_array_t *array, PyTypeObject *type, int ndim,
                              int flags, PyArray_Descr *descr, PyObject *base)
{
    const npy_intp *shape = array->shape_and_strides;
    Py_INCREF(descr);
    PyObject *result =
        PyArray_NewFromDescr(type, descr, ndim, shape, shape + ndim, array->data, flags, base);
    if (result == NULL) {
        Py_XDECREF(base);
        return NULL;
    }
    if (base != NULL && PyArray_SetBaseObject((PyArrayObject *)result, base) < 0) {
        Py_DECREF(result); /* SetBaseObject steals `base`, also on failure */
        return NULL;
    }
    return result;
}

/// Check the type and dtype. Compiled code passes NULL, with a pending exception, when it could not
/// load one of them.
static int can_box(const PyTypeObject *type, const PyArray_Descr *descr)
{
    if (type != NULL && descr != NULL && PyArray_DescrCheck(descr)) {
        return 1;
    }
    if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError, "expected a type and a dtype to box an array, got %.200s",
                     type == NULL || descr == NULL ? "NULL" : Py_TYPE(descr)->tp_name);
    }
    return 0;
}

PyObject *memrt__nrt_adapt_ndarray_to_python_acqref(const memrt_nrt_array_t *array,
                                                    PyTypeObject *type, int ndim, int writeable,
                                                    PyArray_Descr *descr)
{
    if (!can_box(type, descr)) {
        return NULL;
    }
    int same = has_equal_parent(array, ndim, descr);
    if (same != 0) {
        return same > 0 ? Py_NewRef(array->parent) : NULL;
    }
    PyObject *base = create_base(array);
    if (base == NULL && array->meminfo != NULL) {
        return NULL;
    }
    return create_array(array, type, ndim, writeable ? NPY_ARRAY_WRITEABLE : 0, descr, base);
}
