"""Time the creation of an array under observers, in this process.

usage: python observe.py JOB, a JSON object:

  task      memrt.empty, np.empty, or calls: np.empty at the end of `depth` calls
  subject   scope: whether to allocate inside a scope; trace: arguments of trace(), or null
  depth     minimum of calls on the stack
  target    approximate nanoseconds of a measurement
  repeats   measurements; the figure is the median

Prints {"ns": nanoseconds per array}.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import time
import timeit
from collections.abc import Callable

import memrt
import numpy as np


def at_the_end(depth: int) -> object:
    """Return an array made `depth` calls deeper on the stack."""
    return at_the_end(depth - 1) if depth > 1 else np.empty(8)


TASKS = {
    "memrt.empty": ("make(8)", memrt.empty),
    "np.empty": ("make(8)", np.empty),
    "calls": ("make(depth)", at_the_end),
}


def measure(job: dict) -> float:
    """Return the nanoseconds per array of eight numbers."""
    statement, make = TASKS[job["task"]]
    names = {"make": make, "depth": job["depth"]}
    timer = timeit.Timer(statement, globals=names, timer=time.process_time_ns)
    count = 1000
    while (took := timer.timeit(count)) < job["target"] // 4:
        count *= 2
    count = max(1000, count * job["target"] // took)
    return statistics.median(timer.repeat(job["repeats"], count)) / count


def called(depth: int, run: Callable[[dict], float], job: dict) -> float:
    """Return `run(job)`, called below `depth` further calls."""
    return called(depth - 1, run, job) if depth > 0 else run(job)


def watched(job: dict) -> contextlib.AbstractContextManager:
    if job["subject"].get("trace") is not None:
        return memrt.debug.trace(**job["subject"]["trace"])
    return memrt.scope("bench") if job["subject"]["scope"] else contextlib.nullcontext()


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    memrt.enable()
    with watched(request):
        print(json.dumps({"ns": called(request["depth"], measure, request)}))
