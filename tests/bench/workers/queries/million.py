"""Make many arrays and query memrt about the arrays, in this process.

usage: python million.py JOB, a JSON object:

  task      make: measure the memory of the arrays; lose: leak all arrays until process exit; or a
            query: live, sites, holders, retention, retention of all, or leaks
  way       arrays, or views of halves
  count     number of arrays
  lines     number of source lines that allocate the arrays
  subject   scope: whether to allocate inside a scope

Prints {"bytes": resident memory per array} for `make`, {"last": the clock at the last line} for
`lose`. A query prints {"bytes": peak memory of the answer per array, "ns": processor time}.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import memrt
import numpy as np
from observe import watched
from resident import peak, reset_peak, resident

WAYS = {"arrays": "np.empty(16)", "views of halves": "np.empty(16)[:8]"}
KIB = 1024


def makers(way: str, lines: int) -> list[Callable[[], np.ndarray]]:
    """Return functions that make an array, each from a different source line."""
    source = "\n".join(f"def line_{i}(): return {WAYS[way]}" for i in range(lines))
    names: dict = {"np": np}
    exec(compile(source, "lines.py", "exec"), names)
    return [names[f"line_{i}"] for i in range(lines)]


def make(job: dict) -> list[np.ndarray]:
    lines = makers(job["way"], job["lines"])
    return [line() for _ in range(job["count"] // len(lines)) for line in lines]


def answers(arrays: list[np.ndarray]) -> dict[str, Callable[[], object]]:
    return {
        "live": memrt.debug.live,
        "sites": memrt.debug.sites,
        "holders": lambda: memrt.holders(arrays[len(arrays) // 2]),
        "retention": memrt.debug.retention,
        "retention of all": lambda: memrt.debug.retention(min_bytes=1),
    }


def told(block: memrt.debug.assert_no_leaks) -> memrt.debug.LeakError:
    """Return the LeakError that the `assert_no_leaks` block raises at its end."""
    try:
        block.__exit__()
    except memrt.debug.LeakError as error:
        return error
    raise RuntimeError("assert_no_leaks() must raise for the leaked arrays")


def asked(question: Callable[[], object], count: int) -> dict[str, float]:
    """Measure time and peak memory of a query. The answer stays live during the measurement."""
    reset_peak()
    before, begin = resident(), time.process_time_ns()
    answer = question()
    took = {
        "ns": time.process_time_ns() - begin,
        "bytes": (peak() - before) * KIB / count,
    }
    del answer
    return took


def made(job: dict) -> dict[str, float]:
    before = resident()
    arrays = make(job)
    return {"bytes": (resident() - before) * KIB / len(arrays)}


def lost(job: dict) -> dict[str, int]:
    """Leak all arrays through one extra reference to the list, and return the clock."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(make(job)))
    return {"last": time.monotonic_ns()}


def leaked(job: dict) -> dict[str, float]:
    block = memrt.debug.assert_no_leaks()
    block.__enter__()
    arrays = make(job)
    return asked(lambda: told(block), len(arrays))


def answered(job: dict) -> dict[str, float]:
    arrays = make(job)
    return asked(answers(arrays)[job["task"]], len(arrays))


TASKS = {"make": made, "lose": lost, "leaks": leaked}

if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    memrt.enable()
    with watched(request):
        print(json.dumps(TASKS.get(request["task"], answered)(request)))
