"""Every C helper of Numba's runtime, on memrt, survives each failure of an allocation.

The helper returns NULL or raises MemoryError, nothing is lost, and the next call works.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass

import memrt
import numpy as np
import points
import pytest
from memrt.testing import fail_allocations
from numba.core.runtime import _nrt_python as nrt
from runtimes import DTOR, Runtime

ARRAY = np.arange(6.0)
SPACE = (ctypes.c_size_t * 7)()
DTYPE = np.dtype("f4")
nothing = DTOR(lambda data, size, info: None)
NOTHING = ctypes.cast(nothing, ctypes.c_void_p).value


@dataclass(frozen=True)
class Helper:
    """A call of a helper, with functions for setup, for release of the result and for cleanup."""

    call: Callable[[Runtime, int], object]
    undo: Callable[[Runtime, object], object] = lambda runtime, made: None
    before: Callable[[Runtime], object] = lambda runtime: None
    after: Callable[[Runtime, object], object] = lambda runtime, stood: None
    fails: bool = True


def release(runtime: Runtime, mi: object) -> None:
    runtime.release(mi)


def creator(call: Callable[[Runtime, object], object]) -> Helper:
    return Helper(call, release)


def over_array(runtime: Runtime) -> int:
    return runtime.meminfo_new_from_pyobject(ARRAY.ctypes.data, ARRAY)


def release_space(runtime: Runtime, made: object) -> None:
    runtime.release(SPACE[0])


def array_in(runtime: Runtime) -> object:
    runtime.adapt_ndarray_from_python(ARRAY, SPACE)
    return SPACE


def buffer_in(runtime: Runtime, stood: object) -> object:
    view, SPACE[0] = memoryview(ARRAY), 0
    buffer = (ctypes.c_char * 80)()
    ctypes.pythonapi.PyObject_GetBuffer.argtypes = (ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
    ctypes.pythonapi.PyObject_GetBuffer(view, buffer, 0x18)  # PyBUF_STRIDES
    try:
        runtime.adapt_buffer_from_python(buffer, SPACE)
    finally:
        ctypes.pythonapi.PyBuffer_Release.argtypes = (ctypes.c_void_p,)
        ctypes.pythonapi.PyBuffer_Release(buffer)
    return SPACE[0]


def box(runtime: Runtime, stood: object) -> object:
    return runtime.adapt_ndarray_to_python_acqref(SPACE, id(np.ndarray), 1, 1, id(DTYPE))


def grow(runtime: Runtime, mi: object) -> object:
    return runtime.MemInfo_varsize_realloc(mi, 3_000_000)


def free_varsize(runtime: Runtime, mi: object) -> object:
    runtime.MemInfo_varsize_free(mi, runtime.MemInfo_data(mi))
    return True


def end_by_hand(runtime: Runtime, mi: object) -> object:
    ctypes.c_size_t.from_address(mi).value = 0
    runtime.MemInfo_call_dtor(mi)
    return True


def varsize(runtime: Runtime) -> object:
    return runtime.MemInfo_new_varsize(100)


def varsize_and_data(runtime: Runtime) -> tuple[object, object]:
    mi = varsize(runtime)
    return mi, runtime.MemInfo_data(mi)


def release_with_old_data(runtime: Runtime, stood: tuple[object, object]) -> None:
    runtime.MemInfo_varsize_free(*stood)
    runtime.release(stood[0])


def plain(runtime: Runtime) -> object:
    return runtime.MemInfo_alloc(100)


@pytest.fixture(scope="module", autouse=True)
def quick_collections():
    """Freeze all objects older than the first test, so that gc.collect() skips them."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


HELPERS = {
    "MemInfo_alloc": creator(lambda r, _: r.MemInfo_alloc(100)),
    "MemInfo_alloc_safe": creator(lambda r, _: r.MemInfo_alloc_safe(100)),
    "MemInfo_alloc_aligned": creator(lambda r, _: r.MemInfo_alloc_aligned(100, 256)),
    "MemInfo_alloc_safe_aligned": creator(lambda r, _: r.MemInfo_alloc_safe_aligned(100, 256)),
    "MemInfo_alloc_safe_aligned_external": creator(
        lambda r, _: r.MemInfo_alloc_safe_aligned_external(
            100, 32, r._nrt_get_sample_external_allocator()
        )
    ),
    "_nrt_get_sample_external_allocator": Helper(
        lambda r, _: r._nrt_get_sample_external_allocator(), fails=False
    ),
    "MemInfo_alloc_dtor": creator(lambda r, _: r.MemInfo_alloc_dtor(100, NOTHING)),
    "MemInfo_alloc_dtor_safe": creator(lambda r, _: r.MemInfo_alloc_dtor_safe(100, NOTHING)),
    "MemInfo_call_dtor": Helper(end_by_hand, before=plain, fails=False),
    "MemInfo_new_varsize": creator(lambda r, _: r.MemInfo_new_varsize(100)),
    "MemInfo_new_varsize_dtor": creator(lambda r, _: r.MemInfo_new_varsize_dtor(100, NOTHING)),
    "MemInfo_varsize_alloc": Helper(
        lambda r, stood: r.MemInfo_varsize_alloc(stood[0], 200),
        before=varsize_and_data,
        after=release_with_old_data,
    ),
    "MemInfo_varsize_realloc": Helper(grow, before=varsize, after=release),
    "MemInfo_varsize_free": Helper(free_varsize, before=varsize, after=release, fails=False),
    "MemInfo_data": Helper(
        lambda r, mi: r.MemInfo_data(mi), before=plain, after=release, fails=False
    ),
    "MemInfo_release": Helper(
        lambda r, mi: r.MemInfo_release(mi) or True, before=plain, fails=False
    ),
    "Allocate": Helper(lambda r, _: r.Allocate(100), lambda r, made: r.Free(made)),
    "Free": Helper(lambda r, data: r.Free(data) or True, before=lambda r: r.Allocate(9),
                   fails=False),
    "get_api": Helper(lambda r, _: r.get_api(), fails=False),
    "adapt_ndarray_from_python": Helper(
        lambda r, _: r.adapt_ndarray_from_python(ARRAY, SPACE) == 0, release_space
    ),
    "adapt_ndarray_to_python_acqref": Helper(
        box, before=array_in, after=release_space, fails=False
    ),
    "adapt_buffer_from_python": Helper(buffer_in, release),
    "meminfo_new_from_pyobject": creator(lambda r, _: over_array(r)),
    "meminfo_as_pyobject": Helper(
        lambda r, mi: r.meminfo_as_pyobject(mi), before=plain, fails=False
    ),
    "meminfo_from_pyobject": Helper(
        lambda r, mi: r.meminfo_from_pyobject(mi), release,
        lambda r: r.meminfo_as_pyobject(plain(r)), fails=False,
    ),
}  # fmt: skip


def held() -> tuple[int, int, int]:
    """Return the numbers of live blocks, live MemInfos and references to ARRAY."""
    gc.collect()
    stats = memrt.stats()
    blocks, infos = stats.alloc - stats.free, stats.mi_alloc - stats.mi_free
    return blocks, infos, sys.getrefcount(ARRAY)


def attempt(helper: Helper, runtime: Runtime, stood: object) -> object:
    """Return the result of the helper, or None after a MemoryError."""
    try:
        return helper.call(runtime, stood)
    except MemoryError:
        return None


def meet(helper: Helper, runtime: Runtime, nth: int, every: int | None) -> tuple[int, bool]:
    """Fail the nth allocation of a helper. Check that nothing is lost and that a retry works.

    Returns the number of failure points, and whether the call was refused.
    """
    start = held()
    stood = helper.before(runtime)
    before = held()
    with fail_allocations(nth, every) as plan:
        made = attempt(helper, runtime, stood)
    refused = isinstance(made, int | None) and not made
    if refused:
        assert plan.points >= nth
        assert held() == before
        made = helper.call(runtime, stood)
        assert made
    helper.undo(runtime, made)
    del made
    helper.after(runtime, stood)
    del stood
    assert held() == start
    return plan.points, refused


@pytest.mark.parametrize("every", [None, 1], ids=["once", "from there on"])
@pytest.mark.parametrize("name", HELPERS)
def test_helper_without_memory_fails_and_loses_nothing(on_memrt, name, every):
    helper, refusals = HELPERS[name], 0
    for nth in itertools.count(1):
        met, refused = meet(helper, on_memrt, nth, every)
        refusals += refused
        if met < nth:
            break
    points.note(f"numba: {name}", "memrt", nth - 1)
    assert (refusals > 0) == helper.fails


def test_every_helper_of_the_runtime_is_tested():
    assert set(HELPERS) == set(nrt.c_helpers)
