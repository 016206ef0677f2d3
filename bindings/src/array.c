#include "array.h"

#include "argument.h"
#include "errors.h"
#include "handler.h"
#include "meminfo.h"
#include "ndarray.h"
#include "placement.h"

/// Dimensions that a request has room for without memory of its own.
#define FEW 4

/// What empty() and zeros() were asked for. Holds `shape.ptr`, unless that is `few`, and a
/// reference to `descr`.
typedef struct request {
    PyArray_Dims shape;
    npy_intp few[FEW];
    PyArray_Descr *descr;
    NPY_ORDER order;
    PyObject *policy;
    size_t align;
    int zeroed;
} request_t;

static void request_clear(request_t *request)
{
    if (request->shape.ptr != request->few) {
        PyDimMem_FREE(request->shape.ptr);
    }
    Py_XDECREF(request->descr);
}

/// Read a plain int; 0 without an exception for anything else.
static int read_int(PyObject *object, npy_intp *out)
{
    if (!PyLong_CheckExact(object)) {
        return 0;
    }
    *out = PyLong_AsSsize_t(object);
    if (*out == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

/// Read an int or a short tuple of ints, as most shapes are; 0 without an exception for anything
/// else.
static int read_plain_shape(PyObject *shape, request_t *out)
{
    Py_ssize_t length = 1;
    if (PyTuple_CheckExact(shape)) {
        length = PyTuple_GET_SIZE(shape);
        for (Py_ssize_t i = 0; i < length; i++) {
            if (i == FEW || !read_int(PyTuple_GET_ITEM(shape, i), &out->few[i])) {
                return 0;
            }
        }
    } else if (!read_int(shape, &out->few[0])) {
        return 0;
    }
    out->shape = (PyArray_Dims){out->few, (int)length};
    return 1;
}

static int read_descr(PyObject *dtype, PyArray_Descr **out)
{
    if (dtype == NULL) {
        *out = PyArray_DescrFromType(NPY_DEFAULT_TYPE);
        return *out != NULL;
    }
    return PyArray_DescrConverter(dtype, out);
}

static int request_parse(memrt_signature_t *signature, PyObject *const *args, Py_ssize_t count,
                         PyObject *names, request_t *out)
{
    enum { SHAPE, DTYPE, ORDER, POLICY, ALIGN, TOTAL };
    PyObject *values[TOTAL];
    if (memrt__arguments(signature, args, count, names, values) < 0) {
        return -1;
    }
    out->policy = values[POLICY] != NULL ? values[POLICY] : Py_None;
    int good = (read_plain_shape(values[SHAPE], out) ||
                PyArray_IntpConverter(values[SHAPE], &out->shape)) &&
               read_descr(values[DTYPE], &out->descr) &&
               (values[ORDER] == NULL || PyArray_OrderConverter(values[ORDER], &out->order)) &&
               (values[ALIGN] == NULL || memrt__align_argument(values[ALIGN], &out->align));
    return good ? 0 : -1;
}

/// Bytes of the array in `*nbytes`; -1 with ValueError when there cannot be one like that.
static int request_nbytes(const request_t *request, size_t *nbytes)
{
    npy_intp product = (npy_intp)PyDataType_ELSIZE(request->descr);
    int empty = 0, overflow = 0;
    for (int i = 0; i < request->shape.len; i++) {
        npy_intp dim = request->shape.ptr[i];
        if (dim < 0) {
            PyErr_SetString(PyExc_ValueError, "negative dimensions are not allowed");
            return -1;
        }
        empty |= dim == 0;
        overflow |= dim != 0 && __builtin_mul_overflow(product, dim, &product);
    }
    if (overflow) {
        PyErr_SetString(PyExc_ValueError, "array is too big: its bytes exceed the address space");
        return -1;
    }
    *nbytes = empty ? 0 : (size_t)product;
    return 0;
}

static PyObject *over_meminfo(request_t *request, PyObject *handler, size_t nbytes)
{
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .policy = memrt__handler_policy(handler),
                                   .alignment = request->align,
                                   .zeroed = request->zeroed};
    PyObject *base = memrt__meminfo_allocate(nbytes, &options);
    if (base == NULL) {
        return NULL;
    }
    int flags = NPY_ARRAY_WRITEABLE;
    if (request->order == NPY_FORTRANORDER) {
        flags |= NPY_ARRAY_F_CONTIGUOUS;
    }
    Py_INCREF(request->descr);
    return memrt__array_over(memrt__api(), ((memrt_meminfo_object_t *)base)->mi, base,
                             request->descr, request->shape.len, request->shape.ptr, NULL, 0,
                             flags);
}

static PyObject *make_under(request_t *request, PyObject *handler)
{
    int fortran = request->order == NPY_FORTRANORDER;
    PyObject *before = PyDataMem_SetHandler(handler);
    if (before == NULL) {
        return NULL;
    }
    Py_DECREF(before);
    Py_INCREF(request->descr);
    return request->zeroed
               ? PyArray_Zeros(request->shape.len, request->shape.ptr, request->descr, fortran)
               : PyArray_Empty(request->shape.len, request->shape.ptr, request->descr, fortran);
}

/// In a context of its own: to leave one never fails, to put a handler back may.
static PyObject *make_aside(request_t *request, PyObject *handler)
{
    PyObject *context = PyContext_CopyCurrent();
    if (context == NULL || PyContext_Enter(context) < 0) {
        Py_XDECREF(context);
        return NULL;
    }
    PyObject *array = make_under(request, handler);
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    (void)PyContext_Exit(context); /* fails for a context that was not entered only */
    memrt__pending_restore(&pending);
    Py_DECREF(context);
    return array;
}

/// Let NumPy itself make it, by memrt's handler: it then clears the references in the end.
static PyObject *by_numpy(request_t *request, PyObject *handler)
{
    if (request->align > memrt__api()->policy_alignment(memrt__handler_policy(handler))) {
        PyErr_Format(PyExc_ValueError,
                     "dtype %R gets its memory by the policy's handler: make a memrt.Policy with "
                     "alignment %zu for it",
                     request->descr, request->align);
        return NULL;
    }
    return make_aside(request, handler);
}

static PyObject *create_checked(request_t *request)
{
    size_t nbytes;
    if (request_nbytes(request, &nbytes) < 0) {
        return NULL;
    }
    PyObject *handler = memrt__handler_for(request->policy);
    if (handler == NULL) {
        return NULL;
    }
    /* A dtype without a size, like "S", is given one by NumPy. */
    int numpy_must =
        memrt_descr_has_references(request->descr) || PyDataType_ELSIZE(request->descr) == 0;
    PyObject *array =
        numpy_must ? by_numpy(request, handler) : over_meminfo(request, handler, nbytes);
    Py_DECREF(handler);
    return array;
}

static PyObject *create(memrt_signature_t *signature, PyObject *const *args, Py_ssize_t count,
                        PyObject *names, int zeroed)
{
    request_t request = {.order = NPY_CORDER, .zeroed = zeroed};
    PyObject *array = request_parse(signature, args, count, names, &request) == 0
                          ? create_checked(&request)
                          : NULL;
    request_clear(&request);
    return array;
}

static const char *const parameters[] = {"shape", "dtype", "order", "policy", "align"};

static PyObject *empty(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static memrt_signature_t signature = {
        .function = "empty", .keywords = parameters, .total = 5, .positional = 3, .required = 1};
    (void)module;
    return create(&signature, args, count, names, 0);
}

static PyObject *zeros(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static memrt_signature_t signature = {
        .function = "zeros", .keywords = parameters, .total = 5, .positional = 3, .required = 1};
    (void)module;
    return create(&signature, args, count, names, 1);
}

/* --- Over memory that is there. --- */

/// What as_array() was asked for. Holds the pointers and references in it.
typedef struct view {
    PyObject *source;
    memrt_meminfo_object_t *base;
    PyArray_Dims shape;
    PyArray_Descr *descr;
    PyArray_Dims strides;
    Py_ssize_t offset;
    NPY_ORDER order;
    PyObject *writeable;
    npy_intp length; ///< the only dimension when no shape was given
} view_t;

static void view_clear(view_t *view)
{
    PyDimMem_FREE(view->shape.ptr);
    PyDimMem_FREE(view->strides.ptr);
    Py_XDECREF(view->descr);
    Py_XDECREF(view->base);
}

static int view_parse(PyObject *args, PyObject *kwargs, view_t *out)
{
    static char *keywords[] = {"mi",     "shape", "dtype",     "strides",
                               "offset", "order", "writeable", NULL};
    PyObject *shape = Py_None, *strides = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO&OnO&O:as_array", keywords, &out->source,
                                     &shape, PyArray_DescrConverter2, &out->descr, &strides,
                                     &out->offset, PyArray_OrderConverter, &out->order,
                                     &out->writeable)) {
        return -1;
    }
    if (out->descr == NULL && (out->descr = PyArray_DescrFromType(NPY_UINT8)) == NULL) {
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

/// Without a shape: all whole elements from the offset to the end.
static int view_fill_shape(view_t *view, size_t size)
{
    size_t itemsize = (size_t)PyDataType_ELSIZE(view->descr);
    if (view->shape.len >= 0) {
        return 0;
    }
    if (view->offset < 0 || (size_t)view->offset > size || itemsize == 0 ||
        (size - (size_t)view->offset) % itemsize != 0) {
        PyErr_Format(PyExc_ValueError,
                     "%zu bytes from offset %zd on are no whole number of elements of dtype %R: "
                     "give a shape",
                     size, view->offset, view->descr);
        return -1;
    }
    view->length = (npy_intp)((size - (size_t)view->offset) / itemsize);
    return 0;
}

/// The flags of the array; -1 with an exception.
static int view_flags(const view_t *view, int readonly)
{
    int writeable = view->writeable == Py_None ? !readonly : PyObject_IsTrue(view->writeable);
    if (writeable < 0) {
        return -1;
    }
    if (writeable && readonly) {
        PyErr_SetString(PyExc_ValueError, "the memory is read-only: ask for writeable=False");
        return -1;
    }
    return (writeable ? NPY_ARRAY_WRITEABLE : 0) |
           (view->order == NPY_FORTRANORDER ? NPY_ARRAY_F_CONTIGUOUS : 0);
}

static PyObject *view_build(view_t *view, memrt_meminfo_t *mi, int flags)
{
    int given = view->shape.len >= 0;
    int nd = given ? view->shape.len : 1;
    const npy_intp *dims = given ? view->shape.ptr : &view->length;
    const npy_intp *strides = view->strides.len >= 0 ? view->strides.ptr : NULL;
    if (strides != NULL && view->strides.len != nd) {
        PyErr_Format(PyExc_ValueError, "%d strides do not fit %d dimensions", view->strides.len,
                     nd);
        return NULL;
    }
    if (memrt__placement_for_host(mi) < 0 ||
        memrt__layout_check(memrt__api(), mi, view->descr, nd, dims, strides, view->offset) < 0) {
        return NULL;
    }
    Py_INCREF(view->base);
    Py_INCREF(view->descr);
    return memrt__array_over(memrt__api(), mi, (PyObject *)view->base, view->descr, nd, dims,
                             strides, view->offset, flags);
}

static PyObject *as_array(PyObject *module, PyObject *args, PyObject *kwargs)
{
    view_t view = {.order = NPY_CORDER, .writeable = Py_None};
    PyObject *array = NULL;
    (void)module;
    if (view_parse(args, kwargs, &view) == 0) {
        memrt_meminfo_t *mi = memrt__meminfo_get(view.base);
        int flags = mi != NULL ? view_flags(&view, memrt__api()->readonly(mi)) : -1;
        if (flags >= 0 && view_fill_shape(&view, memrt__api()->size(mi)) == 0) {
            array = view_build(&view, mi, flags);
        }
    }
    view_clear(&view);
    return array;
}

PyDoc_STRVAR(
    empty_doc,
    "empty(shape, dtype=float, order='C', *, policy=None, align=None) -> ndarray\n\n"
    "New array in memory that memrt manages, contents undefined. Its base is the MemInfo.\n"
    "policy: a memrt.Policy; None: the one in force in this context, else the default one.\n"
    "align: of the data in bytes, a power of two; the policy's alignment holds in any case.\n"
    "Arrays whose elements hold references (object, variable-width strings) are made by\n"
    "NumPy through the policy's handler and own their data.\n"
    "Raises ValueError, MemoryError.");

PyDoc_STRVAR(zeros_doc,
             "zeros(shape, dtype=float, order='C', *, policy=None, align=None) -> ndarray"
             "\n\nLike empty(), filled with zeros.");

PyDoc_STRVAR(
    as_array_doc,
    "as_array(mi, shape=None, dtype=uint8, strides=None, offset=0, order='C',"
    " writeable=None) -> ndarray\n\n"
    "An array over the memory of a MemInfo, without a copy; the MemInfo is its base.\n"
    "shape None: one dimension, from `offset` to the end. strides and offset in bytes;\n"
    "strides None: contiguous in `order`. writeable None: unless the memory is read-only.\n"
    "Raises ValueError when an element would lie outside the memory, or when read-only\n"
    "memory is asked to be writeable; TypeError for dtypes that hold references;\n"
    "BufferError for memory of a CUDA device.");

PyMethodDef memrt__array_methods[] = {
    {"empty", MEMRT_FAST_KEYWORDS(empty), empty_doc},
    {"zeros", MEMRT_FAST_KEYWORDS(zeros), zeros_doc},
    {"as_array", MEMRT_KEYWORDS(as_array), as_array_doc},
    {NULL, NULL, 0, NULL},
};
