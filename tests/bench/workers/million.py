"""Make very many arrays and ask memrt about them, in this process.

usage: python million.py JOB, a JSON object:

  task      make: look at what they take; lose: at the end they are still there; or what is asked:
            live, sites, holders, retention, retention of all, or leaks
  way       arrays, or views of halves
  count     of arrays
  lines     of source code that they are born in
  subject   scope: whether in one

Prints {"bytes": resident memory of one array, of what was made or of the answer at its most,
"ns": processor time of the answer}; of `lose`, {"last": the clock at the last line}.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import memrt
import numpy as np
from observe import watched
from resident import peak, reset_peak, resident

WAYS = {"arrays": "np.empty(16)", "views of halves": "np.empty(16)[:8]"}
KIB = 1024


def makers(way: str, lines: int) -> list[Callable[[], np.ndarray]]:
    """Functions that make an array, each in a line of its own."""
    source = "\n".join(f"def line_{i}(): return {WAYS[way]}" for i in range(lines))
    names: dict = {"np": np}
    exec(compile(source, "lines.py", "exec"), names)
    return [names[f"line_{i}"] for i in range(lines)]


def make(job: dict) -> list[np.ndarray]:
    lines = makers(job["way"], job["lines"])
    return [line() for _ in range(job["count"] // len(lines)) for line in lines]


def answers(arrays: list[np.ndarray]) -> dict[str, Callable[[], object]]:
    return {
        "live": memrt.live,
        "sites": memrt.sites,
        "holders": lambda: memrt.holders(arrays[len(arrays) // 2]),
        "retention": memrt.retention,
        "retention of all": lambda: memrt.retention(min_bytes=1),
    }


def told(block: memrt.assert_no_leaks) -> memrt.LeakError:
    """What a block has to say at its end."""
    try:
        block.__exit__()
    except memrt.LeakError as error:
        return error
    raise RuntimeError("there were leaks that nobody saw")


def asked(question: Callable[[], object], count: int) -> dict[str, float]:
    """What an answer takes; it is kept until all is measured."""
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
    """Nobody gives back what has a reference too much."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(make(job)))
    return {"last": time.monotonic_ns()}


def leaked(job: dict) -> dict[str, float]:
    block = memrt.assert_no_leaks()
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
