#include "types/array_view.h"

#include "core/device_sync.h"
#include "core/meminfo_object.h"
#include "support/arguments.h"
#include "support/ndarray.h"

/// Arguments of as_array(). Owns the pointers and references in it, except `source` and
/// `writeable`.
typedef struct view {
    PyObject *source;
    memrt_meminfo_object_t *base;
    PyArray_Dims shape;
    PyArray_Descr *descr;
    PyArray_Dims strides;
    Py_ssize_t offset;
    NPY_ORDER order;
    PyObject *writeable;
    npy_intp length; ///< length of the only dimension if no shape was given
} view_t;

static void clear_view(view_t *view)
{
    PyDimMem_FREE(view->shape.ptr);
    PyDimMem_FREE(view->strides.ptr);
    Py_XDECREF(view->descr);
    Py_XDECREF(view->base);
}

static int parse_view(PyObject *args, PyObject *kwargs, view_t *out)
{
    static char *keywords[] = {"mi",     "shape", "dtype",     "strides",
                               "offset", "order", "writeable", NULL};
    PyObject *shape = Py_None, *strides = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO&OnO&$O:as_array", keywords, &out->source,
                                     &shape, PyArray_DescrConverter2, &out->descr, &strides,
                                     &out->offset, memrt__order_argument, &out->order,
                                     &out->writeable)) {
        return -1;
    }
    /* GCOV_EXCL_BR_START: NumPy's descriptor of uint8 always exists */
    if (out->descr == NULL && (out->descr = PyArray_DescrFromType(NPY_UINT8)) == NULL) {
        /* GCOV_EXCL_BR_STOP */
        return -1;
    }
    out->shape.len = out->strides.len = -1;
    if ((shape != Py_None && !PyArray_IntpConverter(shape, &out->shape)) ||
        (strides != Py_None && !PyArray_IntpConverter(strides, &out->strides))) {
        return -1;
    }
    out->base = memrt__meminfo_from(out->source);
    return out->base != NULL ? 0 : -1;
}

/// Set the default shape: all whole elements from the offset to the end. -1 with ValueError if the
/// bytes are not a multiple of the element size.
static int fill_view_shape(view_t *view, size_t size)
{
    size_t itemsize = (size_t)PyDataType_ELSIZE(view->descr);
    if (view->shape.len >= 0) {
        return 0;
    }
    if (view->offset < 0 || (size_t)view->offset > size || itemsize == 0 ||
        (size - (size_t)view->offset) % itemsize != 0) {
        PyErr_Format(PyExc_ValueError,
                     "memory must hold a whole number of elements from offset to the end, got %zu "
                     "bytes, offset %zd and dtype %R: pass a shape",
                     size, view->offset, view->descr);
        return -1;
    }
    view->length = (npy_intp)((size - (size_t)view->offset) / itemsize);
    return 0;
}

/// Return the flags of the array; -1 with an exception.
static int compute_view_flags(const view_t *view, int readonly)
{
    int writeable = view->writeable == Py_None ? !readonly : PyObject_IsTrue(view->writeable);
    if (writeable < 0) {
        return -1;
    }
    if (writeable && readonly) {
        PyErr_SetString(PyExc_ValueError, "the memory is read-only: pass writeable=False");
        return -1;
    }
    return (writeable ? NPY_ARRAY_WRITEABLE : 0) |
           (view->order == NPY_FORTRANORDER ? NPY_ARRAY_F_CONTIGUOUS : 0);
}

static PyObject *build_view(view_t *view, memrt_meminfo_t *mi, int flags)
{
    int given = view->shape.len >= 0;
    int nd = given ? view->shape.len : 1;
    const npy_intp *dims = given ? view->shape.ptr : &view->length;
    const npy_intp *strides = view->strides.len >= 0 ? view->strides.ptr : NULL;
    if (strides != NULL && view->strides.len != nd) {
        PyErr_Format(PyExc_ValueError,
                     "strides must have one entry per dimension, got %d strides for %d dimensions",
                     view->strides.len, nd);
        return NULL;
    }
    if (memrt__device_prepare_host(mi) < 0 ||
        memrt__layout_check(memrt__api(), mi, view->descr, nd, dims, strides, view->offset) < 0) {
        return NULL;
    }
    Py_INCREF(view->base);
    Py_INCREF(view->descr);
    return memrt__array_over(memrt__api(), mi, (PyObject *)view->base, view->descr, nd, dims,
                             strides, view->offset, flags);
}

static PyObject *create_view_array(PyObject *module, PyObject *args, PyObject *kwargs)
{
    view_t view = {.order = NPY_CORDER, .writeable = Py_None};
    PyObject *array = NULL;
    (void)module;
    if (parse_view(args, kwargs, &view) == 0) {
        memrt_meminfo_t *mi = memrt__meminfo_get(view.base);
        int flags = mi != NULL ? compute_view_flags(&view, memrt__api()->readonly(mi)) : -1;
        if (flags >= 0 && fill_view_shape(&view, memrt__api()->size(mi)) == 0) {
            array = build_view(&view, mi, flags);
        }
    }
    clear_view(&view);
    return array;
}

PyDoc_STRVAR(
    as_array_doc,
    "as_array(mi, shape=None, dtype=None, strides=None, offset=0, order='C', *, writeable=None)\n"
    "--\n"
    "\n"
    "Create an array over the memory of a MemInfo, without a copy.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "mi : MemInfo\n"
    "    Buffer, or an object with ``__memrt_meminfo__``.\n"
    "shape : int or sequence of int, optional\n"
    "    Elements along each axis. None: one dimension, from `offset` to the end.\n"
    "dtype : dtype_like, optional\n"
    "    Data type of the elements. None: uint8.\n"
    "strides : sequence of int, optional\n"
    "    Bytes from one element to the next, for each axis. None: contiguous in `order`.\n"
    "offset : int, default 0\n"
    "    Bytes from the start of the buffer to the first element.\n"
    "order : {'C', 'F'}, default 'C'\n"
    "    Order of the elements in memory, if `strides` is None.\n"
    "writeable : bool, optional\n"
    "    Whether the array is writeable. None: writeable, unless the memory is read-only.\n"
    "\n"
    "Returns\n"
    "-------\n"
    "numpy.ndarray\n"
    "    Array whose base is the MemInfo.\n"
    "\n"
    "Raises\n"
    "------\n"
    "ValueError\n"
    "    An element lies outside the memory, or `writeable` is true for read-only memory.\n"
    "TypeError\n"
    "    The dtype holds references.\n"
    "BufferError\n"
    "    The memory is on a CUDA device.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> mi = memrt.alloc(24, zero=True)\n"
    ">>> memrt.as_array(mi, (3, 2), \"i4\")\n"
    "array([[0, 0],\n"
    "       [0, 0],\n"
    "       [0, 0]], dtype=int32)");

PyMethodDef memrt__array_view_methods[] = {
    {"as_array", MEMRT_KEYWORDS(create_view_array), as_array_doc},
    {NULL, NULL, 0, NULL},
};
