# cython: language_level=3
"""running_min: the minima of the first 1, 2, ... n elements of an array, in memory of memrt."""

cimport cython
cimport numpy as np
from libc.math cimport INFINITY

from memrt cimport memrt_api_t, memrt_import, memrt_meminfo_t
from memrt.numpy cimport PyArray_DescrFromType, memrt_meminfo_as_array

np.import_array()

cdef const memrt_api_t *api = memrt_import()


@cython.boundscheck(False)
def running_min(const double[::1] values):
    """Return the minima of the first 1, 2, ... n elements."""
    cdef np.npy_intp i, count = values.shape[0]
    cdef double least = INFINITY
    cdef memrt_meminfo_t *mi = api.allocate(<size_t>count * sizeof(double))
    if mi == NULL:
        raise MemoryError
    cdef double *results = <double *>api.get_data(mi)
    with nogil:
        for i in range(count):
            least = min(least, values[i])
            results[i] = least
    # The array owns `mi` and the dtype.
    return memrt_meminfo_as_array(
        api, mi, PyArray_DescrFromType(np.NPY_DOUBLE), 1, &count, NULL, 0, np.NPY_ARRAY_CARRAY
    )
