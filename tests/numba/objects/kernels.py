"""Functions of Numba for the tests, each with another type or feature."""

from __future__ import annotations

import math

import numpy as np
from numba import cfunc, njit


class RefusedError(Exception):
    """An exception of this script."""


@njit
def positive(x):
    if x <= 0:
        raise KeyError("x must be positive")
    return x


@njit("float64(float64[:])")
def doubled_sum(a):
    return (a * 2).sum()


@njit("float64[::1](int64)")
def squares(n):
    return np.arange(n) ** 2.0


@njit("float64[:, ::1](float64[:, :])")
def transposed_copy(a):
    return np.ascontiguousarray(a.T)


@njit("float64[::1](float64[:, :])")
def flattened(a):
    return np.ascontiguousarray(a).reshape(-1)


@njit("float64[:](float64[:])")
def same(a):
    return a


@njit("void(int32[::1], int32)")
def add_in_place(a, by):
    for i in range(a.size):
        a[i] += by


@njit("boolean(boolean, uint8, int16)")
def compare(flag, small, wide):
    return flag and small > wide


@njit("complex128(complex128, complex128)")
def power(base, exponent):
    return base**exponent


@njit("float32(float32)")
def mathematics(x):
    part, exponent = math.frexp(x)
    return np.float32(math.ldexp(part, exponent) + math.gamma(3.0) - math.exp(math.log(2.0)))


@njit("unicode_type(unicode_type, int64)")
def repeated(text, times):
    return "-".join([text] * times)


@njit("Tuple((float64[::1], int8, UniTuple(float64, 2)))(float64[::1])")
def summary(a):
    return np.sort(a), np.int8(len(a)), (a.min(), a.max())


@njit("int64(int64)")
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@njit("int64(int64)")
def with_lists(n):
    return sum([2 * i for i in range(n)]) + len({1, 2, n})


@njit("float64(float64)")
def calls_positive(x):
    return math.sqrt(positive(x))


@njit("int64(int64)")
def checked(n):
    if n > 100:
        raise RefusedError("n must be at most 100", n)
    return 100 // n


@cfunc("float64(float64)")
def halved(x):
    return x / 2


def inferred(a, b):
    return a + b
