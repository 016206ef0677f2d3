#ifndef MEMRT_NRT_HELPERS_H
#define MEMRT_NRT_HELPERS_H

#include <complex.h>
#include <stdint.h>

#include <memrt/external.h>

/// Functions that object code of Numba calls, besides the functions of memrt/nrt.h. Numba itself
/// takes the functions from its extension module `_helperlib`, which needs Python. Names and
/// signatures are Numba's.

MEMRT_EXPORT double numba_frexp(double x, int *exponent);
MEMRT_EXPORT float numba_frexpf(float x, int *exponent);
MEMRT_EXPORT double numba_ldexp(double x, int exponent);
MEMRT_EXPORT float numba_ldexpf(float x, int exponent);
MEMRT_EXPORT double numba_gamma(double x);
MEMRT_EXPORT float numba_gammaf(float x);
MEMRT_EXPORT double numba_nextafter(double from, double to);
MEMRT_EXPORT float numba_nextafterf(float from, float to);
MEMRT_EXPORT void numba_cpow(const double complex *base, const double complex *exponent,
                             double complex *out);
MEMRT_EXPORT void numba_cpowf(const float complex *base, const float complex *exponent,
                              float complex *out);

/// Compute the strides of an array with a new shape over the same data, and return 1. Returns 0 if
/// the new shape needs a copy. All strides are in bytes.
MEMRT_EXPORT int numba_attempt_nocopy_reshape(int64_t ndim, const int64_t *shape,
                                              const int64_t *strides, int64_t new_ndim,
                                              const int64_t *new_shape, int64_t *new_strides,
                                              int64_t itemsize, int fortran);

#endif
