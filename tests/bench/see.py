"""The part `see`: what recording a trace costs, and what the answers about a million events do."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from options import Options
from places import WORKERS
from result import Group
from rounds import Progress, in_turn, run_worker
from subjects import Subject

TOOK = "One array, while a trace is recorded"
ANSWERS = "Time of answers about a million events"
FRAMES, LAST = 16, 1_000_000
OFF, BARE, CALLS, KEPT = (
    "off",
    "recorded, no calls",
    f"recorded, {FRAMES} calls",
    "the last million",
)
LEVELS: dict[str, dict[str, int] | None] = {
    OFF: None,
    BARE: {"frames": 0},
    CALLS: {"frames": FRAMES},
    KEPT: {"frames": 0, "last": LAST},
}
AT_THE_END = f"`np.empty(8)` at the end of {FRAMES} calls"
TASKS = {"`memrt.empty(8)`": "memrt.empty", "`np.empty(8)`": "np.empty", AT_THE_END: "calls"}
TARGET = 20_000_000  # nanoseconds of one measurement
EVENTS, QUICK_EVENTS = 1_000_000, 20_000
QUESTIONS = {
    "`memrt.Trace(path)`": "read",
    "`.peak`": "peak",
    "`.buffers`": "buffers",
    '`.usage("place")`': "usage",
    "`convert --to csv`": "csv",
    "`convert --to perfetto`": "perfetto",
    "`convert --to speedscope`": "speedscope",
}


def groups() -> list[Group]:
    made = (
        "Made and given back, one at a time, with `memrt.enable()`: two events, of 32 bytes each. "
        f"`{OFF}`: no trace is recorded. `{CALLS}`: with {FRAMES} calls of Python for each birth. "
        f"`{KEPT}`: kept in memory, without calls."
    )
    asked = "Of half a million arrays that were made and dropped in a scope. Processor time."
    return [Group(TOOK, made, "ns", OFF), Group(ANSWERS, asked, "ns", None)]


def nanoseconds(case: str, level: str, target: int = TARGET) -> float:
    """Time of one array, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        trace = LEVELS[level]
        wanted = None if trace is None else {"path": f"{folder}/t.memtrace", **trace}
        subject = Subject(level, "memrt", {"scope": False, "trace": wanted})
        job = {"task": TASKS[case], "depth": FRAMES, "target": target, "repeats": 3}
        return run_worker(WORKERS / "observe.py", job, subject)["ns"]


def answers(count: int) -> dict[str, float]:
    """Nanoseconds of each question about so many events, in a process of its own."""
    worker = str(WORKERS / "see.py")
    with tempfile.TemporaryDirectory() as folder:
        job = json.dumps({"path": str(Path(folder) / "t.memtrace"), "events": count})
        command = [sys.executable, worker, job]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(output)


def measure(options: Options, progress: Progress) -> list[Group]:
    took, asked = groups()
    for name in TASKS:
        progress(f"{TOOK}: {name}")
        for level in in_turn(LEVELS, options.rounds_of(complete=9, quick=3)):
            took.case(name).add(level, nanoseconds(name, level))
    for _ in range(options.rounds_of(complete=5, quick=1)):
        progress(ANSWERS)
        found = answers(QUICK_EVENTS if options.quick else EVENTS)
        for name, question in QUESTIONS.items():
            asked.case(name).add("memrt", found[question])
    return [took, asked]
