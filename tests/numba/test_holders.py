# ruff: noqa: F841 - the tests search for their local variables
"""Holders of buffers from jitted functions: Python arrays, and references of compiled code."""

from __future__ import annotations

import memrt
import numba
import numpy as np
from gil import needs_gil
from numba.typed import List

pytestmark = needs_gil


@numba.njit
def make(n):
    return np.ones(n)


@numba.njit
def head(array):
    return array[:3]


@numba.njit
def make_head(n):
    return np.ones(n)[:3]


def test_holder_of_a_jitted_array_is_its_local_variable():
    array = make(1000)
    found = memrt.holders(array)
    assert found.nbytes == 8000
    assert found.unexplained == 0
    assert [row.kind for row in found.rows] == ["jitted", "array"]
    (referrer,) = found.rows[1].referrers
    assert (referrer.kind, referrer.expression) == ("local", "array")
    assert "\n└─ ndarray float64 (1000,), whole buffer\n" in repr(found)


def test_view_from_a_jitted_function_holds_its_argument():
    array = make(1000)
    view = head(array)
    row = memrt.holders(array).rows[1]
    assert row.unexplained == 0
    expressions = {each.expression for each in row.referrers}
    assert expressions == {"array", "view.base (a _MemInfo)"}


def test_references_of_jitted_code_are_unexplained():
    kept = List([make(100)])
    array = kept[0]
    row = memrt.holders(array).rows[1]
    assert (row.kind, row.unexplained) == ("array", 1)  # the list's, from compiled code
    del kept
    assert memrt.holders(array).rows[1].unexplained == 0


def test_jitted_view_of_a_temporary_array_is_in_retention():
    view = make_head(100_000)
    (buffer,) = memrt.debug.retention()
    assert (buffer.nbytes, buffer.viewed) == (800_000, 24)
    assert view.size == 3
