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
def test_arrays_borrow_from_a_meminfo_that_is_their_base(make, shape):
    a = make(shape)
    assert type(a) is np.ndarray
    assert a.shape == np.empty(shape).shape
    assert a.flags.writeable
    assert a.flags.aligned
    assert not a.flags.owndata
    assert isinstance(a.base, memrt.MemInfo)
    assert (a.base.size, a.base.refcount) == (a.nbytes, 1)
    assert a.ctypes.data % 64 == 0


@pytest.mark.parametrize("make", MAKERS)
def test_dtype_order_policy_and_align_are_honoured(make):
    policy = memrt.Policy(name="mine")
    a = make((5, 6), dtype=">i2", order="F", policy=policy, align=1024)
    assert (a.dtype, a.strides) == (np.dtype(">i2"), (2, 10))
    assert memrt.handler_name(a) == "memrt:mine"
    assert a.ctypes.data % 1024 == 0


@pytest.mark.parametrize("make", MAKERS)
def test_the_policy_in_force_is_followed_with_its_alignment(make):
    with memrt.Policy(alignment=4096, name="outer"):
        a = make(10, align=128)
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
def test_shapes_and_strides_are_numpys_for_every_dtype(dtype):
    for shape in SHAPES:
        for order in "CF":
            ours, theirs = memrt.zeros(shape, dtype, order), np.zeros(shape, dtype, order)
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            assert ours.strides == theirs.strides or ours.size == 0
            assert ours.tolist() == theirs.tolist()
            assert memrt.is_managed(ours)


@pytest.mark.parametrize("dtype", ["S", "U", "V"])
def test_a_dtype_without_a_size_is_given_one_as_numpy_does(dtype):
    a = memrt.empty(3, dtype)
    assert a.dtype == np.empty(3, dtype).dtype
    assert memrt.is_managed(a)


def reference_dtypes():
    dtypes = [np.dtype(object), np.dtype([("o", object), ("n", "i4")]), np.dtype(("O", (2,)))]
    if hasattr(np.dtypes, "StringDType"):
        dtypes.append(np.dtypes.StringDType())
    return dtypes


@pytest.mark.parametrize("dtype", reference_dtypes(), ids=str)
def test_dtypes_with_references_are_made_by_numpy_through_the_handler(dtype):
    before = memrt.handler_name()
    policy = memrt.Policy(name="refs")
    for make, numpys in ((memrt.empty, np.empty), (memrt.zeros, np.zeros)):
        a = make((2, 3), dtype, policy=policy)
        assert memrt.handler_name(a) == "memrt:refs"
        assert a.flags.owndata or a.base.flags.owndata
        assert a.dtype == numpys((2, 3), dtype).dtype
    assert a.tolist() == np.zeros((2, 3), dtype).tolist()
    assert memrt.handler_name() == before


def test_dtypes_with_references_refuse_an_alignment_that_the_handler_does_not_give():
    with pytest.raises(ValueError, match="Policy with alignment 256"):
        memrt.empty(3, object, align=256)
    wide = memrt.empty(300, object, policy=memrt.Policy(alignment=256), align=256)
    assert wide.ctypes.data % 256 == 0


class Canary:
    """An object to count."""


def test_object_arrays_give_their_references_back():
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
def test_impossible_shapes_are_refused_like_numpy_does(make):
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
def test_arguments_that_do_not_fit_are_named(name, args, kwargs, message):
    with pytest.raises(TypeError, match=rf"{name}\(\).*{message}"):
        getattr(memrt, name)(*args, **kwargs)


def test_keywords_need_not_be_names_of_a_programs_source():
    given = {"".join(["sha", "pe"]): 3, "".join(["dty", "pe"]): "f4"}
    assert memrt.empty(**given).dtype == "f4"


class Extent(int):
    """An int of one's own."""

    def __index__(self):
        return 3


class Size(NamedTuple):
    """A tuple of one's own."""

    rows: int
    columns: int


SHAPES_OF_ALL_KINDS = [
    (1, 2, 3, 4),
    (1, 2, 3, 4, 5),
    (1,) * 32,
    [2, 3],
    np.int8(3),
    (np.int8(3), 2),
    np.array([2, 3]),
    Extent(2),
    (Extent(2), 1),
    Size(2, 3),
]


@pytest.mark.parametrize("shape", SHAPES_OF_ALL_KINDS, ids=repr)
def test_whatever_numpy_takes_for_a_shape_is_one(shape):
    assert memrt.empty(shape, "u1").shape == np.empty(shape, "u1").shape


@pytest.mark.parametrize("shape", [2.0, (2, 2.0), "2", (2, None), 2**70, (1, 2**70), (1,) * 65])
def test_whatever_numpy_refuses_for_a_shape_is_refused(shape):
    with pytest.raises((TypeError, ValueError)) as theirs:
        np.empty(shape)
    with pytest.raises(theirs.type):
        memrt.empty(shape)


def test_a_shape_with_a_zero_is_empty_unless_numpy_finds_the_rest_too_big():
    assert memrt.empty((2**40, 0, 2**10)).size == 0
    for make in (memrt.empty, np.empty):
        with pytest.raises(ValueError, match="too big"):
            make((2**40, 0, 2**40))


def test_zeros_are_zero_in_memory_that_was_dirty():
    for size in (10, 10_000, 1_000_000):
        memrt.full(size, 255, "u1")
        assert not memrt.zeros(size, "u1").any()


def test_full_takes_the_dtype_of_the_value_and_broadcasts_it():
    assert memrt.full(3, 2.5).tolist() == [2.5] * 3
    assert memrt.full((2, 2), [1, 2]).tolist() == [[1, 2], [1, 2]]
    with pytest.raises(ValueError, match="broadcast"):
        memrt.full((2, 2), [1, 2, 3])


def test_array_is_always_a_copy_and_keeps_fortran_order():
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


def test_array_drops_subclasses_and_copies_structures():
    matrix = memrt.array(np.ma.masked_array([1, 2], [0, 1]))
    assert type(matrix) is np.ndarray
    records = np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])
    assert memrt.array(records).tolist() == [(1, 2.5)]


# --- as_array ---


def test_as_array_shares_the_memory_and_holds_one_reference_each():
    mi = memrt.alloc(80, zero=True)
    a, b = memrt.as_array(mi, 10, "f8"), memrt.as_array(mi, (2, 5), float)
    assert a.base is mi
    assert mi.refcount == 1  # arrays hold the object, the object holds the memory
    a[7] = 1.5
    assert b[1, 2] == 1.5


def test_as_array_without_a_shape_takes_all_from_the_offset_on():
    mi = memrt.alloc(80)
    assert memrt.as_array(mi).shape == (80,)
    assert memrt.as_array(mi, dtype="f8", offset=16).shape == (8,)
    assert memrt.as_array(mi, offset=80).shape == (0,)
    for offset in (81, -1, 2**62):
        with pytest.raises(ValueError, match="give a shape"):
            memrt.as_array(mi, offset=offset)
    with pytest.raises(ValueError, match="whole number"):
        memrt.as_array(mi, dtype="f8", offset=1)


def test_as_array_takes_strides_also_negative_and_zero():
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
def test_a_layout_with_an_element_outside_the_memory_is_refused(layout, probe):
    mi = memrt.alloc(80)
    with pytest.raises(ValueError, match=r"does not fit|negative"):
        memrt.as_array(mi, **layout)
    shape, dtype = layout["shape"], layout.get("dtype", "u1")
    with pytest.raises(ValueError, match=r"does not fit|negative"):
        probe.to_array(mi, shape, dtype, layout.get("strides"), layout.get("offset", 0), 0)
    assert mi.refcount == 1


def test_layouts_that_numpy_makes_of_a_buffer_are_all_accepted():
    mi = memrt.alloc(24 * 8)
    base = memrt.as_array(mi, (2, 3, 4), "f8")
    views = [base[::-1], base.T, base[:, ::-2], base[1:, 2:], np.broadcast_to(base, (5, 2, 3, 4))]
    for view in views:
        offset = view.__array_interface__["data"][0] - mi.data
        same = memrt.as_array(mi, view.shape, view.dtype, view.strides, offset)
        assert same.__array_interface__["data"][0] == view.__array_interface__["data"][0]
        assert same.strides == view.strides


@pytest.mark.parametrize("dtype", reference_dtypes(), ids=str)
def test_references_cannot_be_conjured_out_of_raw_memory(dtype, probe):
    mi = memrt.alloc(256, zero=True)
    with pytest.raises(TypeError, match="references"):
        memrt.as_array(mi, 2, dtype)
    with pytest.raises(TypeError, match="references"):
        probe.to_array(mi, (2,), dtype, None, 0, 0)
    assert mi.refcount == 1


def test_strides_must_match_the_shape_in_number():
    with pytest.raises(ValueError, match="1 strides do not fit 2 dimensions"):
        memrt.as_array(memrt.alloc(8), (2, 2), strides=[1])


@pytest.mark.parametrize("nonsense", [5, b"abc", None, object(), np.ones(3), memrt.MemInfo])
def test_as_array_wants_a_meminfo(nonsense):
    with pytest.raises(TypeError, match=r"memrt\.MemInfo"):
        memrt.as_array(nonsense)


def test_capsules_of_another_name_are_refused(probe):
    for name in ("memrt.meminfos", "dltensor", "mem_handler"):
        capsule = probe.foreign_capsule(name)
        with pytest.raises(TypeError, match=r"memrt\.MemInfo"):
            memrt.as_array(capsule)
        with pytest.raises(ValueError, match="not managed"):
            memrt.meminfo(capsule)


def test_an_object_that_answers_with_nonsense_for_its_meminfo_is_refused(probe):
    class Liar:
        answer = None

        def __memrt_meminfo__(self):
            return self.answer

    for answer in (5, None, probe.foreign_capsule("x")):
        liar = Liar()
        liar.answer = answer
        with pytest.raises(ValueError, match="PyCapsule"):
            memrt.as_array(liar)


def test_a_duck_with_a_meminfo_is_as_good_as_one(probe):
    class Duck:
        def __init__(self):
            self.mi = memrt.alloc(16, zero=True)

        def __memrt_meminfo__(self):
            return self.mi.__memrt_meminfo__()

    duck = Duck()
    assert memrt.as_array(duck).tolist() == [0] * 16
    assert memrt.meminfo(duck) == duck.mi
    assert memrt.is_managed(duck)


def test_writeable_goes_there_and_back():
    a = memrt.zeros(10)
    mi = memrt.alloc(80)
    for array in (a, a[2:], a.reshape(2, 5), memrt.as_array(mi, writeable=False)):
        array.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1
        array.flags.writeable = True
        array[...] = 1


def test_arrays_refuse_numpys_resize():
    a = memrt.zeros(10)
    for refcheck in (True, False):
        with pytest.raises(ValueError, match="does not own its data"):
            a.resize(20, refcheck=refcheck)
    assert a.size == 10
