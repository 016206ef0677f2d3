#include "helpers.h"

#include <math.h>

/// Mathematical functions that object code of Numba calls.

double numba_frexp(double x, int *exponent)
{
    *exponent = 0; /* frexp leaves the exponent of infinity and NaN unspecified */
    return isfinite(x) ? frexp(x, exponent) : x;
}

float numba_frexpf(float x, int *exponent)
{
    *exponent = 0;
    return isfinite(x) ? frexpf(x, exponent) : x;
}

double numba_ldexp(double x, int exponent)
{
    return ldexp(x, exponent);
}

float numba_ldexpf(float x, int exponent)
{
    return ldexpf(x, exponent);
}

double numba_gamma(double x)
{
    return tgamma(x);
}

float numba_gammaf(float x)
{
    return tgammaf(x);
}

double numba_nextafter(double from, double to)
{
    return nextafter(from, to);
}

float numba_nextafterf(float from, float to)
{
    return nextafterf(from, to);
}

/// Return a power with Python's values for a base or an exponent of zero. NaN stands for Python's
/// ZeroDivisionError, as in Numba.
static double complex compute_power(double complex base, double complex exponent)
{
    if (exponent == 0) {
        return 1;
    }
    if (base == 0) {
        return creal(exponent) < 0 || cimag(exponent) != 0 ? NAN + NAN * I : 0;
    }
    return cpow(base, exponent);
}

void numba_cpow(const double complex *base, const double complex *exponent, double complex *out)
{
    *out = compute_power(*base, *exponent);
}

void numba_cpowf(const float complex *base, const float complex *exponent, float complex *out)
{
    *out = (float complex)compute_power(*base, *exponent);
}
