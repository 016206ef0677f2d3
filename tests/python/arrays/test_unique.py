"""memrt.debug.is_unique: a function holds the only reference to an array and its memory."""

from __future__ import annotations

import functools
import sys
import weakref

import memrt
import numpy as np
import pytest
from memrt import _memrt
from memrt.debug import is_unique

KEPT = []


def prove(array):
    return is_unique(array)


def keep(array):
    KEPT.append(array)
    return array


def managed(count=100):
    return memrt.empty(count)


def handled(count=100):
    with memrt.Policy(name="unique"):
        return np.empty(count)


def adopted():
    return memrt.adopt(np.ones(100))


def view():
    return memrt.empty((10, 10))[2:4, ::2]


def over_memoryview():
    return np.asarray(memoryview(memrt.alloc(80)))


def strided():
    return np.lib.stride_tricks.as_strided(memrt.empty(100), (2, 2), (8, 8))


def tiny():
    return handled(3)


def plain():
    return np.array([1.0, 2.0])


MAKERS = (managed, handled, view, over_memoryview, strided, plain, memrt.alloc)
unique = {memrt.alloc: functools.partial(memrt.alloc, 100)}


@pytest.fixture(autouse=True)
def forget():
    yield
    KEPT.clear()


@pytest.mark.parametrize("make", MAKERS)
def test_only_reference_is_unique(make):
    make = unique.get(make, make)
    array = make()
    assert is_unique(array)
    # An assertion of pytest keeps the operands of its expression in variables.
    of_temporary, of_argument = is_unique(make()), prove(make())
    assert of_temporary
    assert of_argument == (sys.version_info >= (3, 11))
    assert is_unique(array)


@pytest.mark.parametrize("make", MAKERS)
def test_array_of_another_holder_is_not_unique(make):
    make = unique.get(make, make)
    array = make()
    other = array
    assert not is_unique(array)
    del other
    assert is_unique(array)
    assert not prove(array)
    assert not is_unique(keep(array))
    assert not is_unique(array)
    assert not is_unique(keep(make()))
    assert not any(map(is_unique, [make(), make()]))
    assert not any(map(is_unique, (make() for _ in range(2))))
    assert not is_unique(*[array])
    assert not functools.partial(is_unique, make())()


def test_variable_of_a_closure_is_not_unique():
    array = managed()
    later = lambda: array  # noqa: E731
    assert not is_unique(array)
    assert later() is array


def test_global_variable_and_attribute_are_not_unique():
    names = {"is_unique": is_unique, "managed": managed}
    exec("array = managed()\nfound = is_unique(array)", names)
    assert names["found"] is False
    holder = type("Holder", (), {})()
    holder.array = managed()
    assert not is_unique(holder.array)


@pytest.mark.parametrize("share", [memoryview, weakref.ref, lambda array: array[:1]])
def test_shared_array_is_not_unique(share):
    array = managed()
    other = share(array)
    assert not is_unique(array)
    del other
    assert is_unique(array)


@pytest.mark.parametrize("make", [managed, handled, tiny])
def test_memory_with_a_meminfo_is_not_unique(make):
    array = make()
    mi = memrt.meminfo(array)
    assert not is_unique(array)
    assert make is managed or not is_unique(mi)
    del mi
    assert is_unique(array)


def test_memory_with_a_reference_of_c_code_is_not_unique():
    mi = memrt.alloc(100)
    capsule = mi.__memrt_meminfo__()
    assert not is_unique(mi)
    del capsule
    assert is_unique(mi)


def test_foreign_memory_is_not_unique():
    array = adopted()
    assert not is_unique(array)
    array = np.frombuffer(bytearray(80))
    assert not is_unique(array)


def test_view_of_an_array_with_a_name_is_not_unique():
    whole = managed()
    part = whole[10:]
    assert not is_unique(part)
    del whole
    assert is_unique(part)


@pytest.mark.parametrize("kept", [True, False])
def test_function_overwrites_only_a_temporary(kept):
    def double(array):
        out = array if is_unique(array) else np.empty_like(array)
        return np.multiply(array, 2, out=out), out is array

    operand = np.ones(1000)
    doubled, in_place = double(operand) if kept else double(operand + 1)
    assert in_place == (not kept and sys.version_info >= (3, 11))
    assert (operand[0], doubled[0]) == (1, 2 if kept else 4)


def test_wrong_argument_is_refused():
    with pytest.raises(TypeError, match=r"array must be a numpy\.ndarray or a memrt\.MemInfo, got"):
        is_unique([1])
    with pytest.raises(TypeError, match="is_unique\\(\\) takes 1 argument, got 2"):
        is_unique(managed(), 1)
    assert is_unique is _memrt.is_unique
