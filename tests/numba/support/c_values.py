"""Arguments and results of compiled functions, as types of ctypes."""

from __future__ import annotations

import ctypes
from ctypes import c_int8, c_int32, c_int64, c_uint32, c_void_p
from typing import Any

import numpy as np


class Complex(ctypes.Structure):
    _fields_ = (("real", ctypes.c_double), ("imaginary", ctypes.c_double))


class String(ctypes.Structure):
    """memrt_nrt_string_t of memrt/nrt.h."""

    _fields_ = (
        ("data", c_void_p),
        ("length", c_int64),
        ("kind", c_int32),
        ("is_ascii", c_uint32),
        ("hash", c_int64),
        ("meminfo", c_void_p),
        ("parent", c_void_p),
    )


def array_type(ndim: int) -> type[ctypes.Structure]:
    """Return memrt_nrt_array<ndim>_t of memrt/nrt.h."""
    fields = [
        ("meminfo", c_void_p),
        ("parent", c_void_p),
        ("nitems", c_int64),
        ("itemsize", c_int64),
        ("data", c_void_p),
        ("shape", c_int64 * ndim),
        ("strides", c_int64 * ndim),
    ]
    return type(f"Array{ndim}", (ctypes.Structure,), {"_fields_": fields})


Array1, Array2 = array_type(1), array_type(2)


class Summary(ctypes.Structure):
    """summary_result_t of the header of kernels.py."""

    _fields_ = (("f0", Array1), ("f1", c_int8), ("f2", ctypes.c_double * 2))


def describe(value: Any) -> Any:
    """Return an argument in C: arrays, strings and complex numbers are passed by address."""
    if isinstance(value, np.ndarray):
        kind = {1: Array1, 2: Array2}[value.ndim]
        struct = kind(None, None, value.size, value.itemsize, value.ctypes.data,
                      value.shape, value.strides)  # fmt: skip
        return ctypes.byref(struct)
    if isinstance(value, str):
        text = ctypes.create_string_buffer(value.encode("ascii"))
        return ctypes.byref(String(ctypes.addressof(text), len(value), 1, 1, -1, None, None))
    if isinstance(value, complex):
        return ctypes.byref(Complex(value.real, value.imag))
    return value


def read(nrt: ctypes.CDLL, result: Any, dtype: str = "float64") -> Any:
    """Return a result as a value of Python, and release the references of the result."""
    if isinstance(result, Complex):
        return complex(result.real, result.imaginary)
    if isinstance(result, Summary):
        return read(nrt, result.f0), result.f1, tuple(result.f2)
    if isinstance(result, String):
        value = ctypes.string_at(result.data, result.length).decode("ascii")
    elif hasattr(result, "strides"):
        value = _read_array(result, np.dtype(dtype))
    else:
        return result.value
    if result.meminfo:
        nrt.NRT_MemInfo_release(c_void_p(result.meminfo))
    return value


def _read_array(array: Any, dtype: np.dtype) -> list[Any]:
    data = ctypes.string_at(array.data, array.nitems * array.itemsize)
    return np.frombuffer(data, dtype).reshape(tuple(array.shape)).tolist()
