"""Rule C26: invalid interface dictionaries, from a table and from Hypothesis."""

from __future__ import annotations

import gc
import weakref

import memrt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memrt.cuda import CudaError, empty

ERRORS = (TypeError, ValueError, NotImplementedError, CudaError, MemoryError)


class Maker:
    """An object with the interface of an array, with some entries changed or absent."""

    def __init__(
        self, array: memrt.cuda.Array, changes: dict, absent: tuple[str, ...] = ()
    ) -> None:
        self.entries = {**array.__cuda_array_interface__, **changes}
        for key in absent:
            self.entries.pop(key, None)

    @property
    def __cuda_array_interface__(self) -> dict:
        return self.entries


@pytest.mark.rule("C26")
@pytest.mark.parametrize("key", ["version", "shape", "typestr", "data"])
def test_missing_entry_is_named_in_error(key):
    with pytest.raises(ValueError, match=f"has no '{key}'"):
        memrt.from_cuda_array_interface(Maker(empty(3), {}, (key,)))


class Raises:
    @property
    def __cuda_array_interface__(self) -> dict:
        raise ZeroDivisionError


@pytest.mark.rule("C26")
@pytest.mark.parametrize("thing", [None, 3, "text", np.ones(3), {}, object()])
def test_object_without_interface_raises_type_error(thing):
    with pytest.raises(TypeError, match="no __cuda_array_interface__"):
        memrt.from_cuda_array_interface(thing)


@pytest.mark.rule("C26")
def test_producer_exception_propagates():
    with pytest.raises(ZeroDivisionError):
        memrt.from_cuda_array_interface(Raises())


@pytest.mark.rule("C26")
@pytest.mark.parametrize("entries", [None, [], (), "dict", 5])
def test_interface_of_wrong_type_raises_type_error(entries):
    maker = Maker(empty(3), {})
    maker.entries = entries
    with pytest.raises(TypeError, match="must be a dict"):
        memrt.from_cuda_array_interface(maker)


WRONG = [
    ("version", 4, ValueError),
    ("version", -1, ValueError),
    ("version", 2**70, ValueError),
    ("version", "3", TypeError),
    ("version", 3.0, TypeError),
    ("version", True, TypeError),
    ("version", None, TypeError),
    ("shape", None, TypeError),
    ("shape", 3, TypeError),
    ("shape", "3", TypeError),
    ("shape", (3.0,), TypeError),
    ("shape", (None,), TypeError),
    ("shape", (True,), TypeError),
    ("shape", ("3",), TypeError),
    ("shape", (-3,), ValueError),
    ("shape", (1,) * 65, ValueError),
    ("typestr", None, TypeError),
    ("typestr", b"<f8", TypeError),
    ("typestr", np.dtype(float), TypeError),
    ("typestr", "", ValueError),
    ("typestr", "f8", ValueError),
    ("typestr", "<f3", ValueError),
    ("typestr", "<q8", ValueError),
    ("typestr", "<f8,<f8", ValueError),
    ("typestr", "<f8\0", ValueError),
    ("typestr", "|V0", ValueError),
    ("typestr", "<M8[lunch]", ValueError),
    ("typestr", "<f99999999999999999999", ValueError),
    ("data", None, TypeError),
    ("data", 5, TypeError),
    ("data", (), ValueError),
    ("data", (5,), ValueError),
    ("data", (5, False, 1), ValueError),
    ("data", (None, False), TypeError),
    ("data", ("5", False), TypeError),
    ("data", (5.0, False), TypeError),
    ("data", (True, False), TypeError),
    ("data", (0, False), ValueError),
    ("data", (-5, False), ValueError),
    ("data", (2**64, False), ValueError),
    ("data", (2**64 - 8, False), ValueError),
    ("data", (5, None), TypeError),
    ("data", (5, 1), TypeError),
    ("strides", 8, TypeError),
    ("strides", "8", TypeError),
    ("strides", (8.0,), TypeError),
    ("strides", (8, 8), ValueError),
    ("stream", "1", TypeError),
    ("mask", 5, NotImplementedError),
    ("mask", False, NotImplementedError),
]


@pytest.mark.rule("C26")
@pytest.mark.parametrize(("key", "value", "error"), WRONG)
def test_invalid_entry_is_refused_and_producer_released(machine, key, value, error):
    maker = Maker(empty(3), {key: value})
    kept = weakref.ref(maker)
    live = memrt.stats().adopted
    with pytest.raises(error):
        memrt.from_cuda_array_interface(maker)
    del maker
    gc.collect()
    assert kept() is None
    assert memrt.stats().adopted <= live


DESCRS = [5, "x", [5], [("a",)], [("a", "<f4")], [("a", "O")], [("a", ">f8")], [("a", "<f4", -1)]]


@pytest.mark.rule("C26")
@pytest.mark.parametrize("descr", DESCRS)
def test_invalid_descr_is_refused(descr):
    with pytest.raises((TypeError, ValueError)):
        memrt.from_cuda_array_interface(Maker(empty(3), {"typestr": "|V8", "descr": descr}))


numbers = st.one_of(
    st.integers(-5, 5), st.sampled_from([2**31, 2**62, 2**63, 2**64, -(2**63), 2**100])
)
anything = st.one_of(
    st.none(), st.booleans(), numbers, st.floats(), st.text(max_size=5), st.binary()
)
tuples = st.lists(st.one_of(numbers, anything), max_size=4).map(tuple)
dictionaries = st.fixed_dictionaries(
    {},
    optional={
        "version": st.one_of(st.integers(0, 3), anything),
        "shape": st.one_of(tuples, anything),
        "typestr": st.one_of(
            st.sampled_from(["<f8", "|u1", ">i4", "|V3", "<M8[s]", "|O8"]), anything
        ),
        "data": st.one_of(st.tuples(numbers, st.booleans()), tuples, anything),
        "strides": st.one_of(tuples, anything),
        "stream": st.one_of(anything.filter(lambda x: type(x) is not int), st.integers(-2, 2)),
        "mask": st.one_of(st.none(), anything),
        "descr": st.one_of(st.lists(tuples, max_size=3), anything),
    },
)


@pytest.mark.rule("C26")
@given(
    changes=dictionaries, absent=st.sets(st.sampled_from(["version", "shape", "data", "strides"]))
)
def test_any_dict_raises_only_documented_errors(changes, absent):
    array = empty(8, "u1")
    maker = Maker(array, {k: v for k, v in changes.items() if k not in absent}, tuple(absent))
    try:
        taken = memrt.from_cuda_array_interface(maker)
    except ERRORS:
        return
    assert (
        taken.size == 0
        or array.meminfo.address <= taken.meminfo.address < array.meminfo.address + 8
    )


small = st.integers(0, 4)


@pytest.mark.rule("C26")
@given(st.data())
def test_valid_layout_reads_same_elements_as_numpy(data):
    shape = tuple(data.draw(st.lists(small, max_size=3)))
    strides = tuple(data.draw(st.integers(-12, 12)) for _ in shape)
    values = np.arange(200, dtype="u1")
    array = empty(200, "u1")
    array.copy_from_host(values)
    maker = Maker(
        array,
        {"shape": shape, "strides": strides, "data": (array.meminfo.address + 100, False)},
    )
    taken = memrt.from_cuda_array_interface(maker)
    expected = np.lib.stride_tricks.as_strided(values[100:], shape, strides)
    np.testing.assert_array_equal(taken.copy_to_host(), expected)
