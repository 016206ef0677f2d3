"""Measure the memory of this process after work of one kind.

usage: python memory.py JOB, a JSON object:

  subject   kind: malloc, or memrt with `library` and `table`, or default
  task      trace (needs `replay` and `trace`), growth or pattern (a job of blocks.py with
            `count`), or arrays (`count`)

Prints figures as a JSON object, in KiB, times in ns.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blocks
from resident import peak, reset_peak, resident


class Table:
    """memrt's table, used through the functions of table.c."""

    def __init__(self, subject: dict) -> None:
        self.api = blocks.memrt_table(subject["library"])
        self.calls = ctypes.CDLL(subject["table"])
        self.calls.table_cached.restype = ctypes.c_size_t

    def cached(self) -> float:
        """Return the KiB cached for reuse, by memrt's statistics."""
        return self.calls.table_cached(self.api) / 1024

    def release_unused(self) -> None:
        self.calls.table_release_unused(self.api)

    def raw(self) -> blocks.Raw:
        return blocks.raw_functions(self.calls, self.api)


def is_memrt(job: dict) -> bool:
    return job["subject"]["kind"] == "memrt"


def afterwards(job: dict, before: int) -> dict[str, float]:
    """Measure resident memory one second after the work and, on memrt, after release_unused()."""
    time.sleep(1)
    found: dict[str, float] = {"kept": resident() - before}
    if is_memrt(job):
        table = Table(job["subject"])
        table.release_unused()
        found["released"] = resident() - before
        found["cached"] = table.cached()
    return found


def trace(job: dict) -> dict[str, float]:
    """Replay a recorded trace."""
    import numpy as np

    loaded = np.load(job["trace"])
    events, count = loaded["events"], int(loaded["blocks"])
    table = np.full((count, 2), 0, np.uint64)
    table.fill(0)  # make all pages resident before the measurement
    replay = ctypes.CDLL(job["replay"])
    raw = Table(job["subject"]).raw() if is_memrt(job) else blocks.Raw.in_dll(replay, "plain")
    arguments = [ctypes.byref(raw), ctypes.c_void_p(events.ctypes.data)]
    live = ctypes.c_void_p(table.ctypes.data)
    reset_peak()
    before = resident()
    begin = time.process_time_ns()
    if not replay.replay(*arguments, ctypes.c_size_t(len(events)), live):
        raise MemoryError
    spent = time.process_time_ns() - begin
    replay.finish(ctypes.byref(raw), ctypes.c_size_t(count), live)
    found = {"ns": spent / len(events), "peak": peak() - before}
    return found | afterwards(job, before)


def growth(job: dict) -> dict[str, float]:
    """Measure the growth of memory after the first tenth of a loop."""
    run = blocks.prepared(job)
    table = Table(job["subject"]) if is_memrt(job) else None
    blocks.spent(run, job["count"] // 10)
    before, kept = resident(), table.cached() if table else 0.0
    blocks.spent(run, job["count"] - job["count"] // 10)
    found: dict[str, float] = {"growth": resident() - before}
    if table:
        found["cached"] = table.cached() - kept
    return found


def pattern(job: dict) -> dict[str, float]:
    """Run a loop once. Return the time of a block, and the growth at the peak."""
    run = blocks.prepared(job)
    reset_peak()
    before = resident()
    took = blocks.spent(run, job["count"])
    return {"ns": took / job["count"], "peak": peak() - before}


def arrays(job: dict) -> dict[str, float]:
    """Measure resident memory of many live tiny arrays."""
    if is_memrt(job):
        import memrt

        memrt.enable()
    import numpy as np

    live = [None] * job["count"]
    before = resident()
    for i in range(job["count"]):
        live[i] = np.ones(1 + i % 8)
    return {"resident": resident() - before}


TASKS = {"trace": trace, "growth": growth, "pattern": pattern, "arrays": arrays}


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    print(json.dumps(TASKS[request["task"]](request)))
