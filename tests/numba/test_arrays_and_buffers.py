"""Arrays and buffers enter and leave compiled code on memrt as on Numba's own runtime."""

from __future__ import annotations

import array
import ctypes
import itertools
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from runtimes import Counted, Runtime, word

PARENT, DATA = 1, 4  # word offsets in Numba's array struct
HEAD = 5
FULL_READ_ONLY = 0x11C  # PyBUF_FULL_RO


class Mine(np.ndarray):
    pass


def frozen(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values


GRID = np.arange(24.0).reshape(4, 6)
ARRAYS = {
    "zero dimensions": np.array(3.0),
    "empty": np.empty(0),
    "a dimension of 0": np.empty((2, 0, 3)),
    "contiguous": np.arange(6.0),
    "in Fortran's order": np.asfortranarray(GRID),
    "every other": GRID[:, ::2],
    "backwards": GRID[::-1, ::-2],
    "broadcast": np.broadcast_to(np.arange(3.0), (5, 3)),
    "of one element": np.ones((1, 1, 1)),
    "of five dimensions": np.zeros((1, 2, 3, 1, 2), np.int16),
    "read-only": frozen(np.arange(4)),
    "of a subclass": np.arange(6.0).view(Mine),
    "of records": np.zeros(3, [("a", "i1"), ("b", "f8")]),
    "of the other byte order": np.arange(3.0).astype(">f8"),
    "of dates": np.array(["2020-01-01"], "M8[D]"),
    "unaligned": np.zeros(17, np.uint8)[1:].view(np.float64),
    "of complex numbers": np.ones((2, 2), complex),
}

BUFFERS = {
    "bytes": b"some bytes",
    "bytearray": bytearray(5),
    "memoryview": memoryview(b"abcdef")[::2],
    "array.array": array.array("d", [1, 2, 3]),
    "mmap": mmap.mmap(-1, 100),
    "two dimensions": memoryview(np.asfortranarray(GRID)),
}


class PyBuffer(ctypes.Structure):
    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


def space_for(ndim: int) -> ctypes.Array:
    return (ctypes.c_ssize_t * (HEAD + 2 * ndim))()


def describe(boxed: np.ndarray, given: np.ndarray) -> dict[str, object]:
    return {
        "is given": boxed is given,
        "type": type(boxed),
        "dtype": boxed.dtype,
        "shape": boxed.shape,
        "strides": boxed.strides,
        "data": boxed.ctypes.data,
        "writeable": boxed.flags.writeable,
        "owns": boxed.flags.owndata,
        "base": type(boxed.base).__name__,
    }


# Changes that compiled code can make to the struct of an array.
def leave(struct, ndim):
    pass


def move(struct, ndim):
    struct[DATA] += 8


def forget_parent(struct, ndim):
    struct[PARENT] = 0


NO_ARRAY = "no array"


def take_another_parent(struct, ndim):
    struct[PARENT] = id(NO_ARRAY)


def forget_owner(struct, ndim):
    struct[0], struct[PARENT] = 0, 0


def shorten(struct, ndim):
    if ndim:
        struct[HEAD] //= 2


def stretch(struct, ndim):
    if ndim:
        struct[HEAD + ndim] *= 2


CHANGES = (leave, move, forget_parent, take_another_parent, forget_owner, shorten, stretch)


def box(runtime, struct, given, kind, writeable, dtype) -> np.ndarray:
    return runtime.adapt_ndarray_to_python_acqref(
        struct, id(kind), given.ndim, int(writeable), id(dtype)
    )


def through(runtime: Runtime, given: np.ndarray) -> Iterator[object]:
    """Yield results, counts and references for each way of an array into compiled code and back."""
    references = sys.getrefcount(given)
    counted = Counted(runtime)
    struct = space_for(given.ndim)
    yield runtime.adapt_ndarray_from_python(given, struct)
    mi = struct[0]
    yield list(struct)[1:], word(mi, 0), word(mi, 3), word(mi, 4), counted.delta()
    yield sys.getrefcount(given) - references
    whole = list(struct)
    other = np.dtype((np.void, given.itemsize))
    for change, kind, writeable, dtype in itertools.product(
        CHANGES, (np.ndarray, Mine), (False, True), (given.dtype, other)
    ):
        struct[:] = whole
        change(struct, given.ndim)
        made = box(runtime, struct, given, kind, writeable, dtype)
        yield describe(made, given), word(mi, 0)
        del made
        yield word(mi, 0), sys.getrefcount(given) - references
    runtime.release(mi)
    yield sys.getrefcount(given) - references, counted.delta()


@pytest.mark.parametrize("name", ARRAYS)
def test_array_round_trip_matches_stock_numba(on_stock, on_memrt, name):
    given = ARRAYS[name]
    stock, memrt = (list(through(runtime, given)) for runtime in (on_stock, on_memrt))
    assert memrt == stock
    assert len(memrt) > 2 * len(CHANGES)


@contextmanager
def exported(given: object) -> Iterator[PyBuffer]:
    view = PyBuffer()
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes = (ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
    assert get(given, ctypes.byref(view), FULL_READ_ONLY) == 0
    try:
        yield view
    finally:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))


def buffer_through(runtime: Runtime, given: object) -> Iterator[object]:
    counted = Counted(runtime)
    references = sys.getrefcount(given)
    with exported(given) as view:
        before = sys.getrefcount(given)
        struct = space_for(view.ndim)
        runtime.adapt_buffer_from_python(ctypes.byref(view), struct)
        mi = struct[0]
        yield list(struct)[1:], word(mi, 0), word(mi, 3), word(mi, 4), counted.delta()
        yield sys.getrefcount(given) - before
    runtime.release(mi)
    yield sys.getrefcount(given) - references, counted.delta()


@pytest.mark.parametrize("name", BUFFERS)
def test_buffer_unboxing_matches_stock_numba(on_stock, on_memrt, name):
    given = BUFFERS[name]
    stock, memrt = (list(buffer_through(runtime, given)) for runtime in (on_stock, on_memrt))
    assert memrt == stock


def test_buffer_without_an_object_has_no_owner(on_stock, on_memrt):
    for runtime in (on_stock, on_memrt):
        counted = Counted(runtime)
        struct, view = space_for(0), PyBuffer(buf=64, itemsize=1, ndim=0)
        runtime.adapt_buffer_from_python(ctypes.byref(view), struct)
        assert list(struct) == [0, 0, 1, 1, 64]
        assert not any(counted.delta().values())
