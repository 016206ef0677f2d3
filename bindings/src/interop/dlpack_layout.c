#include "interop/dlpack_layout.h"

#include "core/device_sync.h"

_Static_assert(sizeof(npy_intp) == sizeof(int64_t), "extents are passed without conversion");
_Static_assert(NPY_MAXDIMS >= MEMRT_DLPACK_NDIM_MAX,
               "NumPy must allow as many dimensions as memrt");

/// Element types that both NumPy and DLPack have. NumPy's other types differ in size or kind.
static const struct {
    char kind; ///< NumPy's kind character
    uint8_t code;
    uint8_t bits;
    int type; ///< NumPy's type number
} types[] = {
    {'b', kDLBool, 8, NPY_BOOL},          {'i', kDLInt, 8, NPY_INT8},
    {'i', kDLInt, 16, NPY_INT16},         {'i', kDLInt, 32, NPY_INT32},
    {'i', kDLInt, 64, NPY_INT64},         {'u', kDLUInt, 8, NPY_UINT8},
    {'u', kDLUInt, 16, NPY_UINT16},       {'u', kDLUInt, 32, NPY_UINT32},
    {'u', kDLUInt, 64, NPY_UINT64},       {'f', kDLFloat, 16, NPY_FLOAT16},
    {'f', kDLFloat, 32, NPY_FLOAT32},     {'f', kDLFloat, 64, NPY_FLOAT64},
    {'c', kDLComplex, 64, NPY_COMPLEX64}, {'c', kDLComplex, 128, NPY_COMPLEX128},
};
#define TYPES (sizeof(types) / sizeof(types[0]))

static int find_dtype(PyArray_Descr *descr, DLDataType *out)
{
    int is_plain = PyTypeNum_ISBOOL(descr->type_num) || PyTypeNum_ISNUMBER(descr->type_num);
    for (size_t i = 0; is_plain && i < TYPES; i++) {
        if (types[i].kind == descr->kind && types[i].bits == PyDataType_ELSIZE(descr) * 8) {
            *out = (DLDataType){types[i].code, types[i].bits, 1};
            return 1;
        }
    }
    return 0;
}

static int read_dtype(PyArray_Descr *descr, DLDataType *out)
{
    if (!find_dtype(descr, out)) {
        PyErr_Format(PyExc_BufferError, "dtype must be supported by DLPack, got %R", descr);
        return -1;
    }
    if (!PyArray_ISNBO(descr->byteorder)) {
        PyErr_Format(PyExc_BufferError,
                     "dtype must have the byte order of the machine for DLPack, got %R", descr);
        return -1;
    }
    return 0;
}

/// Convert a stride to elements. -1 with BufferError if a stride in use is not a multiple of the
/// element size. The stride of an axis of length 0 or 1 is never used, so any value passes.
static int read_stride(PyArrayObject *array, int axis, int64_t *out)
{
    npy_intp itemsize = PyArray_ITEMSIZE(array), stride = PyArray_STRIDE(array, axis);
    if (PyArray_DIM(array, axis) > 1 && stride % itemsize != 0) {
        PyErr_Format(PyExc_BufferError,
                     "strides must be multiples of the element size for DLPack, got %zd bytes for "
                     "elements of %zd bytes",
                     (Py_ssize_t)stride, (Py_ssize_t)itemsize);
        return -1;
    }
    *out = stride / itemsize;
    return 0;
}

int memrt__dlpack_layout_of_array(PyArrayObject *array, const memrt_meminfo_t *mi,
                                  memrt_dlpack_view_t *out, memrt_numbers_t numbers)
{
    int ndim = PyArray_NDIM(array), empty = PyArray_SIZE(array) == 0;
    size_t first = (size_t)PyArray_BYTES(array) -
                   (size_t)memrt__api()->get_data((memrt_meminfo_t *)(uintptr_t)mi);
    *out = (memrt_dlpack_view_t){.struct_size = sizeof(*out),
                                 .ndim = ndim,
                                 .offset = empty ? 0 : first,
                                 .flags =
                                     PyArray_ISWRITEABLE(array) ? 0 : DLPACK_FLAG_BITMASK_READ_ONLY,
                                 .shape = numbers,
                                 .strides = empty ? NULL : numbers + ndim};
    if (read_dtype(PyArray_DESCR(array), &out->dtype) < 0) {
        return -1;
    }
    for (int i = 0; i < ndim; i++) {
        numbers[i] = PyArray_DIM(array, i);
        if (!empty && read_stride(array, i, &numbers[ndim + i]) < 0) {
            return -1;
        }
    }
    return 0;
}

PyArray_Descr *memrt__dlpack_layout_descr(const memrt_dlpack_view_t *view)
{
    DLDataType dtype = view->dtype;
    for (size_t i = 0; i < TYPES; i++) {
        if (types[i].code == dtype.code && types[i].bits == dtype.bits) {
            return PyArray_DescrFromType(types[i].type);
        }
    }
    PyErr_Format(PyExc_BufferError, "NumPy does not support DLPack type %d with %d bits",
                 dtype.code, dtype.bits);
    return NULL;
}

static size_t count_elements(const memrt_dlpack_view_t *view)
{
    size_t count = 1;
    for (int32_t i = 0; i < view->ndim; i++) {
        count *= (size_t)view->shape[i];
    }
    return count;
}

size_t memrt__dlpack_layout_nbytes(const memrt_dlpack_view_t *view)
{
    return count_elements(view) * (view->dtype.bits / 8u);
}

size_t memrt__dlpack_layout_reach(const memrt_dlpack_view_t *view, size_t *before)
{
    size_t itemsize = view->dtype.bits / 8u, after = itemsize;
    *before = 0;
    if (view->strides == NULL || count_elements(view) == 0) {
        return memrt__dlpack_layout_nbytes(view);
    }
    for (int32_t i = 0; i < view->ndim; i++) {
        int64_t reach = (view->shape[i] - 1) * view->strides[i];
        *(reach < 0 ? before : &after) += (size_t)(reach < 0 ? -reach : reach) * itemsize;
    }
    return *before + after;
}

PyObject *memrt__dlpack_layout_as_array(memrt_meminfo_object_t *base,
                                        const memrt_dlpack_view_t *view)
{
    npy_intp strides[MEMRT_DLPACK_NDIM_MAX];
    PyArray_Descr *descr =
        memrt__device_prepare_host(base->mi) == 0 ? memrt__dlpack_layout_descr(view) : NULL;
    if (descr == NULL) {
        return NULL;
    }
    /* Strides of a view without elements were not validated. */
    int has_strides = view->strides != NULL && count_elements(view) != 0;
    for (int32_t i = 0; has_strides && i < view->ndim; i++) {
        size_t stride = (size_t)view->strides[i] * (view->dtype.bits / 8u);
        strides[i] = (npy_intp)stride; /* wraps only for strides that are never used */
    }
    int flags = (view->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0 ? 0 : NPY_ARRAY_WRITEABLE;
    Py_INCREF(base);
    return memrt__array_over(memrt__api(), base->mi, (PyObject *)base, descr, view->ndim,
                             view->shape, has_strides ? strides : NULL, (npy_intp)view->offset,
                             flags);
}
