"""Time how an array is made while memrt watches, in this process.

usage: python observe.py JOB, a JSON object:

  task      memrt.empty, np.empty, or calls: np.empty at the end of `depth` calls
  subject   scope: whether in one; trace: what memrt.trace is given, or null
  depth     calls that the stack has at least
  target    aim for this many nanoseconds in one measurement
  repeats   measurements; the figure is their median

Prints {"ns": nanoseconds of one array}.
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
    """An array that is made so many calls further on."""
    return at_the_end(depth - 1) if depth > 1 else np.empty(8)


TASKS = {
    "memrt.empty": ("make(8)", memrt.empty),
    "np.empty": ("make(8)", np.empty),
    "calls": ("make(depth)", at_the_end),
}


def measure(job: dict) -> float:
    """Nanoseconds of one array of eight numbers."""
    statement, make = TASKS[job["task"]]
    names = {"make": make, "depth": job["depth"]}
    timer = timeit.Timer(statement, globals=names, timer=time.process_time_ns)
    count = 1000
    while (took := timer.timeit(count)) < job["target"] // 4:
        count *= 2
    count = max(1000, count * job["target"] // took)
    return statistics.median(timer.repeat(job["repeats"], count)) / count


def called(depth: int, run: Callable[[dict], float], job: dict) -> float:
    """What `run` returns, with so many calls around it."""
    return called(depth - 1, run, job) if depth > 0 else run(job)


def watched(job: dict) -> contextlib.AbstractContextManager:
    if job["subject"].get("trace") is not None:
        return memrt.trace(**job["subject"]["trace"])
    return memrt.scope("bench") if job["subject"]["scope"] else contextlib.nullcontext()


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    memrt.enable()
    with watched(request):
        print(json.dumps({"ns": called(request["depth"], measure, request)}))
