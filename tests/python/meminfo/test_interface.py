"""MemInfos as buffers and by NumPy's array interface: no copy, valid while any user holds the
memory, writable or read-only.
"""

from __future__ import annotations

import collections.abc
import ctypes
import gc
import sys

import memrt
import numpy as np
import pytest
from elsewhere import elsewhere

READABLE, WRITABLE = 0, 1  # flags of PEP 688: inspect.BufferFlags.SIMPLE and WRITABLE


class By:
    """An object with a single attribute of a MemInfo."""

    def __init__(self, mi: memrt.MemInfo, name: str) -> None:
        self.mi = mi
        self.__dict__[name] = getattr(mi, name)


WAYS = {
    "the buffer protocol": lambda mi: mi,
    "a memoryview": memoryview,
    "__array_interface__": lambda mi: By(mi, "__array_interface__"),
    "__array_struct__": lambda mi: By(mi, "__array_struct__"),
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def readonly() -> memrt.MemInfo:
    owner = ctypes.create_string_buffer(16)
    return memrt.wrap(ctypes.addressof(owner), 16, owner=owner, readonly=True)


@ways
def test_array_shares_writable_memory_of_meminfo(way):
    mi = memrt.alloc(16, zero=True)
    array = np.asarray(way(mi))
    assert (array.ctypes.data, array.shape, array.dtype) == (mi.address, (16,), np.uint8)
    array[3] = 7
    assert bytes(mi) == b"\0\0\0\7" + bytes(12)


@ways
def test_array_of_read_only_memory_stays_read_only(way):
    mi = readonly()
    array = np.asarray(way(mi))
    assert array.ctypes.data == mi.address
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True


@ways
def test_memory_lives_until_last_array_is_deleted(way):
    mi = memrt.alloc(16)
    array = np.asarray(way(mi))[2:]
    address, before = mi.address, memrt.stats()
    del mi
    gc.collect()
    assert array.ctypes.data == address + 2
    assert (memrt.stats() - before).mi_free == 0
    del array
    gc.collect()
    assert (memrt.stats() - before).mi_free == 1


@ways
def test_last_array_may_be_deleted_on_another_thread(way):
    arrays = [np.asarray(way(memrt.alloc(16)))]
    before = memrt.stats()
    elsewhere(arrays.clear)
    gc.collect()
    assert (memrt.stats() - before).mi_free == 1


@ways
def test_empty_meminfo_gives_array_without_elements(way):
    array = np.asarray(way(memrt.alloc(0)))
    assert array.shape == (0,)


def test_array_interface_returns_new_dict_each_time():
    mi = memrt.alloc(5)
    fields = mi.__array_interface__
    assert fields == {
        "shape": (5,),
        "typestr": "|u1",
        "data": (mi.address, False),
        "strides": None,
        "version": 3,
    }
    assert [type(part) for part in fields["data"]] == [int, bool]
    fields.clear()
    assert mi.__array_interface__["shape"] == (5,)
    assert readonly().__array_interface__["data"][1] is True


def test_array_struct_holds_meminfo_but_dict_does_not():
    mi = memrt.alloc(5)
    before = sys.getrefcount(mi), mi.refcount
    fields = mi.__array_interface__
    assert (sys.getrefcount(mi), mi.refcount) == before
    struct = mi.__array_struct__
    assert (sys.getrefcount(mi), mi.refcount) == (before[0] + 1, before[1])
    del struct
    assert (sys.getrefcount(mi), mi.refcount) == before
    assert fields["data"][0] == mi.address


class Interface(ctypes.Structure):
    _fields_ = [
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("data", ctypes.c_void_p),
        ("descr", ctypes.c_void_p),
    ]


def test_array_struct_fields_match_numpy_protocol():
    """Source: "C struct access" of NumPy's page on the array interface."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    for mi, writeable in ((memrt.alloc(16), 0x400), (readonly(), 0)):
        capsule = mi.__array_struct__
        struct = Interface.from_address(pointer(capsule, None))
        assert (struct.two, struct.nd, struct.typekind, struct.itemsize) == (2, 1, b"u", 1)
        assert struct.flags == 0x1 | 0x2 | 0x100 | 0x200 | writeable
        assert (struct.shape[0], struct.strides[0], struct.data) == (16, 1, mi.address)
        assert not struct.descr


@pytest.mark.skipif("sys.version_info < (3, 12)", reason="PEP 688 came with Python 3.12")
def test_python_code_gets_buffers_by_pep_688():
    mi = memrt.alloc(16)
    assert isinstance(mi, collections.abc.Buffer)
    view = mi.__buffer__(WRITABLE)
    assert (view.nbytes, view.readonly) == (16, False)
    view.release()
    view = readonly().__buffer__(READABLE)
    assert view.readonly
    with pytest.raises(BufferError):
        readonly().__buffer__(WRITABLE)


def request(mi: memrt.MemInfo, flags: int) -> None:
    """Request a buffer as C code does, and release the buffer."""
    room = ctypes.create_string_buffer(256)
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(mi), room, flags)
    ctypes.pythonapi.PyBuffer_Release(room)


FLAGS = {"simple": 0, "format": 4, "nd": 8, "strides": 0x18, "C": 0x38, "F": 0x58, "any": 0x98,
         "indirect": 0x118}  # fmt: skip


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_only_writable_request_of_read_only_memory_fails(flags):
    """Source: "Buffer request types" of CPython's documentation."""
    request(memrt.alloc(16), flags)
    request(memrt.alloc(16), flags | WRITABLE)
    request(readonly(), flags)
    with pytest.raises(BufferError):
        request(readonly(), flags | WRITABLE)
