#ifndef MEMRT_BINDINGS_NUMBA_ARRAY_H
#define MEMRT_BINDINGS_NUMBA_ARRAY_H

#include "support/ndarray.h"

/// Convert between Python's arrays or buffers and the arrays of compiled code. All functions need
/// the GIL.

/// Memory layout of Numba's array, `arystruct_t`. Compiled code reads and writes the members at
/// these offsets.
typedef struct memrt_nrt_array {
    memrt_meminfo_t *meminfo;     ///< owns the data; NULL: the data has no owner
    PyObject *parent;             ///< original object, borrowed; NULL: compiled code made the array
    npy_intp nitems;              ///< number of elements
    npy_intp itemsize;            ///< bytes per element
    void *data;                   ///< first element
    npy_intp shape_and_strides[]; ///< ndim extents, then ndim strides in bytes
} memrt_nrt_array_t;

/// Create a MemInfo over `data`, which `owner` keeps alive. The MemInfo holds a new reference to
/// `owner`. NULL with MemoryError.
memrt_meminfo_t *memrt__nrt_meminfo_new_from_pyobject(void *data, PyObject *owner);

/// Fill `out` from an ndarray, with a new MemInfo. Returns 0 or -1. -1 without an exception means
/// that `object` is not an array, with MemoryError that memory ran out; both leave `out` unchanged.
int memrt__nrt_adapt_ndarray_from_python(PyObject *object, memrt_nrt_array_t *out);

/// Fill `out` from a buffer with shape and strides. A buffer with an exporting object gets a new
/// MemInfo. Out of memory: `out->meminfo` is NULL and MemoryError is set.
void memrt__nrt_adapt_buffer_from_python(const Py_buffer *buffer, memrt_nrt_array_t *out);

/// Box an array of compiled code as an object of type `type`. Returns the original object if its
/// layout still matches, otherwise a new array. The base of a new array is a `_MemInfo` with its
/// own reference. NULL with an exception.
PyObject *memrt__nrt_adapt_ndarray_to_python_acqref(const memrt_nrt_array_t *array,
                                                    PyTypeObject *type, int ndim, int writeable,
                                                    PyArray_Descr *descr);

#endif
