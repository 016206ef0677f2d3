"""Parallel loops and calls without the GIL use the policy and scope of the caller."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import json
import os
import platform
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import llvmlite.binding
import memrt
import numba
import numpy as np
import pytest
from jitted import ones, ones_without_gil
from numba import njit, objmode
from numba.core.runtime import _nrt_python as nrt

PROGRAM = Path(__file__).resolve().parents[1] / "support" / "parallel_loops.py"
EXT = Path(__file__).resolve().parents[1] / "ext"

ALONE = ("loop", "ufunc", "gufunc", "nogil", "containers", "thread_counts", "errors",
         "changing_policies", "python_in_loops", "forked_child")  # fmt: skip
TOGETHER = ("nested_loops", "concurrent_launches")  # workqueue ends a process that does this
CASES = {"workqueue": ALONE, "omp": ALONE + TOGETHER, "tbb": ALONE + TOGETHER}


def environment(layer: str, **variables: str) -> dict[str, str]:
    """Return the environment of a process with a threading layer of 4 threads.

    pip installs TBB outside of the path of the loader.
    """
    libraries = [str(Path(sys.prefix, "lib")), os.environ.get("LD_LIBRARY_PATH", "")]
    return {
        **os.environ,
        "NUMBA_THREADING_LAYER": layer,
        "NUMBA_NUM_THREADS": "4",
        "OMP_MAX_ACTIVE_LEVELS": "2",
        "LD_LIBRARY_PATH": ":".join(filter(None, libraries)),
        **variables,
    }


def layers():
    """Yield parameters. Numba prefers TBB; tests of the other layers are slow."""
    for layer in CASES:
        yield pytest.param(layer, marks=() if layer == "tbb" else (pytest.mark.slow,))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("layer", layers())
def test_parallel_loops_belong_to_policy_and_scope(layer):
    if layer == "tbb" and platform.machine() != "x86_64":
        pytest.skip("TBB has wheels for x86-64 only")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *CASES[layer]],
        env=environment(layer), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["layer"] == layer
    assert set(found["cases"]) == set(CASES[layer])
    expected, counted = ({case: pair[k] for case, pair in found["cases"].items()} for k in (0, 1))
    assert counted == expected


LOOPS = """
import numba, numpy as np

@numba.njit(parallel=True, nogil=True, cache=True)
def loop(out):
    for i in numba.prange(out.size):
        out[i] = np.ones(i + 1).sum()
"""

CACHED = """
import sys
import memrt.numba
if sys.argv[1] == "memrt":
    memrt.numba.install()
import memrt, numpy as np
from loops import loop

policy = memrt.Policy(name="cached")
with policy:
    loop(np.zeros(100))
print(policy.stats().alloc - policy.stats().free, policy.stats().alloc >= 100,
      sum(loop.stats.cache_hits.values()))
"""


@pytest.mark.timeout(600)
def test_cached_loops_of_stock_numba_use_the_policy(run_python, tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS, encoding="utf-8")
    variables = {**environment("workqueue"), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    found = [run_python(CACHED, name, env=variables).stdout for name in ("stock", "memrt")]
    assert [line.split()[1:] for line in found] == [["False", "0"], ["True", "1"]]


OTHER_THREAD = """
import memrt.numba; memrt.numba.install()
import ctypes, threading
import memrt, numba, numpy as np
from numba.core.runtime import _nrt_python as nrt

ones = numba.njit(lambda n: np.ones(n))
pointers, number = [ctypes.c_void_p] * 4, ctypes.c_size_t
chunk_type = ctypes.PYFUNCTYPE(None, *pointers)
layer_type = ctypes.PYFUNCTYPE(None, chunk_type, *pointers, number, number, ctypes.c_int)
found = []

def note():
    found.append(memrt.meminfo(ones(3)).policy)

def work(chunk, *arguments):
    with memrt.Policy(name="before"):
        note()
    note()
    chunk(*arguments)
    note()

def layer(chunk, args, dims, steps, data, *sizes):
    thread = threading.Thread(target=work, args=(chunk, args, dims, steps, data))
    thread.start()
    thread.join()

ones(1)
layer, chunk = layer_type(layer), chunk_type(lambda *arguments: note())
launch = layer_type(nrt.wrap_parallel_for(ctypes.cast(layer, ctypes.c_void_p).value))
with memrt.Policy(name="launch"):
    launch(chunk, None, None, None, None, 0, 0, 1)
launch(chunk, None, None, None, None, 0, 0, 1)
print(*found)
"""


def test_chunk_on_a_thread_of_python_uses_the_launch(run_python):
    """A layer may run chunks on any thread, also on a thread that just used another policy."""
    outside = "launch" if getattr(sys.flags, "thread_inherit_context", 0) else "default"
    assert run_python(OTHER_THREAD).stdout.split() == [
        "before", outside, "launch", outside, "before", "default", "default", "default",
    ]  # fmt: skip


# --- Calls without the GIL ---


def policy_of(call) -> str:
    return memrt.meminfo(call(10)).policy


@njit(nogil=True)
def ones_after_python(n):
    with objmode():
        run_noted_call()
    return np.ones(n)


@njit(nogil=True)
def refuse(n):
    kept = np.ones(n)
    if kept.sum() > 0:
        raise ValueError("planted")
    return kept


noted_calls = []
RELEASED_CALL = 5 * ctypes.sizeof(ctypes.c_void_p)  # bytes of a released_call_t


def run_noted_call():
    noted_calls.pop()()


@pytest.fixture(scope="module", autouse=True)
def compiled_functions():
    """Compile outside of policies, because Numba allocates arrays of NumPy meanwhile."""
    noted_calls.append(lambda: None)
    ones(1), ones_without_gil(1), ones_after_python(1)
    with pytest.raises(ValueError, match="planted"):
        refuse(1)


def test_call_without_the_gil_uses_policy_and_scope():
    with memrt.Policy(name="outer") as outer, memrt.scope("whole") as scope:
        array = ones_without_gil(10)
        with memrt.Policy(name="inner"), memrt.scope("part") as part:
            other = ones_without_gil(20)
        assert [memrt.meminfo(made).policy for made in (array, other)] == ["outer", "inner"]
        assert (scope.live, part.live, outer.stats().live) == (240, 160, 80)
    assert policy_of(ones_without_gil) == "default"
    del array, other


def test_call_that_raises_leaves_no_policy():
    with memrt.Policy(name="raises") as policy:
        before = policy.stats().alloc
        with pytest.raises(ValueError, match="planted"):
            refuse(3)
        assert policy.stats().alloc > before
    assert policy_of(ones_without_gil) == "default"


def test_python_in_a_call_may_change_the_policy():
    """A call keeps the policy of its start, and Python code has the policy of its context."""
    inner, found = memrt.Policy(name="inner"), []
    empty = contextvars.Context()

    def change():
        with inner:
            found.append(policy_of(ones))
            found.append(policy_of(ones_without_gil))
        found.append(empty.run(policy_of, ones_without_gil))
        found.append(policy_of(ones))

    for name in ("default", "outer"):
        noted_calls.append(change)
        with memrt.Policy(name=name) if name == "outer" else contextlib.nullcontext():
            assert policy_of(ones_after_python) == name
        assert found == ["inner", "inner", "default", name]
        found.clear()


def test_policy_dropped_during_a_call_stays_in_use():
    def drop():
        token.pop().__exit__(None, None, None)
        for number in range(20):
            memrt.Policy(name=f"other {number}")

    token = [memrt.Policy(name="dropped")]
    token[0].__enter__()
    noted_calls.append(drop)
    assert policy_of(ones_after_python) == "dropped"
    assert policy_of(ones_without_gil) == "default"


def test_tasks_and_contexts_without_the_gil_keep_policies():
    async def work(number):
        with memrt.Policy(name=f"task {number}"):
            for _ in range(5):
                await asyncio.sleep(0)
                assert policy_of(ones_without_gil) == f"task {number}"
        await asyncio.sleep(0)
        assert policy_of(ones_without_gil) == "default"

    async def main():
        await asyncio.gather(*(work(number) for number in range(8)))

    asyncio.run(main())


def test_threads_without_the_gil_keep_their_policies():
    failures, start = [], threading.Barrier(4)

    def work(number):
        start.wait()
        for turn in range(100):
            with memrt.Policy(name=f"thread {number} {turn}"):
                if policy_of(ones_without_gil) != f"thread {number} {turn}":
                    failures.append((number, turn))
            if policy_of(ones_without_gil) != "default":
                failures.append((number, turn, "default"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_call_without_memory_for_its_policy_uses_the_default(compile_library):
    flags = (f"-I{sysconfig.get_path('include')}",)
    library = ctypes.CDLL(str(compile_library(EXT / "rawfailure.c", flags=flags)))
    with memrt.Policy(name="short of memory"):
        library.start_failing(ctypes.c_size_t(RELEASED_CALL))
        try:
            array = ones_without_gil(10)
        finally:
            library.stop_failing()
        assert memrt.meminfo(array).policy == "default"
        assert policy_of(ones_without_gil) == "short of memory"


# --- Symbols ---


def test_wrapped_function_of_a_layer_is_not_wrapped_again():
    shim = llvmlite.binding.address_of_symbol("numba_parallel_for")
    if shim is None:  # no loop has started a layer yet
        numba.np.ufunc.parallel._launch_threads()
        shim = llvmlite.binding.address_of_symbol("numba_parallel_for")
    assert nrt.wrap_parallel_for(shim) == shim
    assert set(nrt.thread_symbols) == {"PyEval_SaveThread", "PyEval_RestoreThread"}
    with pytest.raises(ValueError, match="address must not be 0"):
        nrt.wrap_parallel_for(0)
    with pytest.raises(TypeError, match="int"):
        nrt.wrap_parallel_for("layer")
