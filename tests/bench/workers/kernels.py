"""Measure jitted functions that allocate from Numba's runtime, in this process.

usage: kernels.py JOB, a JSON object whose subject has a kind, default or memrt, and may be `within`
a policy or a scope; NUMBA_CACHE_DIR set

Prints {kernel: nanoseconds per iteration} as JSON. With `counting`, the path of the compiled
counting.c, callgrind counts the instructions of each kernel instead, and the program prints
{kernel: iterations}. Compiled code comes from the cache on disk, so that all runtimes run the same
machine code.

No library times the kernels: pyperf measures elapsed time, but processor time of background threads
must count.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import statistics
import sys
import time

if json.loads(sys.argv[1])["subject"]["kind"] == "memrt":
    import memrt.numba

    memrt.numba.install()

import numpy as np
from counted import write_down
from numba import njit, types
from numba.core.runtime import _nrt_python
from numba.typed import Dict, List

ROUND_NS = 10_000_000  # target for the time of one measurement
REPEATS = 9
KIB = 1024


@njit(cache=True)
def small_arrays(count):
    total = 0.0
    for i in range(count):
        array = np.empty(8)
        array[i & 7] = i
        total += array[i & 7]
    return total


@njit(cache=True)
def kept_arrays(count):
    total = 0
    for _ in range(count // 64 + 1):
        kept = [np.empty(10) for _ in range(64)]
        total += len(kept)
    return total


@njit(cache=True)
def temporaries(count, a, b):
    total = 0.0
    for _ in range(count):
        total += (a + b)[0]
    return total


@njit(cache=True)
def sums_in_place(count, a, b, out):
    total = 0.0
    for _ in range(count):
        for i in range(a.size):
            out[i] = a[i] + b[i]
        total += out[0]
    return total


@njit(cache=True)
def strings(count):
    total = 0
    for i in range(count):
        total += len("item " + str(i) + "!")
    return total


@njit(cache=True)
def reflected_lists(count):
    total = 0
    for _ in range(count):
        items = []
        for i in range(20):
            items.append(i)
        total += len(items)
    return total


@njit(cache=True)
def typed_lists(count):
    total = 0
    for _ in range(count):
        items = List()
        for i in range(5):
            items.append(i)
        total += len(items)
    return total


@njit(cache=True)
def dicts(count):
    total = 0
    for _ in range(count):
        table = Dict.empty(types.int64, types.int64)
        for i in range(10):
            table[i] = i
        total += len(table)
    return total


@njit(cache=True)
def sets(count):
    total = 0
    for _ in range(count):
        items = set()
        for i in range(20):
            items.add(i)
        total += len(items)
    return total


@njit(cache=True)
def one_out(size):
    return np.empty(size)


@njit(cache=True)
def one_in(array):
    return array.size


def arrays_to_python(count):
    for _ in range(count):
        one_out(8)


def arrays_from_python(count, array):
    for _ in range(count):
        one_in(array)


def cases() -> dict[str, tuple]:
    """Return each kernel with the arguments that follow `count`."""
    some, many = np.ones(256 * KIB // 8), np.ones(2048 * KIB // 8)
    return {
        "arrays of 64 B, one at a time": (small_arrays,),
        "arrays of 80 B, 64 kept in a list": (kept_arrays,),
        "temporaries of 256 KiB": (temporaries, some, some),
        "256 KiB into an existing array": (sums_in_place, some, some, some.copy()),
        "temporaries of 2 MiB": (temporaries, many, many),
        "2 MiB into an existing array": (sums_in_place, many, many, many.copy()),
        "strings": (strings,),
        "lists": (reflected_lists,),
        "typed lists": (typed_lists,),
        "typed dicts": (dicts,),
        "sets": (sets,),
        "an array to Python": (arrays_to_python,),
        "an array from Python": (arrays_from_python, some),
    }


def timed(function, count: int, arguments: tuple) -> int:
    """Return the processor time of the thread, which depends little on the load of the machine."""
    begin = time.thread_time_ns()
    function(count, *arguments)
    return time.thread_time_ns() - begin


def measure(function, *arguments: object) -> float:
    """Return the median nanoseconds of processor time per iteration."""
    timed(function, 1, arguments)
    count = 64
    while (spent := timed(function, count, arguments)) < ROUND_NS // 4:
        count *= 2
    count = max(1, int(count * ROUND_NS / spent))
    times = [timed(function, count, arguments) for _ in range(REPEATS)]
    return statistics.median(times) / count


def count(library: ctypes.CDLL, name: str, function, *arguments: object) -> int:
    """Dump the instructions of some iterations of a kernel. Return the number of iterations."""
    iterations = 6 if "MiB" in name else 20 if "KiB" in name else 2000
    return write_down(library, name, lambda times: function(times, *arguments), iterations)


def enter(place: str | None) -> contextlib.AbstractContextManager:
    """Return the context of the measurement: a policy, a scope, or nothing."""
    if place == "policy":
        return memrt.Policy(name="bench")
    return memrt.scope("bench") if place == "scope" else contextlib.nullcontext()


def main() -> None:
    job = json.loads(sys.argv[1])
    assert hasattr(_nrt_python, "memrt_version") == ("memrt.numba" in sys.modules)
    counting = job.get("counting")
    with enter(job["subject"].get("within")):
        if counting:
            library = ctypes.CDLL(counting)
            found = {name: count(library, name, *case) for name, case in cases().items()}
        else:
            found = {name: measure(*case) for name, case in cases().items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
