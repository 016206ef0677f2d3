#include "types/array.h"

#include "core/current_policy.h"
#include "core/mem_handler.h"
#include "core/meminfo_object.h"
#include "support/arguments.h"
#include "support/errors.h"
#include "support/ndarray.h"

/// Maximum number of dimensions of a request without heap memory.
#define FEW 4

/// Arguments of empty() and zeros(). Owns `shape.ptr`, unless `shape.ptr` is `inline_dims`, and a
/// reference to `descr`.
typedef struct request {
    PyArray_Dims shape;
    npy_intp inline_dims[FEW];
    PyArray_Descr *descr;
    NPY_ORDER order;
    PyObject *policy;
    size_t align, align_offset;
    int zeroed;
} request_t;

static void clear_request(request_t *request)
{
    if (request->shape.ptr != request->inline_dims) {
        PyDimMem_FREE(request->shape.ptr);
    }
    Py_XDECREF(request->descr);
}

/// Read an exact int; 0 without an exception for any other object.
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

/// Read a shape that is an int or a tuple of at most FEW ints, as most shapes are. 0 without an
/// exception for any other shape.
static int read_short_shape(PyObject *shape, request_t *out)
{
    Py_ssize_t length = 1;
    if (PyTuple_CheckExact(shape)) {
        length = PyTuple_GET_SIZE(shape);
        for (Py_ssize_t i = 0; i < length; i++) {
            if (i == FEW || !read_int(PyTuple_GET_ITEM(shape, i), &out->inline_dims[i])) {
                return 0;
            }
        }
    } else if (!read_int(shape, &out->inline_dims[0])) {
        return 0;
    }
    out->shape = (PyArray_Dims){out->inline_dims, (int)length};
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

static int parse_request(memrt_signature_t *signature, PyObject *const *args, Py_ssize_t count,
                         PyObject *names, request_t *out)
{
    enum { SHAPE, DTYPE, ORDER, POLICY, ALIGN, ALIGN_OFFSET, TOTAL };
    PyObject *values[TOTAL];
    if (memrt__arguments(signature, args, count, names, values) < 0) {
        return -1;
    }
    out->policy = values[POLICY] != NULL ? values[POLICY] : Py_None;
    int good = (read_short_shape(values[SHAPE], out) ||
                PyArray_IntpConverter(values[SHAPE], &out->shape)) &&
               read_descr(values[DTYPE], &out->descr) &&
               (values[ORDER] == NULL || memrt__order_argument(values[ORDER], &out->order)) &&
               (values[ALIGN] == NULL || memrt__align_argument(values[ALIGN], &out->align)) &&
               (values[ALIGN_OFFSET] == NULL ||
                memrt__align_offset_argument(values[ALIGN_OFFSET], &out->align_offset));
    return good ? 0 : -1;
}

/// Compute the bytes of the array. -1 with ValueError for negative dimensions or overflow.
static int compute_request_bytes(const request_t *request, size_t *nbytes)
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
        PyErr_SetString(PyExc_ValueError,
                        "array is too big: the number of bytes exceeds the address space");
        return -1;
    }
    *nbytes = empty ? 0 : (size_t)product;
    return 0;
}

static PyObject *create_meminfo_array(request_t *request, PyObject *handler, size_t nbytes)
{
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .policy = memrt__handler_policy(handler),
                                   .alignment = request->align,
                                   .zeroed = request->zeroed,
                                   .align_offset = request->align_offset};
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

static PyObject *create_under_handler(request_t *request, PyObject *handler)
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

/// Create the array in a new context with `handler` in force. Leaving a context never fails, but
/// restoring a handler may.
static PyObject *create_in_new_context(request_t *request, PyObject *handler)
{
    PyObject *context = PyContext_CopyCurrent();
    /* GCOV_EXCL_BR_START: no thread has entered a new copy of a context */
    if (context == NULL || PyContext_Enter(context) < 0) {
        /* GCOV_EXCL_BR_STOP */
        Py_XDECREF(context);
        return NULL;
    }
    PyObject *array = create_under_handler(request, handler);
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    (void)PyContext_Exit(context); /* fails only for a context that was not entered */
    memrt__pending_restore(&pending);
    Py_DECREF(context);
    return array;
}

/// Let NumPy create the array through memrt's handler. NumPy then clears references in the elements
/// at the end of the array.
static PyObject *create_numpy_array(request_t *request, PyObject *handler)
{
    if (request->align > memrt__api()->policy_alignment(memrt__handler_policy(handler))) {
        PyErr_Format(PyExc_ValueError,
                     "alignment for dtype %R must be at most the alignment of the policy, got %zu: "
                     "create a memrt.Policy with a larger alignment",
                     request->descr, request->align);
        return NULL;
    }
    if (request->align_offset != 0) {
        PyErr_Format(PyExc_ValueError, "align_offset for dtype %R must be 0, got %zu",
                     request->descr, request->align_offset);
        return NULL;
    }
    return create_in_new_context(request, handler);
}

static PyObject *create_array(request_t *request)
{
    size_t nbytes;
    if (compute_request_bytes(request, &nbytes) < 0) {
        return NULL;
    }
    PyObject *handler = memrt__current_handler_for(request->policy);
    if (handler == NULL) {
        return NULL;
    }
    /* NumPy chooses the element size of a dtype without a size, like "S". */
    int numpy_must =
        memrt_descr_has_references(request->descr) || PyDataType_ELSIZE(request->descr) == 0;
    PyObject *array = numpy_must ? create_numpy_array(request, handler)
                                 : create_meminfo_array(request, handler, nbytes);
    Py_DECREF(handler);
    return array;
}

static PyObject *create_from_arguments(memrt_signature_t *signature, PyObject *const *args,
                                       Py_ssize_t count, PyObject *names, int zeroed)
{
    request_t request = {.order = NPY_CORDER, .zeroed = zeroed};
    PyObject *array =
        parse_request(signature, args, count, names, &request) == 0 ? create_array(&request) : NULL;
    clear_request(&request);
    return array;
}

static const char *const parameters[] = {"shape",  "dtype",     "order",
                                         "policy", "alignment", "align_offset"};

static PyObject *create_empty(PyObject *module, PyObject *const *args, Py_ssize_t count,
                              PyObject *names)
{
    static memrt_signature_t signature = {
        .function = "empty", .keywords = parameters, .total = 6, .positional = 3, .required = 1};
    (void)module;
    return create_from_arguments(&signature, args, count, names, 0);
}

static PyObject *create_zeros(PyObject *module, PyObject *const *args, Py_ssize_t count,
                              PyObject *names)
{
    static memrt_signature_t signature = {
        .function = "zeros", .keywords = parameters, .total = 6, .positional = 3, .required = 1};
    (void)module;
    return create_from_arguments(&signature, args, count, names, 1);
}

PyDoc_STRVAR(
    empty_doc,
    "empty(shape, dtype=None, order='C', *, policy=None, alignment=None, align_offset=0)\n"
    "--\n"
    "\n"
    "Create an array with undefined contents in memory of memrt.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "shape : int or sequence of int\n"
    "    Elements along each axis.\n"
    "dtype : dtype_like, optional\n"
    "    Data type of the elements. None: float64.\n"
    "order : {'C', 'F'}, default 'C'\n"
    "    Order of the elements in memory: row-major or column-major.\n"
    "policy : Policy, optional\n"
    "    Policy that allocates and accounts for the memory. None: the policy in force in this\n"
    "    context, else the default policy.\n"
    "alignment : int, optional\n"
    "    Bytes: a power of two up to 2**30. The address is a multiple of `alignment` and of\n"
    "    the alignment of the policy. None: the alignment of the policy alone.\n"
    "align_offset : int, default 0\n"
    "    Byte of the data whose address has the alignment, instead of the first byte: a\n"
    "    multiple of 8. The alignment must then be at most 32768.\n"
    "\n"
    "Returns\n"
    "-------\n"
    "numpy.ndarray\n"
    "    New array. The base of the array is the MemInfo.\n"
    "\n"
    "Raises\n"
    "------\n"
    "ValueError\n"
    "    A shape, order or alignment is out of range.\n"
    "OutOfMemoryError\n"
    "    Memory or a limit is exhausted.\n"
    "\n"
    "Notes\n"
    "-----\n"
    "Ownership: arrays and views hold a reference to the MemInfo. Arrays whose elements hold\n"
    "references (objects, strings of variable width) own the data: NumPy allocates the data\n"
    "through the handler of the policy.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> image = memrt.empty((480, 640), \"f4\", alignment=4096)\n"
    ">>> image.base.nbytes, image.ctypes.data % 4096\n"
    "(1228800, 0)");

PyDoc_STRVAR(
    zeros_doc,
    "zeros(shape, dtype=None, order='C', *, policy=None, alignment=None, align_offset=0)\n"
    "--\n"
    "\n"
    "Create an array of zeros in memory of memrt.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "shape : int or sequence of int\n"
    "    Elements along each axis.\n"
    "dtype : dtype_like, optional\n"
    "    Data type of the elements. None: float64.\n"
    "order : {'C', 'F'}, default 'C'\n"
    "    Order of the elements in memory: row-major or column-major.\n"
    "policy : Policy, optional\n"
    "    Policy that allocates and accounts for the memory. None: the policy in force in this\n"
    "    context, else the default policy.\n"
    "alignment : int, optional\n"
    "    Bytes: a power of two up to 2**30. The address is a multiple of `alignment` and of\n"
    "    the alignment of the policy. None: the alignment of the policy alone.\n"
    "align_offset : int, default 0\n"
    "    Byte of the data whose address has the alignment, instead of the first byte: a\n"
    "    multiple of 8. The alignment must then be at most 32768.\n"
    "\n"
    "Returns\n"
    "-------\n"
    "numpy.ndarray\n"
    "    New array. The base of the array is the MemInfo.\n"
    "\n"
    "Raises\n"
    "------\n"
    "ValueError\n"
    "    A shape, order or alignment is out of range.\n"
    "OutOfMemoryError\n"
    "    Memory or a limit is exhausted.\n"
    "\n"
    "See Also\n"
    "--------\n"
    "empty : Create an array with undefined contents.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> memrt.zeros(3, int)\n"
    "array([0, 0, 0])");

PyMethodDef memrt__array_methods[] = {
    {"empty", MEMRT_FAST_KEYWORDS(create_empty), empty_doc},
    {"zeros", MEMRT_FAST_KEYWORDS(create_zeros), zeros_doc},
    {NULL, NULL, 0, NULL},
};
