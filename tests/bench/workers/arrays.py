"""Time NumPy operations on arrays, on request.

usage: python arrays.py SUBJECT, a JSON object with a kind: default, or memrt for NumPy on memrt
       python arrays.py JOB, a JSON object:

  subject    as above
  topics     pairs of a topic and bytes
  counting   path of the compiled counting.c, to have callgrind count the instructions of all cases

The second form prints {case: calls}. The first form reads requests, one per line, and answers each
with one line of JSON:

  ["prepare", topic, bytes]              {case: [way, ...]}: the work that can be timed
  ["time", case, way, target, count]     nanoseconds of processor time of one call, from one
                                         measurement of about `target` nanoseconds, or of `count`
                                         calls unless that is null

A way is "" for the work as the subject does it. Other ways do the same work by other means, in the
same process.

No library times the operations: pyperf measures elapsed time, but processor time of background
threads must count.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import json
import sys
import time
import timeit

import memrt
import numpy as np
from counted import write_down

PAGE = 4096
CALLS = 200  # calls per case for the count of instructions
kept = []  # arrays filled once and kept live


class Timed:
    """One piece of work, repeated until a measurement lasts long enough."""

    def __init__(self, work) -> None:
        self.timer = timeit.Timer(work, timer=time.process_time_ns)
        self.count = 0

    def calibrate(self, target: int) -> None:
        """Set the number of calls per measurement. The trial calls also warm up the subject."""
        count = 1
        self.timer.timeit(1)
        while (spent := self.timer.timeit(count)) < target // 4:
            count *= 2
        self.count = max(1, int(count * target / spent))

    def nanoseconds(self, target: int, count: int | None) -> float:
        """Return the nanoseconds per call. Calibrate first if `count` is None."""
        if count is None and not self.count:
            self.calibrate(target)
        count = count or self.count
        return self.timer.timeit(count) / count


def expression(a, b, c):
    return (a - b) ** 2 + c * a - b / c


def expression_out(a, b, c, total, term):
    """Compute `expression` into existing arrays, without a new array."""
    np.subtract(a, b, out=total)
    np.square(total, out=total)
    np.multiply(c, a, out=term)
    np.add(total, term, out=total)
    np.divide(b, c, out=term)
    np.subtract(total, term, out=total)
    return total


def expressions(size: int) -> dict:
    """Return an expression with temporaries, and the same expression into existing arrays."""
    a, b, c = (np.full(size // 8, value) for value in (1.5, 2.5, 3.5))
    total, term = np.ones_like(a), np.ones_like(a)
    return {
        "": {
            "": lambda: expression(a, b, c),
            "out=": lambda: expression_out(a, b, c, total, term),
        }
    }


def operations(size: int) -> dict:
    """Return twenty common operations on an array of `size` bytes."""
    chance = np.random.default_rng(size)
    a = chance.random(size // 8)
    b = chance.random(a.size)
    side = max(2, int(a.size**0.5))
    square = a[: side * side].reshape(side, side)
    few = square[: min(side, 128), : min(side, 128)].copy()
    picks = chance.integers(0, a.size, a.size)
    mask = a > 0.5
    return {
        "add": lambda: a + b,
        "multiply by a number": lambda: a * 2.5,
        "divide": lambda: a / b,
        "square root": lambda: np.sqrt(a),
        "exponential": lambda: np.exp(a),
        "compare": lambda: a < b,
        "sum": lambda: a.sum(),
        "sum of columns": lambda: square.sum(axis=0),
        "maximum of rows": lambda: square.max(axis=1),
        "running sum": lambda: np.cumsum(a),
        "sort": lambda: np.sort(a),
        "order": lambda: np.argsort(a),
        "matrix product": lambda: few @ few,
        "concatenate": lambda: np.concatenate([a, b]),
        "pick by index": lambda: a[picks],
        "pick by mask": lambda: a[mask],
        "to 32 bits": lambda: a.astype(np.float32),
        "copy": lambda: a.copy(),
        "transpose and copy": lambda: np.ascontiguousarray(square.T),
        "Fourier transform": lambda: np.fft.rfft(a),
    }


def zeros_written(size: int, step: int):
    def work() -> None:
        np.zeros(size, np.uint8)[::step] = 1

    return work


def zeros(size: int) -> dict:
    """Return work on an array of zeros: write nothing, one page in a hundred, or every page."""
    return {
        "untouched": lambda: np.zeros(size, np.uint8),
        "1 % touched": zeros_written(size, 100 * PAGE),
        "all touched": zeros_written(size, 64),
    }


def first_fill(size: int) -> dict:
    """Return work that fills a new array and keeps it, so that the next array gets other memory."""

    def work() -> None:
        kept.append(np.empty(size // 8))
        kept[-1].fill(1.0)

    return {"": work}


def creation(size: int) -> dict:
    """Return work that makes and drops a small array, for each function that makes arrays."""
    count = size // 8
    ways = {
        "": lambda: np.empty(count),
        "np.zeros": lambda: np.zeros(count),
    }
    if importlib.util.find_spec("pyarrow"):  # missing in the gate
        from pyarrow import allocate_buffer

        ways["pyarrow"] = lambda: np.frombuffer(allocate_buffer(size))
    if memrt.debug.enabled():
        ways["memrt.empty"] = lambda: memrt.empty(count)
        ways["memrt.zeros"] = lambda: memrt.zeros(count)
    return {"": ways}


TOPICS = {
    "expression": expressions,
    "operations": operations,
    "zeros": zeros,
    "first fill": first_fill,
    "creation": creation,
}


def prepared(topic: str, size: int) -> dict:
    """Return the timers of a topic, by case and way."""
    found = {}
    for name, work in TOPICS[topic](size).items():
        ways = work if isinstance(work, dict) else {"": work}
        found[name] = {way: Timed(function) for way, function in ways.items()}
    return found


def count_all(job: dict) -> dict[str, int]:
    """Dump the instructions of CALLS calls of each case and way. Return the calls per case."""
    library = ctypes.CDLL(job["counting"])
    found = {}
    for topic, size in job["topics"]:
        for name, ways in prepared(topic, size).items():
            for way, timed in ways.items():
                title = "/".join((topic, name, str(size), way))
                found[title] = write_down(library, title, timed.timer.timeit, CALLS)
    return found


def serve() -> None:
    """Answer requests until the end of the input."""
    cases: dict = {}
    for line in sys.stdin:
        request, *arguments = json.loads(line)
        if request == "prepare":
            cases.clear()  # free the arrays of the last topic before the next topic allocates
            cases = prepared(*arguments)
            answer: object = {name: list(ways) for name, ways in cases.items()}
        else:
            case, way, target, count = arguments
            answer = cases[case][way].nanoseconds(target, count)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    gc.disable()
    wanted = json.loads(sys.argv[1])
    if wanted.get("subject", wanted)["kind"] == "memrt":
        memrt.enable()
    if "counting" in wanted:
        print(json.dumps(count_all(wanted)))
    else:
        serve()
