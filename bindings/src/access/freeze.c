#include "access/freeze.h"

#include "core/meminfo_object.h"
#include "support/errors.h"
#include "support/ndarray.h"

/// Return the reason of a refusal that leaves arrays with their flag only, or NULL for a failure.
static const char *get_reason(memrt_status_t status)
{
    switch (status) {
    case MEMRT_ENOENT:
        return "no whole page belongs to the array alone";
    case MEMRT_ENOTSUP:
        return "the memory is adopted, resizable, on a device, or from an allocator of the user";
    case MEMRT_ELIMIT:
        return "4,096 buffers are frozen";
    default:
        return NULL;
    }
}

/// Return the MemInfo of an argument, borrowed. NULL with an exception.
static memrt_meminfo_t *get_argument(PyObject *argument)
{
    if (!memrt__meminfo_check(argument)) {
        PyErr_Format(PyExc_TypeError, "expected a memrt.MemInfo, got %.200s",
                     Py_TYPE(argument)->tp_name);
        return NULL;
    }
    return memrt__meminfo_get((memrt_meminfo_object_t *)argument);
}

/// Return the lowest address of the elements of an array.
static const char *get_first_byte(PyArrayObject *array)
{
    const char *first = PyArray_BYTES(array);
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        npy_intp stride = PyArray_STRIDE(array, i);
        first += stride < 0 ? (PyArray_DIM(array, i) - 1) * stride : 0;
    }
    return first;
}

/// Return whether the elements of an array fill the data of its buffer.
static int fills_buffer(PyArrayObject *array, memrt_meminfo_t *mi)
{
    const memrt_api_t *api = memrt__api();
    return get_first_byte(array) == api->get_data(mi) &&
           (size_t)PyArray_NBYTES(array) == api->size(mi);
}

/// Protect the pages of a MemInfo. Returns the bytes or a reason, as freeze_pages().
static PyObject *freeze_meminfo(memrt_meminfo_t *mi)
{
    size_t bytes;
    memrt_status_t status = memrt__api()->freeze(mi, &bytes);
    if (status == MEMRT_OK) {
        PyObject *result = PyLong_FromSize_t(bytes);
        if (result == NULL) { /* GCOV_EXCL_BR_LINE: ./dev verify failures */
            (void)memrt__api()->thaw(mi);
        }
        return result;
    }
    const char *reason = get_reason(status);
    return reason != NULL
               ? PyUnicode_FromString(reason)
               : memrt__raise(status, "cannot protect pages of %zu bytes", memrt__api()->size(mi));
}

static PyObject *freeze_pages(PyObject *module, PyObject *args)
{
    PyObject *object;
    PyArrayObject *array;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!:freeze_pages", &object, &PyArray_Type, &array)) {
        return NULL;
    }
    memrt_meminfo_t *mi = get_argument(object);
    if (mi == NULL) {
        return NULL;
    }
    if (PyDataType_REFCHK(PyArray_DESCR(array))) {
        return PyUnicode_FromString("NumPy writes to an array of objects when it ends");
    }
    if (PyArray_SIZE(array) == 0) {
        return PyUnicode_FromString("the array has no elements");
    }
    if (!fills_buffer(array, mi)) {
        return PyUnicode_FromFormat("the array is a part of a buffer of %zu bytes",
                                    memrt__api()->size(mi));
    }
    return freeze_meminfo(mi);
}

static PyObject *thaw_pages(PyObject *module, PyObject *argument)
{
    (void)module;
    memrt_meminfo_t *mi = get_argument(argument);
    if (mi == NULL) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->thaw(mi);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot end the protection of %zu bytes",
                            memrt__api()->size(mi));
    }
    Py_RETURN_NONE;
}

PyMethodDef memrt__freeze_methods[] = {
    {"freeze_pages", freeze_pages, METH_VARARGS,
     "freeze_pages(mi, array) -> int or str\n\n"
     "Protect the pages of the MemInfo of an array, and return the protected bytes, or the reason\n"
     "why no page can be protected. MemoryError: the system has no memory for the change."},
    {"thaw_pages", thaw_pages, METH_O, "thaw_pages(mi)\n\nEnd one call of freeze_pages()."},
    {NULL, NULL, 0, NULL},
};
