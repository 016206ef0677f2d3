"""Count the instructions of launches of jitted functions with callgrind, in this process.

usage: launches.py JOB, a JSON object as for kernels.py, with `counting` and the `case` to count;
NUMBA_CACHE_DIR set

Dumps the count, and prints {case: iterations} as JSON. Without `case`, compiles all functions into
the cache on disk, and prints the cases.
"""

from __future__ import annotations

import ctypes
import json
import sys

# kernels.py installs memrt before the import of Numba.
from kernels import enter  # isort: skip
import numpy as np
from counted import write_down
from numba import njit, prange

ITERATIONS = 2000
SIZE = 8  # elements of an array: 64 bytes


@njit(cache=True)
def held(count):
    return count


@njit(cache=True, nogil=True)
def released(count):
    return count


@njit(cache=True, parallel=True)
def launched(out):
    for i in prange(out.size):
        out[i] = i


@njit(cache=True)
def arrays_held(count):
    total = 0.0
    for i in range(count):
        array = np.empty(SIZE)
        array[i & 7] = i
        total += array[i & 7]
    return total


@njit(cache=True, nogil=True)
def arrays_released(count):
    total = 0.0
    for i in range(count):
        array = np.empty(SIZE)
        array[i & 7] = i
        total += array[i & 7]
    return total


@njit(cache=True, parallel=True)
def arrays_launched(out):
    for i in prange(out.size):
        array = np.empty(SIZE + (i & 1))  # an array of a fixed size leaves the loop
        array[i & 7] = i
        out[i] = array[i & 7]


def repeated(function, argument):
    """Return a function that calls `function` from Python a number of times."""

    def run(count):
        for _ in range(count):
            function(argument)

    return run


def cases():
    """Return each case as a function of the number of iterations."""
    out = np.zeros(ITERATIONS)
    return {
        "call from Python": repeated(held, 1),
        "call with `nogil=True`": repeated(released, 1),
        "launch of a parallel loop": repeated(launched, np.zeros(1)),
        "array in a call with the GIL": arrays_held,
        "array in a call with `nogil=True`": arrays_released,
        "array in a parallel loop": lambda count: arrays_launched(out[:count]),
    }


def main() -> None:
    job = json.loads(sys.argv[1])
    name = job.get("case")
    with enter(job["subject"].get("within")):
        if name is None:
            for run in cases().values():
                run(1)
            print(json.dumps(list(cases())))
            return
        library = ctypes.CDLL(job["counting"])
        write_down(library, name, cases()[name], ITERATIONS)
    print(json.dumps({name: ITERATIONS}))


if __name__ == "__main__":
    main()
