"""Arrays over MemInfos: empty, zeros, full, array, as_array."""

import gc
from typing import NamedTuple

import memrt
import numpy as np
import pytest

MAKERS = [
    pytest.param(memrt.empty, id="empty"),
    pytest.param(memrt.zeros, id="zeros"),
    pytest.param(lambda shape, **o: memrt.full(shape, 3, **o), id="full"),
    pytest.param(lambda shape, **o: memrt.array(np.ones(shape), **o), id="array"),
]

SHAPES = [(), 0, 1, 7, (3, 4), (2, 0, 5), (1, 2, 3, 4)]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_array_borrows_from_meminfo_as_base(make, shape):
    a = make(shape)
    assert type(a) is np.ndarray
    assert a.shape == np.empty(shape).shape
    assert a.flags.writeable
    assert a.flags.aligned
    assert not a.flags.owndata
    assert isinstance(a.base, memrt.MemInfo)
    assert (a.base.nbytes, a.base.refcount) == (a.nbytes, 1)
    assert a.ctypes.data % 64 == 0


@pytest.mark.parametrize("make", MAKERS)
def test_dtype_order_policy_and_align_are_honoured(make):
    policy = memrt.Policy(name="mine")
    a = make((5, 6), dtype=">i2", order="F", policy=policy, alignment=1024)
    assert (a.dtype, a.strides) == (np.dtype(">i2"), (2, 10))
    assert memrt.handler_name(a) == "memrt:mine"
    assert a.ctypes.data % 1024 == 0


@pytest.mark.parametrize("make", MAKERS)
def test_array_uses_current_policy_and_policy_alignment(make):
    with memrt.Policy(alignment=4096, name="outer"):
        a = make(10, alignment=128)
    assert a.base.policy == "outer"
    assert a.ctypes.data % 4096 == 0


DTYPES = [
    "?",
    "i1",
    ">u8",
    "f2",
    "g",
    "c16",
    "G",
    "S7",
    "U3",
    "V5",
    "M8[ns]",
    "m8[D]",
    [("a", "u1"), ("b", "f8")],
    {"names": ["x"], "formats": ["i4"], "offsets": [8], "itemsize": 20},
    ("f4", (2, 3)),
    np.dtype([("a", "u1"), ("b", "f8")], align=True),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_shape_and_strides_match_numpy_for_every_dtype(dtype):
    for shape in SHAPES:
        for order in "CF":
            ours, theirs = memrt.zeros(shape, dtype, order), np.zeros(shape, dtype, order)
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            assert ours.strides == theirs.strides or ours.size == 0
            assert ours.tolist() == theirs.tolist()
            assert memrt.is_managed(ours)


@pytest.mark.parametrize("dtype", ["S", "U", "V"])
def test_dtype_without_size_gets_same_size_as_in_numpy(dtype):
    a = memrt.empty(3, dtype)
    assert a.dtype == np.empty(3, dtype).dtype
    assert memrt.is_managed(a)


def reference_dtypes():
    dtypes = [np.dtype(object), np.dtype([("o", object), ("n", "i4")]), np.dtype(("O", (2,)))]
    if hasattr(np.dtypes, "StringDType"):
        dtypes.append(np.dtypes.StringDType())
    return dtypes


@pytest.mark.parametrize("dtype", reference_dtypes(), ids=str)
def test_dtype_with_references_is_allocated_by_numpy(dtype):
    before = memrt.handler_name()
    policy = memrt.Policy(name="refs")
    for make, numpys in ((memrt.empty, np.empty), (memrt.zeros, np.zeros)):
        a = make((2, 3), dtype, policy=policy)
        assert memrt.handler_name(a) == "memrt:refs"
        assert a.flags.owndata or a.base.flags.owndata
        assert a.dtype == numpys((2, 3), dtype).dtype
    assert a.tolist() == np.zeros((2, 3), dtype).tolist()
    assert memrt.handler_name() == before


def test_object_dtype_refuses_align_beyond_policy_alignment():
    with pytest.raises(ValueError, match="at most the alignment of the policy, got 256"):
        memrt.empty(3, object, alignment=256)
    wide = memrt.empty(300, object, policy=memrt.Policy(alignment=256), alignment=256)
    assert wide.ctypes.data % 256 == 0


class Canary:
    """An object whose references the test counts."""


def test_object_arrays_release_references():
    import weakref

    canary = Canary()
    ref = weakref.ref(canary)
    arrays = [memrt.full(3, canary, object), memrt.array([canary] * 4)]
    arrays.append(memrt.zeros(2, [("o", object)]))
    arrays[2]["o"] = canary
    del canary
    assert all(memrt.is_managed(a) for a in arrays)
    arrays.clear()
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize("make", [memrt.empty, memrt.zeros])
def test_impossible_shape_dtype_or_policy_is_refused(make):
    for shape in (-1, (3, -2), (0, -1)):
        with pytest.raises(ValueError, match="negative"):
            make(shape)
    for shape in ((2**32, 2**32), (2**62, 8), (2**63 - 1,)):
        with pytest.raises(ValueError, match="too big"):
            make(shape)
    with pytest.raises(TypeError):
        make("shape")
    with pytest.raises(TypeError):
        make(3, "no such dtype")
    with pytest.raises(TypeError, match=r"memrt\.Policy"):
        make(3, policy="fast")
    with pytest.raises(MemoryError):
        make(2**59)


CALLS = [
    ((), {}, r"missing required argument 'shape'"),
    ((), {"dtype": "f4"}, r"missing required argument 'shape'"),
    ((3, "f4", "C", None), {}, r"at most 3 positional arguments \(4 given\)"),
    ((3,), {"shape": 3}, r"multiple values for argument 'shape'"),
    ((3, "f4"), {"dtype": "f4"}, r"multiple values for argument 'dtype'"),
    ((3,), {"size": 3}, r"unexpected keyword argument 'size'"),
    ((3,), {"dtyp\u00e9": 3}, r"unexpected keyword argument 'dtyp\u00e9'"),
]


@pytest.mark.parametrize("name", ["empty", "zeros"])
@pytest.mark.parametrize(("args", "kwargs", "message"), CALLS, ids=str)
def test_invalid_argument_is_named_in_error(name, args, kwargs, message):
    with pytest.raises(TypeError, match=rf"{name}\(\).*{message}"):
        getattr(memrt, name)(*args, **kwargs)


def test_keyword_names_need_not_be_interned():
    given = {"".join(["sha", "pe"]): 3, "".join(["dty", "pe"]): "f4"}
    assert memrt.empty(**given).dtype == "f4"


class Extent(int):
    """A subclass of int with its own __index__."""

    def __index__(self):
        return 3


class Size(NamedTuple):
    """A subclass of tuple as a shape."""

    rows: int
    columns: int


SHAPES_OF_ALL_KINDS = [
    (1, 2, 3, 4),
    (1, 2, 3, 4, 5),
    (1,) * 32,
    [2, 3],
    np.int8(3),
    (np.int8(3), 2),
    (np.int8(3), np.int8(2)),
    np.array([2, 3]),
    Extent(2),
    (Extent(2), 1),
    Size(2, 3),
]


@pytest.mark.parametrize("shape", SHAPES_OF_ALL_KINDS, ids=repr)
def test_shape_accepted_by_numpy_is_accepted(shape):
    assert memrt.empty(shape, "u1").shape == np.empty(shape, "u1").shape


@pytest.mark.parametrize(
    "shape", [2.0, (2.0,), (2, 2.0), "2", (2, None), 2**70, (1, 2**70), (1,) * 65]
)
def test_shape_refused_by_numpy_is_refused(shape):
    with pytest.raises((TypeError, ValueError)) as theirs:
        np.empty(shape)
    with pytest.raises(theirs.type):
        memrt.empty(shape)


def test_shape_with_zero_is_refused_if_rest_is_too_big():
    assert memrt.empty((2**40, 0, 2**10)).size == 0
    for make in (memrt.empty, np.empty):
        with pytest.raises(ValueError, match="too big"):
            make((2**40, 0, 2**40))


def test_zeros_are_zero_in_reused_memory():
    for size in (10, 10_000, 1_000_000):
        memrt.full(size, 255, "u1")
        assert not memrt.zeros(size, "u1").any()


def test_full_broadcasts_value_and_takes_value_dtype():
    assert memrt.full(3, 2.5).tolist() == [2.5] * 3
    assert memrt.full((2, 2), [1, 2]).tolist() == [[1, 2], [1, 2]]
    with pytest.raises(ValueError, match="broadcast"):
        memrt.full((2, 2), [1, 2, 3])


def test_array_always_copies_and_keeps_fortran_order():
    source = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    copied = memrt.array(source)
    assert np.array_equal(copied, source)
    assert copied.flags.f_contiguous
    assert not np.shares_memory(copied, source)
    again = memrt.array(copied, order="C")
    assert again.flags.c_contiguous
    assert again.base is not copied.base
    assert memrt.array([[1, 2], [3, 4]], "f4").dtype == "f4"
    assert memrt.array(5).shape == ()


def test_array_drops_subclass_and_copies_records():
    matrix = memrt.array(np.ma.masked_array([1, 2], [0, 1]))
    assert type(matrix) is np.ndarray
    records = np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])
    assert memrt.array(records).tolist() == [(1, 2.5)]


# --- as_array ---


def test_as_array_shares_memory_and_holds_meminfo_object():
    mi = memrt.alloc(80, zero=True)
    a, b = memrt.as_array(mi, 10, "f8"), memrt.as_array(mi, (2, 5), float)
    assert a.base is mi
    assert mi.refcount == 1  # arrays hold the object, and the object holds the memory
    a[7] = 1.5
    assert b[1, 2] == 1.5


def test_as_array_without_shape_covers_rest_from_offset():
    mi = memrt.alloc(80)
    assert memrt.as_array(mi).shape == (80,)
    assert memrt.as_array(mi, dtype="f8", offset=16).shape == (8,)
    assert memrt.as_array(mi, offset=80).shape == (0,)
    for offset in (81, -1, 2**62):
        with pytest.raises(ValueError, match="pass a shape"):
            memrt.as_array(mi, offset=offset)
    with pytest.raises(ValueError, match="whole number"):
        memrt.as_array(mi, dtype="f8", offset=1)


def test_as_array_takes_negative_and_zero_strides():
    mi = memrt.alloc(80, zero=True)
    memrt.as_array(mi, 10, "f8")[:] = range(10)
    assert memrt.as_array(mi, 10, "f8", [-8], 72).tolist() == list(range(9, -1, -1))
    assert memrt.as_array(mi, (3, 10), "f8", (0, 8)).sum() == 135
    assert memrt.as_array(mi, (2, 5), "f8", order="F")[1, 0] == 1
    assert memrt.as_array(mi, (), "f8", offset=16) == 2


LAYOUTS_OUTSIDE = [
    {"shape": 11, "dtype": "f8"},
    {"shape": 10, "dtype": "f8", "offset": 1},
    {"shape": 10, "dtype": "f8", "offset": -8},
    {"shape": 10, "dtype": "f8", "strides": [9]},
    {"shape": 10, "dtype": "f8", "strides": [-8]},
    {"shape": 10, "dtype": "f8", "strides": [-8], "offset": 73},
    {"shape": (2, 2), "dtype": "f8", "strides": [2**62, 2**62]},
    {"shape": (2, 2), "dtype": "f8", "strides": [-(2**62), -(2**62)]},
    {"shape": 2**62, "dtype": "f8", "strides": [2**62]},
    {"shape": (2**32, 2**32), "dtype": "u1"},
    {"shape": (), "dtype": "f8", "offset": 2**63 - 4},
    {"shape": (0,), "dtype": "f8", "offset": 81},
    {"shape": (0,), "dtype": "f8", "offset": -1},
    {"shape": -1},
]


@pytest.mark.parametrize("layout", LAYOUTS_OUTSIDE, ids=str)
def test_layout_with_element_outside_memory_is_refused(layout, probe):
    mi = memrt.alloc(80)
    with pytest.raises(ValueError, match=r"stay inside|negative"):
        memrt.as_array(mi, **layout)
    shape, dtype = layout["shape"], layout.get("dtype", "u1")
    with pytest.raises(ValueError, match=r"stay inside|negative"):
        probe.to_array(mi, shape, dtype, layout.get("strides"), layout.get("offset", 0), 0)
    assert mi.refcount == 1


def test_as_array_accepts_layouts_of_numpy_views():
    mi = memrt.alloc(24 * 8)
    base = memrt.as_array(mi, (2, 3, 4), "f8")
    views = [base[::-1], base.T, base[:, ::-2], base[1:, 2:], np.broadcast_to(base, (5, 2, 3, 4))]
    for view in views:
        offset = view.__array_interface__["data"][0] - mi.address
        same = memrt.as_array(mi, view.shape, view.dtype, view.strides, offset)
        assert same.__array_interface__["data"][0] == view.__array_interface__["data"][0]
        assert same.strides == view.strides


@pytest.mark.parametrize("dtype", reference_dtypes(), ids=str)
def test_as_array_refuses_dtype_with_references(dtype, probe):
    mi = memrt.alloc(256, zero=True)
    with pytest.raises(TypeError, match="references"):
        memrt.as_array(mi, 2, dtype)
    with pytest.raises(TypeError, match="references"):
        probe.to_array(mi, (2,), dtype, None, 0, 0)
    assert mi.refcount == 1


def test_number_of_strides_must_match_dimensions():
    with pytest.raises(ValueError, match="got 1 strides for 2 dimensions"):
        memrt.as_array(memrt.alloc(8), (2, 2), strides=[1])


@pytest.mark.parametrize("nonsense", [5, b"abc", None, object(), np.ones(3), memrt.MemInfo])
def test_as_array_refuses_object_without_meminfo(nonsense):
    with pytest.raises(TypeError, match=r"memrt\.MemInfo"):
        memrt.as_array(nonsense)


def test_capsule_with_wrong_name_is_refused(probe):
    for name in ("memrt.meminfos", "dltensor", "mem_handler"):
        capsule = probe.foreign_capsule(name)
        with pytest.raises(TypeError, match=r"memrt\.MemInfo"):
            memrt.as_array(capsule)
        with pytest.raises(ValueError, match="not managed"):
            memrt.meminfo(capsule)


def test_invalid_result_of_memrt_meminfo_method_is_refused(probe):
    class Liar:
        answer = None

        def __memrt_meminfo__(self):
            return self.answer

    for answer in (5, None, probe.foreign_capsule("x")):
        liar = Liar()
        liar.answer = answer
        with pytest.raises(ValueError, match="PyCapsule"):
            memrt.as_array(liar)


def test_object_with_memrt_meminfo_method_is_accepted(probe):
    class Duck:
        def __init__(self):
            self.mi = memrt.alloc(16, zero=True)

        def __memrt_meminfo__(self):
            return self.mi.__memrt_meminfo__()

    duck = Duck()
    assert memrt.as_array(duck).tolist() == [0] * 16
    assert memrt.meminfo(duck) == duck.mi
    assert memrt.is_managed(duck)


def test_writeable_flag_can_be_cleared_and_set_again():
    a = memrt.zeros(10)
    mi = memrt.alloc(80)
    for array in (a, a[2:], a.reshape(2, 5), memrt.as_array(mi, writeable=False)):
        array.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1
        array.flags.writeable = True
        array[...] = 1


def test_array_refuses_numpy_resize():
    a = memrt.zeros(10)
    for refcheck in (True, False):
        with pytest.raises(ValueError, match="does not own its data"):
            a.resize(20, refcheck=refcheck)
    assert a.size == 10
