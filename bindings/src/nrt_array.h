#ifndef MEMRT_NRT_ARRAY_H
#define MEMRT_NRT_ARRAY_H

#include "ndarray.h"

/// Between Python's arrays and buffers and the arrays of compiled code. Needs the GIL.

/// Numba's array in memory, `arystruct_t`: compiled code reads and writes it at these offsets.
typedef struct memrt_nrt_array {
    memrt_meminfo_t *meminfo;     ///< owns the data; NULL: nobody does
    PyObject *parent;             ///< the object it was made from, borrowed; NULL: compiled code
    npy_intp nitems;              ///< number of elements
    npy_intp itemsize;            ///< bytes of one
    void *data;                   ///< first element
    npy_intp shape_and_strides[]; ///< ndim extents, then ndim strides in bytes
} memrt_nrt_array_t;

/// New MemInfo over `data`, kept alive by `owner`, which it gets a reference of. NULL with
/// MemoryError.
memrt_meminfo_t *memrt__nrt_meminfo_new_from_pyobject(void *data, PyObject *owner);

/// Fill `out` from an ndarray, with a new MemInfo. 0, or -1: without an exception when `object` is
/// not an array, with MemoryError when there is no memory, and then `out` is as it was.
int memrt__nrt_adapt_ndarray_from_python(PyObject *object, memrt_nrt_array_t *out);

/// Fill `out` from a buffer with shape and strides; with a new MemInfo if the buffer has an object.
/// Out of memory: `out->meminfo` NULL and MemoryError set.
void memrt__nrt_adapt_buffer_from_python(const Py_buffer *buffer, memrt_nrt_array_t *out);

/// The array of compiled code as an object of type `type`: the very object it was made from if it
/// still describes that, else a new array whose base is a `_MemInfo` with a reference of its own.
/// NULL with an exception.
PyObject *memrt__nrt_adapt_ndarray_to_python_acqref(const memrt_nrt_array_t *array,
                                                    PyTypeObject *type, int ndim, int writeable,
                                                    PyArray_Descr *descr);

#endif
