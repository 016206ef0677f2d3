"""Measure the part `see`: event traces, queries about a million events, whole programs, pages.

The whole program runs under plain `run`, and under each command that observes a program:
`run --share`, `trace`, `run --track` and `run --record`. Report pages open in chromium.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from options import Options
from places import ROOT, WORKERS
from result import Group
from rounds import Progress, in_turn, run_worker
from subjects import Subject

TOOK = "Time of one array during an event trace"
ANSWERS = "Time of queries about a million events"
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
AT_THE_END = f"`np.empty(8)` after {FRAMES} nested calls"
TASKS = {"`memrt.empty(8)`": "memrt.empty", "`np.empty(8)`": "np.empty", AT_THE_END: "calls"}
TARGET = 20_000_000  # nanoseconds per measurement
EVENTS, QUICK_EVENTS = 1_000_000, 20_000
QUESTIONS = {
    "`memrt.debug.Trace(path)`": "read",
    "`.peak`": "peak",
    "`.buffers`": "buffers",
    '`.usage("place")`': "usage",
    "`convert --to csv`": "csv",
    "`convert --to perfetto`": "perfetto",
    "`convert --to speedscope`": "speedscope",
}
SEEN = "Time of a whole program, by command"
ALONE = "run"
LOOKS = {
    ALONE: ("run", "--quiet"),
    "run --share": ("run", "--quiet", "--share"),
    "trace": ("trace", "-o", "sky.trace"),
    "run --track": ("run", "--quiet", "--track"),
    "run --record": ("run", "--quiet", "--record", "sky.memrt"),
}
OPENED = "Opening of a page"
PAGES = {"100,000 buffers": 100_000, "1,000,000 buffers": 1_000_000}
SKY = ROOT / "examples" / "tour" / "sky.py"


def groups() -> list[Group]:
    made = (
        "Make and drop arrays, one at a time, with `memrt.enable()`: two events of 32 bytes each. "
        f"`{OFF}`: without an event trace. `{CALLS}`: with {FRAMES} calls of Python for each "
        f"allocation. `{KEPT}`: the newest events stay in memory, without calls."
    )
    asked = "The trace has half a million arrays, made and dropped in a scope. Processor time."
    opened = (
        "A report page with live buffers, from the request of the file to the complete page, in "
        "chromium without a window. Wall time by the clock of the page."
    )
    seen = "The program of [the tour](guide/tour.md), from start to end. Processor time."
    return [
        Group(TOOK, made, "ns", OFF),
        Group(ANSWERS, asked, "ns", None),
        Group(SEEN, seen, "ns", ALONE),
        Group(OPENED, opened, "ms", None),
    ]


def nanoseconds(case: str, level: str, target: int = TARGET) -> float:
    """Return the nanoseconds per array, measured in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        trace = LEVELS[level]
        wanted = None if trace is None else {"path": f"{folder}/t.memtrace", **trace}
        subject = Subject(level, "memrt", {"scope": False, "trace": wanted})
        job = {"task": TASKS[case], "depth": FRAMES, "target": target, "repeats": 3}
        return run_worker(WORKERS / "observe.py", job, subject)["ns"]


def answers(count: int) -> dict[str, float]:
    """Return the nanoseconds of each query about `count` events, measured in a new process."""
    worker = str(WORKERS / "queries" / "see.py")
    with tempfile.TemporaryDirectory() as folder:
        job = json.dumps({"path": str(Path(folder) / "t.memtrace"), "events": count})
        command = [sys.executable, worker, job]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(output)


def of_children() -> float:
    """Return the nanoseconds of processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e9


def looked_at(look: str) -> float:
    """Return the nanoseconds of processor time of one run of the program under a command."""
    environment = Subject(look, "memrt").environment()
    with tempfile.TemporaryDirectory() as folder:
        before = of_children()
        command = [sys.executable, "-m", "memrt", *LOOKS[look], str(SKY)]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        return of_children() - before


def opening(buffers: int) -> float:
    """Return the milliseconds until a page with live buffers is complete, in a new browser."""
    worker = WORKERS / "queries" / "page.py"
    return run_worker(worker, {"buffers": buffers}, Subject("page", "memrt"))["ms"]


def measure(options: Options, progress: Progress) -> list[Group]:
    took, asked, seen, opened = groups()
    for name in TASKS:
        progress(f"{TOOK}: {name}")
        for level in in_turn(LEVELS, options.rounds_of(complete=9, quick=3)):
            took.case(name).add(level, nanoseconds(name, level))
    for _ in range(options.rounds_of(complete=5, quick=1)):
        progress(ANSWERS)
        found = answers(QUICK_EVENTS if options.quick else EVENTS)
        for name, question in QUESTIONS.items():
            asked.case(name).add("memrt", found[question])
    progress(SEEN)
    for look in in_turn(LOOKS, options.rounds_of(complete=7, quick=1)):
        seen.case("sky.py").add(look, looked_at(look))
    for name in in_turn(PAGES, options.rounds_of(complete=5, quick=1)):
        progress(f"{OPENED}: {name}")
        opened.case(name).add("memrt", opening(PAGES[name]))
    return [took, asked, seen, opened]
