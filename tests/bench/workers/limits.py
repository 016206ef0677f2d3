"""Measure the effect of memory limits set by the user on NumPy over memrt, in this process.

usage: python limits.py JOB, a JSON object:

  task      kept (make, fill and drop `count` arrays of `bytes`; also time one temporary of that
            size), or filled (make, fill and hold `count` arrays of `bytes`)
  waits     for kept: seconds after the drop at which resident memory is read

Prints figures as a JSON object, in KiB, times in ns of processor time. Resident memory is the
increase since the task began.
"""

from __future__ import annotations

import json
import sys
import time
import timeit
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import memrt
import numpy as np
from resident import huge, resident

TEMPORARIES = 200


def kept(job: dict) -> dict[str, float]:
    """Measure resident memory after a free, and the time of temporaries."""
    count, size = job["count"], job["bytes"]
    source, found = np.ones(size // 8), {}
    before = resident()
    arrays = [np.ones(size // 8) for _ in range(count)]
    del arrays
    found["right after"] = resident() - before
    begin = time.monotonic()
    for wait in job["waits"]:
        time.sleep(max(0, begin + wait - time.monotonic()))
        found[f"{wait:g} s after"] = resident() - before
    memrt.release_unused()
    found["after release_unused()"] = resident() - before
    timer = timeit.Timer(lambda: source + source, timer=time.process_time_ns)
    timer.timeit(TEMPORARIES // 10)
    found["ns"] = timer.timeit(TEMPORARIES) / TEMPORARIES
    return found


def filled(job: dict) -> dict[str, float]:
    """Measure the first fill of fresh memory."""
    count, size = job["count"], job["bytes"]
    arrays = [None] * count
    before, before_huge = resident(), huge()
    begin = time.process_time_ns()
    for i in range(count):
        arrays[i] = np.empty(size, np.uint8)
        arrays[i].fill(1)
    spent = time.process_time_ns() - begin
    return {"ns": spent / count, "resident": resident() - before, "huge": huge() - before_huge}


TASKS = {"kept": kept, "filled": filled}


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    memrt.enable()
    print(json.dumps(TASKS[request["task"]](request)))
