# ruff: noqa: F841 - variables of the tests are what they look for
"""Who holds what jitted functions made: arrays of theirs, and what compiled code took."""

from __future__ import annotations

import memrt
import numba
import numpy as np
from numba.typed import List


@numba.njit
def make(n):
    return np.ones(n)


@numba.njit
def head(array):
    return array[:3]


@numba.njit
def make_head(n):
    return np.ones(n)[:3]


def test_an_array_of_a_jitted_function_is_told():
    array = make(1000)
    found = memrt.holders(array)
    assert found.size == 8000
    assert found.unexplained == 0
    assert [row.kind for row in found.rows] == ["jitted", "array"]
    (referrer,) = found.rows[1].referrers
    assert (referrer.kind, referrer.expression) == ("local", "array")
    assert "\n└─ ndarray float64 (1000,), all of it\n" in repr(found)


def test_a_view_that_a_jitted_function_returned_holds_the_array_that_it_was_given():
    array = make(1000)
    view = head(array)
    row = memrt.holders(array).rows[1]
    assert row.unexplained == 0
    expressions = {each.expression for each in row.referrers}
    assert expressions == {"array", "view.base (a _MemInfo)"}


def test_references_of_compiled_code_are_unexplained():
    kept = List([make(100)])
    array = kept[0]
    row = memrt.holders(array).rows[1]
    assert (row.kind, row.unexplained) == ("array", 1)  # the list's, which is compiled code's
    del kept
    assert memrt.holders(array).rows[1].unexplained == 0


def test_a_view_that_a_jitted_function_made_of_its_own_array_keeps_it():
    view = make_head(100_000)
    (buffer,) = memrt.retention()
    assert (buffer.size, buffer.viewed) == (800_000, 24)
    assert view.size == 3
