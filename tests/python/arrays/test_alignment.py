"""Compare memrt.alignment with NumPy's own treatment of arrays; test memrt.aligned."""

from __future__ import annotations

import ctypes

import memrt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

SPECIAL = (16, 32, 64, 4096)
SCALARS = ("?", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "g", "F", "D", "G", "M8[s]", "O", ">f8")
FIELDS = [("flag", "u1"), ("value", "f8"), ("pair", "F"), ("wide", "g"), ("many", "i2", (3,))]


def at(offset: int, count: int, dtype) -> np.ndarray:
    """Return an array that begins `offset` bytes above a multiple of 4096."""
    dtype = np.dtype(dtype)
    whole = memrt.zeros(offset + count * dtype.itemsize, np.uint8, alignment=4096)
    return whole[offset : offset + count * dtype.itemsize].view(dtype)


def is_buffered(array: np.ndarray) -> bool:
    """Return whether NumPy buffers the elements for a function that needs aligned operands."""
    each = np.nditer(array, ["external_loop", "buffered"], [["readonly", "aligned"]])
    return not all(np.shares_memory(chunk, array) for chunk in each)


# --- Alignment that each type needs. ---


@pytest.mark.parametrize("dtype", SCALARS)
def test_true_alignment_equals_dtype_alignment(dtype):
    found = memrt.alignment(np.zeros(3, dtype))
    assert found.true == np.dtype(dtype).alignment
    assert (found.dtype, found.path, found.items, found.fields) == (np.dtype(dtype), "", 3, ())


def test_true_alignment_equals_c_type_alignment():
    pairs = {"f8": ctypes.c_double, "g": ctypes.c_longdouble, "i8": ctypes.c_int64}
    for dtype, c_type in pairs.items():
        assert memrt.alignment(np.zeros(1, dtype)).true == ctypes.alignment(c_type)
    assert memrt.alignment(np.zeros(1, "F")).true == ctypes.alignment(ctypes.c_float)


@pytest.mark.parametrize(
    ("dtype", "c_type"),
    [
        ("u1", ctypes.c_uint8),
        ("f2", ctypes.c_uint16),
        ("f4", ctypes.c_uint32),
        ("F", ctypes.c_uint64),
        ("D", ctypes.c_uint64),
        ("g", ctypes.c_uint64),
        ("V4", ctypes.c_uint32),
    ],
)
def test_uint_alignment_equals_alignment_of_copy_integers(dtype, c_type):
    assert memrt.alignment(np.zeros(1, dtype)).uint == ctypes.alignment(c_type)


@pytest.mark.parametrize("dtype", ["S3", "V12", "G", "U5", FIELDS])
def test_item_size_without_integer_has_no_uint_alignment(dtype):
    found = memrt.alignment(at(0, 2, dtype) if dtype != "U5" else np.zeros(2, dtype))
    assert found.uint == 0
    assert not found.is_uint_aligned
    assert found.copies == f"by memmove of {np.dtype(dtype).itemsize} bytes"


# --- Alignment of arrays, compared with NumPy. ---


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "F", "D"])
@pytest.mark.parametrize("offset", [0, 1, 2, 4, 8, 16, 24, 64, 2048])
def test_alignment_flags_follow_address(dtype, offset):
    array = at(offset, 5, dtype)
    found = memrt.alignment(array)
    assert found.address == array.ctypes.data
    assert found.is_true_aligned == array.flags.aligned == (offset % found.true == 0)
    assert found.is_uint_aligned == (offset % found.uint == 0)
    assert [found.meets(size) for size in SPECIAL] == [offset % size == 0 for size in SPECIAL]
    assert (found.casts == "through an aligned buffer") == is_buffered(array)


def test_complex_may_be_true_aligned_but_not_uint_aligned():
    found = memrt.alignment(at(4, 3, np.complex64))
    assert (found.true, found.uint, found.actual) == (4, 8, 4)
    assert found.is_true_aligned
    assert not found.is_uint_aligned
    assert (found.copies, found.casts) == ("by memmove of 8 bytes", "directly")
    assert found.advice == [
        "the array is copied byte by byte: NumPy copies as integers at multiples of 8 bytes"
    ]


def test_long_double_may_be_uint_aligned_not_true_aligned():
    found = memrt.alignment(at(8, 3, np.longdouble))
    assert (found.true, found.uint, found.actual) == (16, 8, 8)
    assert not found.is_true_aligned
    assert found.is_uint_aligned
    assert (found.copies, found.casts) == ("as 2 uint64", "through an aligned buffer")


@pytest.mark.parametrize("align", [False, True])
def test_each_field_has_own_alignment_report(align):
    dtype = np.dtype(FIELDS, align=align)
    array = at(0, 4, dtype)
    found = memrt.alignment(array)
    assert [field.path for field in found.fields] == list(dtype.names)
    for field in found.fields:
        part = array[field.path]
        assert field.address == part.ctypes.data
        assert field.is_true_aligned == part.flags.aligned
        row = part if part.ndim == 1 else part[:, 0]
        assert (field.casts == "through an aligned buffer") == is_buffered(row)
    assert all(field.is_true_aligned for field in found.fields) == align
    assert found.is_true_aligned == array.flags.aligned
    assert any("align=True" in sentence for sentence in found.advice) == (not align)


def test_nested_fields_are_named_by_path():
    inner = np.dtype([("x", "u1"), ("y", "f4")])
    found = memrt.alignment(np.zeros(2, [("head", "u1"), ("body", inner)]))
    (body,) = (field for field in found.fields if field.path == "body")
    assert [field.path for field in body.fields] == ["body.x", "body.y"]
    assert repr(found).startswith("memrt.types.Alignment of 2 fields in 6 bytes at 0x")
    assert "  .body        2 fields in 5 bytes, true 1, " in repr(found)
    assert "  .body.y      float32, true 4, uint 4, has 2: not ALIGNED, " in repr(found)
    assert len(found.advice) == 1
    assert found.advice[0].startswith("field body.y is not aligned to the 4 bytes of float32")


@pytest.mark.parametrize(
    ("view", "strides"),
    [
        (lambda a: a[::-1], 8),
        (lambda a: a[::-4], 32),
        (lambda a: a[:1:7], 1 << 63),
        (lambda a: a[:, None], 8),
        (lambda a: np.broadcast_to(a[0], (5,)), 1 << 63),
    ],
)
def test_strides_count_only_for_axes_of_several_elements(view, strides):
    found = memrt.alignment(view(memrt.zeros(64)))
    assert found.strides == strides
    assert found.is_true_aligned


def test_odd_strides_make_array_unaligned():
    array = np.ndarray((4,), np.float64, memrt.zeros(40, np.uint8, alignment=64), strides=(9,))
    found = memrt.alignment(array)
    assert (found.pointer >= 64, found.strides, found.actual) == (True, 1, 1)
    assert not found.is_true_aligned
    assert not array.flags.aligned


def test_empty_array_is_aligned_at_any_address():
    array = at(1, 1, "f8")[:0]
    found = memrt.alignment(array)
    assert array.flags.aligned
    assert found.is_true_aligned
    assert found.is_uint_aligned


def views(array: np.ndarray) -> st.SearchStrategy[np.ndarray]:
    return npst.basic_indices(array.shape, allow_newaxis=True, allow_ellipsis=True).map(
        lambda index: np.atleast_1d(array[index])
    )


@given(st.data(), st.sampled_from(["f2", "f4", "f8", "g", "F", "G"]), st.integers(0, 64))
def test_alignment_of_any_view_agrees_with_numpy(data, dtype, offset):
    step = data.draw(st.integers(1, 40))
    dtype = np.dtype(dtype)
    whole = memrt.zeros(offset + 12 * step + 12 * dtype.itemsize, np.uint8, alignment=64)
    base = np.ndarray((3, 4), dtype, whole, offset, strides=(4 * step, step))
    array = data.draw(views(base))
    assert memrt.alignment(array).is_true_aligned == array.flags.aligned


# --- The text of the report. ---


def test_report_states_alignment_and_advice():
    lines = repr(memrt.alignment(at(4, 3, "f8"))).splitlines()
    assert lines[0].startswith("memrt.types.Alignment of float64 at 0x")
    assert lines[1:] == [
        "  address      a multiple of 4",
        "  strides      multiples of 8",
        "  meets        16 no, 32 no, 64 no, 4096 no",
        "  true         8: not ALIGNED, casts through an aligned buffer",
        "  uint         8: copies by memmove of 8 bytes",
        "  the array is not aligned to the 8 bytes of float64: memrt.aligned(array, 8) returns an "
        "aligned copy",
    ]


def test_array_subclass_is_reported_like_base_array():
    table = np.rec.array([(1, 2.0), (3, 4.0)], dtype=[("a", "u1"), ("b", "f8")])
    assert [field.path for field in memrt.alignment(table).fields] == ["a", "b"]
    assert memrt.alignment(np.ma.array([1.0, 2.0])).true == 8


# --- Aligned copies. ---


@pytest.mark.parametrize("dtype", ["u1", "f8", "G", "O", FIELDS])
@pytest.mark.parametrize("alignment", [1, 16, 64, 4096, 65536])
def test_aligned_copies_only_unaligned_arrays(dtype, alignment):
    array = at(8, 3, dtype) if dtype != "O" else memrt.zeros(6, "O")[1::2]
    again = memrt.aligned(array, alignment)
    assert (again is array) == (array.ctypes.data % alignment == 0 and array.flags.aligned)
    assert again.ctypes.data % alignment == 0
    assert again.flags.aligned
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert (again == array).all()
    assert memrt.is_managed(again)


def test_aligned_copies_array_with_unaligned_strides():
    array = np.ndarray((4,), np.float64, memrt.zeros(40, np.uint8, alignment=64), strides=(9,))
    again = memrt.aligned(array, 64)
    assert again is not array
    assert memrt.alignment(again).is_true_aligned


@pytest.mark.parametrize("order", ["C", "F"])
def test_aligned_copy_keeps_memory_order(order):
    array = at(8, 12, "f4").reshape((3, 4), order=order)
    array[...] = np.arange(12).reshape(3, 4)
    again = memrt.aligned(array, 64)
    assert (again.flags.c_contiguous, again.flags.f_contiguous) == (order == "C", order == "F")
    assert (again == array).all()


def test_aligned_returns_read_only_array_or_writable_copy():
    array = at(64, 3, "f8")
    array.flags.writeable = False
    assert memrt.aligned(array, 64) is array
    assert memrt.aligned(array, 128).flags.writeable


@pytest.mark.parametrize(
    ("alignment", "error"),
    [(0, ValueError), (-8, ValueError), (24, ValueError), (8.0, TypeError), ("8", TypeError),
     (True, TypeError), (None, TypeError)],
)  # fmt: skip
def test_invalid_alignment_is_refused(alignment, error):
    array = np.ones(3)
    with pytest.raises(error, match="alignment must be a "):
        memrt.aligned(array, alignment)
    with pytest.raises(error, match="alignment must be a "):
        memrt.alignment(array).meets(alignment)


@pytest.mark.parametrize("thing", [None, 3, [1.0], np.float64(1), memoryview(b"abc")])
def test_alignment_of_non_array_is_refused(thing):
    with pytest.raises(TypeError, match=r"must be a numpy\.ndarray, got "):
        memrt.alignment(thing)
    with pytest.raises(TypeError, match=r"must be a numpy\.ndarray, got "):
        memrt.aligned(thing, 8)


def test_alignment_of_2_to_62_is_refused():
    with pytest.raises((MemoryError, ValueError)):
        memrt.aligned(np.ones(3), 1 << 62)


@pytest.mark.parametrize("size", [0, 1, 16, 64, 1000, 200_000, 5 << 20])
def test_alignment_16_places_arrays_at_16_modulo_64(size):
    with memrt.Policy(alignment=16) as policy:
        array = np.full(size, 7, np.uint8)
        resized = np.zeros(8, np.uint8)
        resized.resize(size + 1, refcheck=False)
    assert policy.alignment == 16
    assert [each.ctypes.data % 64 for each in (array, resized)] == [16, 16]
    assert memrt.is_managed(array)
    assert memrt.meminfo(array).nbytes == max(size, 1)
    assert (array == 7).all()
    assert not resized.any()
    assert policy.stats().live == max(size, 1) + size + 1
    del array, resized
    assert policy.stats().live == 0
