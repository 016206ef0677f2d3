"""Time queries about an event trace, in this process.

usage: python see.py JOB, a JSON object:

  path      file for the recorded trace
  events    number of events to record

Prints a JSON object: nanoseconds of processor time of each query.
"""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable

import memrt
import numpy as np
from memrt.commands.formats import csv_file, perfetto, speedscope


def record(path: str, events: int) -> None:
    with memrt.debug.trace(path), memrt.scope("bench"):
        for i in range(events // 2):
            np.empty(i % 100 + 1)


def took(question: Callable[[], object]) -> int:
    before = time.process_time_ns()
    question()
    return time.process_time_ns() - before


def main() -> None:
    job = json.loads(sys.argv[1])
    memrt.enable()
    record(job["path"], job["events"])
    found = {"read": took(lambda: memrt.debug.Trace(job["path"]))}
    trace = memrt.debug.Trace(job["path"])
    found["peak"] = took(lambda: trace.peak)
    found["buffers"] = took(lambda: trace.buffers)
    found["usage"] = took(lambda: trace.usage("place"))
    for write, name in ((csv_file, "csv"), (perfetto, "perfetto"), (speedscope, "speedscope")):
        found[name] = took(lambda write=write: write.write(trace, io.BytesIO()))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
