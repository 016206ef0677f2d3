# cython: language_level=3
# Declarations of memrt/numpy.h for Cython: `from memrt.numpy cimport memrt_meminfo_as_array`. The
# module must call `numpy.import_array()` first, be compiled with NPY_TARGET_VERSION at least
# NPY_1_22_API_VERSION, and needs numpy.get_include() and memrt.get_include() as include paths.

from numpy cimport ndarray, npy_intp

from memrt cimport memrt_api_t, memrt_meminfo_t


cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyArray_Descr:
        pass

    # Return the dtype of a type number as a new reference, for memrt_meminfo_as_array().
    PyArray_Descr *PyArray_DescrFromType(int type) except NULL


cdef extern from "memrt/numpy.h":
    # Return a new array over the memory of a MemInfo. Steals `mi` and `descr`, also on failure.
    ndarray memrt_meminfo_as_array(const memrt_api_t *api, memrt_meminfo_t *mi,
        PyArray_Descr *descr, int nd, const npy_intp *dims, const npy_intp *strides,
        npy_intp offset, int flags)

    # Return a new capsule that holds a MemInfo. Steals `mi`, also on failure.
    object memrt_meminfo_as_capsule(const memrt_api_t *api, memrt_meminfo_t *mi)

    # Store a new reference to the MemInfo behind an array, memoryview or capsule in `out`.
    int memrt_array_meminfo(const memrt_api_t *api, object array, memrt_meminfo_t **out) except -1
