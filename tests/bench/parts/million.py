"""Measure tracking of a million live buffers: its memory, and the time of queries."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from options import Options
from parts.levels import LEVELS, LISTED, NATIVE, OFF, PYTHON, SCOPE
from places import WORKERS
from result import Group
from rounds import Progress, in_turn, run_worker
from subjects import Subject

BOOKS = "Memory with tracking of a million live arrays"
TIME = "Time of queries about a million live arrays"
PEAK = "Peak memory during the queries"
COUNT, QUICK_COUNT = 1_000_000, 20_000
LINES = 1000  # source lines that allocate the arrays
WHOLE, HALVES = "arrays", "views of halves"
WAYS = (WHOLE, HALVES)
AT_EXIT = "`MEMRT_LEAKS=report`, at exit"
ANSWERS = {
    "`memrt.debug.live()`": "live",
    "`memrt.debug.sites()`": "sites",
    "`memrt.holders(one)`": "holders",
    "`memrt.debug.retention()`": "retention",
    "`memrt.debug.retention(min_bytes=1)`": "retention of all",
    "`memrt.debug.assert_no_leaks()`, all lost": "leaks",
}
WATCHED = (OFF, SCOPE, LISTED, PYTHON, NATIVE)


def groups() -> list[Group]:
    arrays = f"Arrays of 128 B, allocated by {LINES:,} source lines."
    asked = (
        f"{arrays} `{WHOLE}`: the program holds the arrays. `{HALVES}`: only a view of each array."
    )
    return [
        Group(BOOKS, f"{arrays} Resident memory per array, with the records of Python and memrt.",
              "B", None),
        Group(TIME, f"{asked} Processor time. The report at exit: wall time from the last line of "
              "the program to the end of the process.", "ns", None),
        Group(PEAK, "Peak increase of resident memory during the query, per array.", "B", None),
    ]  # fmt: skip


def ask(task: str, way: str, subject: Subject, count: int) -> dict[str, float]:
    """Run one query in a worker process and return the figures."""
    job = {"task": task, "way": way, "count": count, "lines": LINES}
    return run_worker(WORKERS / "queries" / "million.py", job, subject)


def report_at_exit(way: str, count: int) -> float:
    """Return the nanoseconds between the last line of a leaking program and process exit."""
    subject = Subject("report", "memrt", {"scope": False}, variables={"MEMRT_LEAKS": "report"})
    job = {"task": "lose", "way": way, "count": count, "lines": LINES, "subject": subject.job()}
    command = [sys.executable, str(WORKERS / "queries" / "million.py"), json.dumps(job)]
    environment = subject.environment()
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    end = time.monotonic_ns()
    if f"memrt: {count} buffers" not in run.stderr:
        raise RuntimeError(f"stderr must report {count} buffers, got {run.stderr[:200]}")
    return end - json.loads(run.stdout)["last"]


def measure_books(books: Group, count: int, rounds: int) -> None:
    for name in in_turn(WATCHED, rounds):
        subject = LEVELS[name].subject(name, "memrt")
        for way in WAYS:
            books.case(way).add(name, ask("make", way, subject, count)["bytes"])


def measure_answers(took: Group, peak: Group, count: int, rounds: int) -> None:
    subject = LEVELS[PYTHON].subject(PYTHON, "memrt")
    for name, task in ANSWERS.items():
        for way in in_turn(WAYS, rounds):
            seen = ask(task, way, subject, count)
            took.case(name).add(way, seen["ns"])
            peak.case(name).add(way, seen["bytes"])


def measure(found: list[Group], options: Options, progress: Progress) -> None:
    books, took, peak = found
    rounds = options.rounds_of(complete=3, quick=1)
    count = QUICK_COUNT if options.quick else COUNT
    progress(BOOKS)
    measure_books(books, count, rounds)
    progress(TIME)
    measure_answers(took, peak, count, rounds)
    for way in in_turn(WAYS, rounds):
        took.case(AT_EXIT).add(way, report_at_exit(way, count))
