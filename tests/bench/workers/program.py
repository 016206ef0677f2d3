"""Run a program and print time, memory and page faults.

usage: python program.py JOB, a JSON object:

  module, program   a function of workers/programs
  times             number of consecutive runs, default 1
  linger            also measure resident memory one second after the end
  record            file for the trace of allocations; needs record.c preloaded
  counting          path of the compiled counting.c, to count instructions with callgrind

Prints {"ns": processor time, "peak": KiB, "faults": page faults, ...}; with `counting`, {program:
number of counted runs}.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from counted import write_down
from resident import peak, reset_peak, resident


def recorded(path: str, run) -> None:
    """Call `run` while all allocations are recorded into the file `path`."""
    recorder = ctypes.CDLL(None)
    if recorder.record_start(path.encode()) != 0:
        raise OSError(f"cannot write {path}")
    run()
    recorder.record_stop()


def lingering(found: dict[str, float]) -> None:
    """Add the resident memory one second after the end to `found`."""
    gc.collect()
    time.sleep(1)
    found["after"] = resident()


def chosen(job: dict) -> Callable[[], object]:
    return getattr(importlib.import_module(f"programs.{job['module']}"), job["program"])


def count(job: dict) -> dict[str, int]:
    """Dump the instructions of one run, after a warm-up run."""
    program, name = chosen(job), job["program"]
    return {name: write_down(ctypes.CDLL(job["counting"]), name, lambda _: program(), 1)}


def measure(job: dict) -> dict[str, float]:
    program = chosen(job)

    def run() -> None:
        for _ in range(job.get("times", 1)):
            program()

    gc.collect()
    reset_peak()
    before = resident()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    begin = time.process_time_ns()
    if "record" in job:
        recorded(job["record"], run)
    else:
        run()
    found = {
        "ns": time.process_time_ns() - begin,
        "faults": resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults,
        "peak": peak(),
        "before": before,
    }
    if job.get("linger"):
        lingering(found)
    return found


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    print(json.dumps(count(request) if "counting" in request else measure(request)))
