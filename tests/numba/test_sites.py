"""Allocation sites of jitted functions: the call stack and the scope of each allocation."""

from __future__ import annotations

import threading
from collections.abc import Callable

import memrt
import numba
import numpy as np
import pytest
from gil import needs_gil
from jitted import ones, ones_without_gil
from numba.typed import List

MADE_AT_RUN_TIME = "code made at run time"


@numba.njit
def ones_of_another(n):
    return ones(n) + 1


@numba.njit
def into(rows, n):
    rows.append(np.ones(n))


@numba.njit(parallel=True)
def ones_by_threads(n):
    found = np.empty(n)
    for i in numba.prange(n):
        found[i] = np.ones(10 + i % 2).sum()
    return found


def into_a_list(n):
    rows = List([np.ones(1)])
    into(rows, n)
    return rows


MAKERS = {
    "ones": ones,
    "calls another function": ones_of_another,
    "fills a list": into_a_list,
    "several threads": ones_by_threads,
}


@pytest.fixture(autouse=True, scope="module")
def compiled():
    """Compile all functions, so that allocations of the compiler precede the tests."""
    for maker in [*MAKERS.values(), ones_without_gil]:
        maker(2)


def caller(maker: Callable, n: int):
    return maker(n)


def allocated_by(
    maker: Callable, n: int = 1000, **options
) -> tuple[object, memrt.types.LiveBuffer]:
    """Call a maker under tracking. Return the result, and the only live buffer of `n` floats."""
    with memrt.debug.tracking(**options):
        made = caller(maker, n)
    (buffer,) = [buffer for buffer in memrt.debug.live() if buffer.nbytes == 8 * n]
    return made, buffer


@pytest.mark.parametrize("name", MAKERS)
def test_site_has_the_calls_of_the_python_caller(name):
    made, buffer = allocated_by(MAKERS[name])
    functions = [frame.function for frame in buffer.site.frames]
    here = functions.index("caller")
    assert functions[here + 1] == "allocated_by"
    assert buffer.site.frames[here].line == caller.__code__.co_firstlineno + 1
    assert not any(frame.is_native for frame in buffer.site.frames)
    assert made is not None


def test_place_is_the_line_that_calls_the_jitted_function():
    made, buffer = allocated_by(ones)
    assert buffer.place == memrt.types.Place(__file__, "caller", caller.__code__.co_firstlineno + 1)
    assert made.size == 1000


@pytest.mark.parametrize("name", MAKERS)
def test_native_frames_include_code_made_at_run_time(name):
    made, buffer = allocated_by(MAKERS[name], native=8)
    native = [frame for frame in buffer.site.frames if frame.is_native]
    assert 0 < len(native) <= 8
    assert any(frame.file is None and MADE_AT_RUN_TIME in str(frame) for frame in native)
    assert "caller" in [frame.function for frame in buffer.site.frames[len(native) :]]
    assert made is not None


@pytest.mark.parametrize("name", MAKERS)
def test_jitted_allocation_counts_in_the_scope_of_its_caller(name):
    with memrt.scope("jitted"), memrt.scope(name) as scope:
        made, buffer = allocated_by(MAKERS[name])
        assert buffer.scope == f"jitted/{name}"
    assert scope.live >= 8000
    del made
    assert scope.live == 0


def test_nogil_allocation_has_only_native_frames_and_its_scope():
    with memrt.scope("without the GIL"):
        made, buffer = allocated_by(ones_without_gil, native=8)
    assert buffer.scope == "without the GIL"
    assert all(frame.is_native for frame in buffer.site.frames)
    assert made.size == 1000


def test_allocation_on_a_thread_has_its_calls_and_scope():
    found = []

    def work():
        with memrt.scope("worker"):
            found.append(caller(ones, 1000))

    with memrt.debug.tracking():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    (buffer,) = [buffer for buffer in memrt.debug.live() if buffer.nbytes == 8000]
    assert buffer.site.frames[0].function == "caller"
    assert buffer.site.frames[1].function.endswith("work")
    assert buffer.scope == "worker"
    assert buffer.thread != threading.get_native_id()
    assert found[0].size == 1000


def keep(kept):
    kept.append(ones(500))


@needs_gil
def test_leaks_and_growth_are_found_at_the_calling_function():
    kept = []
    with pytest.raises(memrt.debug.LeakError) as error, memrt.debug.assert_no_leaks():
        keep(kept)
    assert error.value.groups[0].place.function == "keep"
    (trend,) = memrt.debug.growth(keep, kept, rounds=12).growing
    assert (trend.name.split(" at ")[0], trend.slope) == ("keep", 4000)
    assert trend.newest.unexplained == 0
