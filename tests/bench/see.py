"""The part `see`: what a trace costs, and answers about a million events; what a program takes that
somebody looks at."""

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
SEEN = "Time of a whole program, by who looks on"
ALONE = "run"
LOOKS = {
    ALONE: ("run", "--quiet"),
    "run --share": ("run", "--quiet", "--share"),
    "trace": ("trace", "-o", "sky.trace"),
    "run --track": ("run", "--quiet", "--track"),
    "run --record": ("run", "--quiet", "--record", "sky.memrt"),
}
SKY = ROOT / "examples" / "tour" / "sky.py"


def groups() -> list[Group]:
    made = (
        "Made and given back, one at a time, with `memrt.enable()`: two events, of 32 bytes each. "
        f"`{OFF}`: no trace is recorded. `{CALLS}`: with {FRAMES} calls of Python for each birth. "
        f"`{KEPT}`: kept in memory, without calls."
    )
    asked = "Of half a million arrays that were made and dropped in a scope. Processor time."
    seen = "The program of [the tour](tour.md), from its start to its end. Processor time."
    return [
        Group(TOOK, made, "ns", OFF),
        Group(ANSWERS, asked, "ns", None),
        Group(SEEN, seen, "ns", ALONE),
    ]


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


def of_children() -> float:
    """Nanoseconds of processor time of all that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e9


def looked_at(look: str) -> float:
    """Nanoseconds of one run of the program."""
    environment = Subject(look, "memrt").environment()
    with tempfile.TemporaryDirectory() as folder:
        before = of_children()
        command = [sys.executable, "-m", "memrt", *LOOKS[look], str(SKY)]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        return of_children() - before


def measure(options: Options, progress: Progress) -> list[Group]:
    took, asked, seen = groups()
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
    return [took, asked, seen]
