"""Time export and import of memory by memrt and by another library, in this process.

usage: python exchange.py JOB, a JSON object:

  peer      NumPy or pyarrow
  target    approximate nanoseconds of a measurement
  turns     measurements per library; the libraries alternate, and the figure is the median

Prints {case: {library: nanoseconds per call}}.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import timeit
from collections.abc import Callable

import memrt
import numpy as np

COUNT = 1000
VERSION = (1, 0)  # the DLPack version that NumPy requests
Ways = dict[str, Callable[[], object]]


class Forwarded:
    """An Arrow array that exposes only `__arrow_c_array__` to a consumer."""

    def __init__(self, array: object) -> None:
        self.__arrow_c_array__ = array.__arrow_c_array__


def with_numpy() -> dict[str, Ways]:
    theirs, ours = np.zeros(COUNT), memrt.types.Tensor(memrt.zeros(COUNT))
    their_bytes, our_bytes = np.zeros(COUNT, "u1"), memrt.alloc(COUNT, zero=True)
    return {
        "`x.__dlpack__()`": {
            "NumPy": lambda: theirs.__dlpack__(max_version=VERSION),
            "memrt": lambda: ours.__dlpack__(max_version=VERSION),
        },
        "`np.from_dlpack(x)`": {
            "NumPy": lambda: np.from_dlpack(theirs),
            "memrt": lambda: np.from_dlpack(ours),
        },
        "`from_dlpack(x)` of NumPy and of memrt, x of NumPy's": {
            "NumPy": lambda: np.from_dlpack(theirs),
            "memrt": lambda: memrt.from_dlpack(theirs),
        },
        "`memoryview(x)`": {
            "NumPy": lambda: memoryview(their_bytes),
            "memrt": lambda: memoryview(our_bytes),
        },
        "`np.frombuffer(x)`": {
            "NumPy": lambda: np.frombuffer(their_bytes, np.uint8),
            "memrt": lambda: np.frombuffer(our_bytes, np.uint8),
        },
        "`x.__array_interface__`": {
            "NumPy": lambda: their_bytes.__array_interface__,
            "memrt": lambda: our_bytes.__array_interface__,
        },
        "`x.__array_struct__`": {
            "NumPy": lambda: their_bytes.__array_struct__,
            "memrt": lambda: our_bytes.__array_struct__,
        },
    }


def with_pyarrow() -> dict[str, Ways]:
    import pyarrow

    theirs, ours = pyarrow.array(np.zeros(COUNT)), memrt.types.Column(memrt.zeros(COUNT))
    forwarded = Forwarded(theirs)
    return {
        "`x.__arrow_c_array__()`": {
            "pyarrow": lambda: theirs.__arrow_c_array__(),
            "memrt": lambda: ours.__arrow_c_array__(),
        },
        "`pyarrow.array(x)`": {
            "pyarrow": lambda: pyarrow.array(forwarded),
            "memrt": lambda: pyarrow.array(ours),
        },
        "`pyarrow.array(x)` and `memrt.from_arrow(x)`, x of pyarrow's": {
            "pyarrow": lambda: pyarrow.array(forwarded),
            "memrt": lambda: memrt.from_arrow(forwarded),
        },
    }


PEERS = {"NumPy": with_numpy, "pyarrow": with_pyarrow}


def calibrated(way: Callable[[], object], target: int) -> tuple[timeit.Timer, int]:
    """Return a timer and the number of calls per measurement."""
    timer = timeit.Timer(way, timer=time.process_time_ns)
    count = 100
    while (took := timer.timeit(count)) < target // 4:
        count *= 2
    return timer, max(100, count * target // took)


def nanoseconds(ways: Ways, target: int, turns: int) -> dict[str, float]:
    """Return the nanoseconds per call of each library.

    The libraries alternate, so that a disturbance of the machine affects both.
    """
    timers = {whose: calibrated(way, target) for whose, way in ways.items()}
    took: dict[str, list[float]] = {whose: [] for whose in ways}
    for _ in range(turns):
        for whose, (timer, count) in timers.items():
            took[whose].append(timer.timeit(count) / count)
    return {whose: statistics.median(figures) for whose, figures in took.items()}


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    cases = PEERS[request["peer"]]()
    print(
        json.dumps(
            {
                name: nanoseconds(ways, request["target"], request["turns"])
                for name, ways in cases.items()
            }
        )
    )
