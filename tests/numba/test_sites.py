"""Where memory of jitted functions is born: the calls that led there, and the scope."""

from __future__ import annotations

import threading
from collections.abc import Callable

import memrt
import numba
import numpy as np
import pytest
from numba.typed import List

MADE_AT_RUN_TIME = "code made at run time"


@numba.njit
def ones(n):
    return np.ones(n)


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


@numba.njit(nogil=True)
def ones_without_the_gil(n):
    return np.ones(n)


def into_a_list(n):
    rows = List([np.ones(1)])
    into(rows, n)
    return rows


MAKERS = {
    "ones": ones,
    "one that calls another": ones_of_another,
    "one that fills a list": into_a_list,
    "one of several threads": ones_by_threads,
}


@pytest.fixture(autouse=True, scope="module")
def compiled():
    """What compiling makes is born before the tests."""
    for maker in [*MAKERS.values(), ones_without_the_gil]:
        maker(2)


def caller(maker: Callable, n: int):
    return maker(n)


def born(maker: Callable, n: int = 1000, **options) -> tuple[object, memrt.LiveBuffer]:
    """What a function made, and the one buffer of that many floats."""
    with memrt.tracking(**options):
        made = caller(maker, n)
    (buffer,) = [buffer for buffer in memrt.live() if buffer.size == 8 * n]
    return made, buffer


@pytest.mark.parametrize("name", MAKERS)
def test_the_calls_that_led_to_a_birth_are_those_of_the_caller(name):
    made, buffer = born(MAKERS[name])
    functions = [frame.function for frame in buffer.site.frames]
    here = functions.index("caller")
    assert functions[here + 1] == "born"
    assert buffer.site.frames[here].line == caller.__code__.co_firstlineno + 1
    assert not any(frame.is_native for frame in buffer.site.frames)
    assert made is not None


def test_the_place_of_a_birth_is_the_line_that_called_the_jitted_function():
    made, buffer = born(ones)
    assert buffer.place == memrt.Place(__file__, "caller", caller.__code__.co_firstlineno + 1)
    assert made.size == 1000


@pytest.mark.parametrize("name", MAKERS)
def test_native_calls_show_the_code_that_was_made_at_run_time(name):
    made, buffer = born(MAKERS[name], native=8)
    native = [frame for frame in buffer.site.frames if frame.is_native]
    assert 0 < len(native) <= 8
    assert any(frame.file is None and MADE_AT_RUN_TIME in str(frame) for frame in native)
    assert "caller" in [frame.function for frame in buffer.site.frames[len(native) :]]
    assert made is not None


@pytest.mark.parametrize("name", MAKERS)
def test_the_scope_that_is_in_force_for_the_caller_has_the_birth(name):
    with memrt.scope("jitted"), memrt.scope(name) as scope:
        made, buffer = born(MAKERS[name])
        assert buffer.scope == f"jitted/{name}"
    assert scope.live >= 8000
    del made
    assert scope.live == 0


def test_a_birth_without_the_gil_has_native_calls_alone_and_no_scope():
    with memrt.scope("not asked for"):
        made, buffer = born(ones_without_the_gil, native=8)
    assert buffer.scope is None
    assert all(frame.is_native for frame in buffer.site.frames)
    assert made.size == 1000


def test_a_birth_on_another_thread_has_the_calls_and_the_scope_of_that_thread():
    found = []

    def work():
        with memrt.scope("worker"):
            found.append(caller(ones, 1000))

    with memrt.tracking():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    (buffer,) = [buffer for buffer in memrt.live() if buffer.size == 8000]
    assert buffer.site.frames[0].function == "caller"
    assert buffer.site.frames[1].function.endswith("work")
    assert buffer.scope == "worker"
    assert buffer.thread != threading.get_native_id()
    assert found[0].size == 1000


def keep(kept):
    kept.append(ones(500))


def test_leaks_and_growth_of_jitted_functions_are_found_at_the_line_that_calls_them():
    kept = []
    with pytest.raises(memrt.LeakError) as error, memrt.assert_no_leaks():
        keep(kept)
    assert error.value.groups[0].place.function == "keep"
    (trend,) = memrt.growth(keep, kept, rounds=12).growing
    assert (trend.what.split(" at ")[0], trend.slope) == ("keep", 4000)
    assert trend.newest.unexplained == 0
