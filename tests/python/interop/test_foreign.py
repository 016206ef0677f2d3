"""Foreign capsules, arrays and structs, passed to every call that looks for memory.

memrt refuses foreign objects with an error and causes no other effect. No foreign object changes,
and memrt loses no memory.
"""

from __future__ import annotations

import ctypes
import sys

import hypothesis.strategies as st
import memrt
import numpy as np
import pytest
from hypothesis import given

NEW = ctypes.pythonapi.PyCapsule_New
NEW.restype = ctypes.py_object
NEW.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

MEMORY = ctypes.create_string_buffer(16384)
# The middle of MEMORY: shapes and strides stay inside of MEMORY in both directions.
MIDDLE = ctypes.addressof(MEMORY) + 8192
NAMES = [None, b"", b"memrt", b"memrt.meminfo2", b"memrt.memInf", b"mem_handler", b"dltensor",
         b"used_dltensor", b"memrt._memrt.api", b"numpy.core.umath"]  # fmt: skip
REFUSALS = (TypeError, ValueError, AttributeError, BufferError)

# Possible names of foreign memory: all names except memrt's own.
names = st.one_of(st.sampled_from(NAMES), st.binary(max_size=20).filter(lambda n: b"\0" not in n))
names = names.filter(lambda name: name != b"memrt.meminfo")


def capsule(name: bytes | None) -> object:
    """Return a capsule with the given name over MEMORY."""
    return NEW(ctypes.addressof(MEMORY), KEPT.setdefault(name, ctypes.c_char_p(name)), None)


KEPT: dict[bytes | None, ctypes.c_char_p] = {}  # a capsule borrows its name


class Interface:
    """An object with NumPy's array interface, whose fields another library filled in."""

    def __init__(self, fields: dict[str, object]) -> None:
        self.__array_interface__ = fields


class Exporter:
    """An object that claims to be an array by its attribute `base` alone."""

    def __init__(self, base: object) -> None:
        self.base = base


class Teller:
    """An object whose __memrt_meminfo__ returns any value."""

    def __init__(self, told: object) -> None:
        self.told = told

    def __memrt_meminfo__(self) -> object:
        return self.told


class DummyArray:
    """A class with the name of NumPy's `as_strided` helper. Its base leads back to itself."""

    def __init__(self, through_array: bool) -> None:
        self.base: object = self
        if through_array:
            self.__array_interface__ = np.zeros(3).__array_interface__
            self.base = np.asarray(self)


interfaces = st.builds(
    Interface,
    st.fixed_dictionaries(
        {
            "version": st.sampled_from([3, 3, 3, 2, 4, "3"]),
            "shape": st.lists(st.integers(-1, 8), max_size=3).map(tuple),
            "typestr": st.sampled_from(["|u1", "<f8", "|O", "V5", "bad", ""]),
            "data": st.one_of(
                st.just((MIDDLE, False)),
                st.just((MIDDLE, True)),
                st.just("text"),
            ),
        },
        optional={"strides": st.lists(st.integers(-16, 16), max_size=3).map(tuple)},
    ),
)
things = st.one_of(
    names.map(capsule),
    interfaces,
    names.map(lambda name: Exporter(capsule(name))),
    st.booleans().map(DummyArray),
    st.sampled_from([None, 0, "text", b"bytes", bytearray(5), memoryview(b"view"), np.float64(1),
                     object(), type, sys]),
    st.integers(0, 300).map(np.zeros),
    st.integers(0, 300).map(lambda n: np.zeros(n)[::-1]),
    st.integers(1, 30).map(lambda n: np.frombuffer(bytes(n), np.uint8)),
    st.integers(1, 30).map(lambda n: memoryview(np.ones((n, 2))[:, 0])),
)  # fmt: skip


def answer(call, *arguments) -> object:
    """Return the result of a call, or the type of its refusal."""
    try:
        return call(*arguments)
    except REFUSALS as refusal:
        return type(refusal)


def is_shared(thing: object) -> bool:
    """Return whether other code holds references to an object, too."""
    return thing is None or isinstance(thing, (int, str, bytes, type, type(sys)))


def bounds(array: np.ndarray) -> tuple[int, int]:
    """Return the address of an array's first byte and the address after its last byte."""
    reaches = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    low = array.ctypes.data + sum(min(reach, 0) for reach in reaches)
    return low, array.ctypes.data + sum(max(reach, 0) for reach in reaches) + array.itemsize


def account() -> tuple[int, ...]:
    now = memrt.stats()
    return now.live, now.adopted, now.alloc - now.free, now.mi_alloc - now.mi_free


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@given(thing=things)
def test_foreign_object_is_unmanaged_and_left_unchanged(thing):
    before, counted = account(), sys.getrefcount(thing)
    assert memrt.is_managed(thing) is False
    assert answer(memrt.meminfo, thing) in REFUSALS
    assert answer(memrt.as_array, thing) in REFUSALS
    assert answer(memrt.handler_name, thing) in (None, "default_allocator", *REFUSALS)
    assert account() == before
    assert is_shared(thing) or sys.getrefcount(thing) == counted


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@given(told=things)
def test_foreign_result_of_memrt_meminfo_method_is_refused(told):
    before = account()
    for call in (memrt.meminfo, memrt.as_array, memrt.handler_name):
        assert answer(call, Teller(told)) in REFUSALS
    assert account() == before


class Subclass(np.ndarray):
    pass


STEPS = {
    "slice": lambda array: array[1:],
    "reversed": lambda array: array[::-1],
    "reshaped": lambda array: array.reshape(-1, 1)[:, 0],
    "subclass": lambda array: array.view(Subclass),
    "memoryview": lambda array: np.asarray(memoryview(array)),
    "frombuffer": lambda array: (
        np.frombuffer(np.ascontiguousarray(array), np.uint8) if array.flags.c_contiguous else array
    ),
    "as_strided": lambda array: np.lib.stride_tricks.as_strided(array),
    "broadcast": lambda array: np.broadcast_to(array, (2, *array.shape))[0],
    "all of it": lambda array: array[...],
}


@given(steps=st.lists(st.sampled_from(list(STEPS)), max_size=30), by_numpy=st.booleans())
def test_any_chain_of_views_finds_and_holds_meminfo(steps, by_numpy):
    with memrt.Policy(name="chain"):
        array = np.ones(100, np.uint8) if by_numpy else memrt.zeros(100, np.uint8)
    mi = memrt.meminfo(array)
    for step in steps:
        array = STEPS[step](array)
    assert memrt.meminfo(array) == mi
    assert memrt.handler_name(array) == "memrt:chain"
    assert mi.refcount == 1 + by_numpy
    del array
    assert mi.refcount == 1


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@given(thing=things)
def test_foreign_object_is_adopted_copied_or_refused(thing):
    before = account()
    array = answer(np.asarray, thing)
    shown = array.tolist() if isinstance(array, np.ndarray) else None
    adopted = answer(memrt.adopt, array)
    assert isinstance(adopted, np.ndarray) == isinstance(array, np.ndarray)
    if isinstance(adopted, np.ndarray):
        assert memrt.is_managed(adopted)
        np.testing.assert_equal(adopted.tolist(), shown)
    # An array adopted in place belongs to memrt until `thing` is freed.
    kept = thing is array
    del adopted, array
    assert kept or account() == before


@given(
    size=st.integers(0, 200),
    shape=st.one_of(st.none(), st.lists(st.integers(-2, 2**63), max_size=4), st.integers(-5, 300)),
    strides=st.one_of(st.none(), st.lists(st.integers(-(2**62), 2**62), max_size=4)),
    offset=st.one_of(st.integers(-5, 250), st.integers(-(2**63), 2**63 - 1)),
    dtype=st.sampled_from(["u1", "f8", "c16", "V3", "S0", "U0", "O", "V0"]),
)
def test_as_array_never_reaches_outside_meminfo(size, shape, strides, offset, dtype):
    mi = memrt.alloc(size)
    array = answer(lambda: wide_array(mi, shape, dtype, strides, offset))
    if isinstance(array, np.ndarray) and array.size and array.itemsize:
        low, high = bounds(array)
        assert mi.address <= low
        assert high <= mi.address + size
        assert not array.dtype.hasobject
    del array
    assert mi.refcount == 1


def wide_array(mi, shape, dtype, strides, offset):
    """Call as_array with OverflowError as a refusal, too: the number does not fit."""
    try:
        return memrt.as_array(mi, shape, dtype, strides, offset)
    except (OverflowError, MemoryError) as error:
        raise ValueError from error
