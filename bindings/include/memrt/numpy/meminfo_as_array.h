#ifndef MEMRT_NUMPY_MEMINFO_AS_ARRAY_H
#define MEMRT_NUMPY_MEMINFO_AS_ARRAY_H

/// Inline code of memrt/numpy.h: from MemInfos to capsules and arrays.

#include <memrt/numpy.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Extend the byte range [*low, *high) by one dimension. Returns 0 when the range overflows.
static inline int memrt__layout_extend(npy_intp dim, npy_intp stride, npy_intp *low, npy_intp *high)
{
    npy_intp reach;
    if (__builtin_mul_overflow(dim - 1, stride, &reach)) {
        return 0;
    }
    npy_intp *end = reach < 0 ? low : high;
    return !__builtin_add_overflow(*end, reach, end);
}

static inline int memrt_layout_fits(size_t size, npy_intp itemsize, int nd, const npy_intp *dims,
                                    const npy_intp *strides, npy_intp offset)
{
    npy_intp low = offset, high, step = itemsize;
    int empty = 0;
    if (size > (size_t)NPY_MAX_INTP || __builtin_add_overflow(offset, itemsize, &high)) {
        return 0;
    }
    for (int i = nd - 1; i >= 0; i--) {
        if (dims[i] < 0) {
            return 0;
        }
        empty |= dims[i] == 0;
    }
    for (int i = nd - 1; !empty && i >= 0; i--) {
        if (!memrt__layout_extend(dims[i], strides != NULL ? strides[i] : step, &low, &high)) {
            return 0;
        }
        if (strides == NULL && __builtin_mul_overflow(step, dims[i], &step)) {
            return 0;
        }
    }
    if (empty) {
        high = low;
    }
    return low >= 0 && high >= low && (size_t)high <= size;
}

static inline int memrt_descr_has_references(PyArray_Descr *descr)
{
    return PyDataType_FLAGCHK(descr, NPY_ITEM_REFCOUNT) ||
           PyDataType_FLAGCHK(descr, NPY_ITEM_IS_POINTER);
}

/// Return the size of one element in bytes. NumPy 1 and 2 have different accessors for the size.
static inline npy_intp memrt__descr_size(PyArray_Descr *descr)
{
#if NPY_ABI_VERSION < 0x02000000
    return descr->elsize;
#else
    return (npy_intp)PyDataType_ELSIZE(descr);
#endif
}

/// Return 0, or -1 with BufferError set when the data of `mi` is memory of a CUDA device.
static inline int memrt__device_check(const memrt_meminfo_t *mi)
{
    if ((__atomic_load_n(&mi->flags, __ATOMIC_RELAXED) & MEMRT_FLAG_DEVICE) == 0) {
        return 0;
    }
    PyErr_SetString(PyExc_BufferError,
                    "the host cannot access memory of a CUDA device: copy the memory to the host");
    return -1;
}

/// Return 0 when an array of the given layout fits over `mi`, else -1 with an exception set.
static inline int memrt__layout_check(const memrt_api_t *api, const memrt_meminfo_t *mi,
                                      PyArray_Descr *descr, int nd, const npy_intp *dims,
                                      const npy_intp *strides, npy_intp offset)
{
    if (memrt__device_check(mi) < 0) {
        return -1;
    }
    if (memrt_descr_has_references(descr)) {
        PyErr_Format(PyExc_TypeError,
                     "dtype over a MemInfo must not hold references to Python objects, got %R",
                     descr);
        return -1;
    }
    if (!memrt_layout_fits(api->size(mi), memrt__descr_size(descr), nd, dims, strides, offset)) {
        PyErr_Format(PyExc_ValueError,
                     "shape, strides and offset must stay inside the MemInfo, got dtype %R, offset "
                     "%zd and %zu bytes",
                     descr, (Py_ssize_t)offset, api->size(mi));
        return -1;
    }
    return 0;
}

/// Return a new array over `mi` with `base` as its base object.
/// Ownership: steals `base` and `descr`, also on failure. Failure: NULL with an exception set.
static inline PyObject *memrt__array_over(const memrt_api_t *api, memrt_meminfo_t *mi,
                                          PyObject *base, PyArray_Descr *descr, int nd,
                                          const npy_intp *dims, const npy_intp *strides,
                                          npy_intp offset, int flags)
{
    static char nothing; /* data address of an empty array over a MemInfo whose data is NULL */
    char *data = (char *)api->get_data(mi);
    data = data != NULL ? data + offset : &nothing;
    PyObject *array =
        PyArray_NewFromDescr(&PyArray_Type, descr, nd, dims, strides, data, flags, NULL);
    if (array == NULL) {
        Py_DECREF(base);
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)array, base) < 0) {
        Py_DECREF(array); /* PyArray_SetBaseObject steals `base` also when it fails */
        return NULL;
    }
    return array;
}

static inline PyObject *memrt_meminfo_as_array(const memrt_api_t *api, memrt_meminfo_t *mi,
                                               PyArray_Descr *descr, int nd, const npy_intp *dims,
                                               const npy_intp *strides, npy_intp offset, int flags)
{
    PyObject *capsule;
    flags &= api->readonly(mi) ? ~(NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE) : ~NPY_ARRAY_OWNDATA;
    if (memrt__layout_check(api, mi, descr, nd, dims, strides, offset) < 0) {
        Py_DECREF(descr);
        api->release(mi);
        return NULL;
    }
    capsule = memrt_meminfo_as_capsule(api, mi);
    if (capsule == NULL) {
        Py_DECREF(descr);
        return NULL;
    }
    return memrt__array_over(api, mi, capsule, descr, nd, dims, strides, offset, flags);
}

#ifdef __cplusplus
}
#endif

#endif
