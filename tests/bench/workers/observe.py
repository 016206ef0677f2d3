"""Time how an array is made while memrt watches, in this process.

usage: python observe.py JOB, a JSON object:

  task      memrt.empty or np.empty
  scope     whether in a scope
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

import memrt
import numpy as np

TASKS = {"memrt.empty": memrt.empty, "np.empty": np.empty}


def measure(job: dict) -> float:
    """Nanoseconds of one array of eight numbers."""
    timer = timeit.Timer(
        "empty(8)", globals={"empty": TASKS[job["task"]]}, timer=time.process_time_ns
    )
    count = 1000
    while (took := timer.timeit(count)) < job["target"] // 4:
        count *= 2
    count = max(1000, count * job["target"] // took)
    return statistics.median(timer.repeat(job["repeats"], count)) / count


def watched(job: dict) -> contextlib.AbstractContextManager:
    return memrt.scope("bench") if job["scope"] else contextlib.nullcontext()


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    memrt.enable()
    with watched(request):
        print(json.dumps({"ns": measure(request)}))
