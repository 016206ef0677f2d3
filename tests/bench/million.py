"""A million live buffers: what the books of them take, and how long answers about them do."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from levels import LEVELS, LISTED, NATIVE, OFF, PYTHON, SCOPE
from options import Options
from places import WORKERS
from result import Group
from rounds import Progress, in_turn, run_worker
from subjects import Subject

BOOKS = "Memory of the books of a million live arrays"
TIME = "Time of answers about a million live arrays"
PEAK = "Memory that the answers take meanwhile"
COUNT, QUICK_COUNT = 1_000_000, 20_000
LINES = 1000  # of source code that they are born in
WHOLE, HALVES = "arrays", "views of halves"
WAYS = (WHOLE, HALVES)
AT_EXIT = "`MEMRT_LEAKS=report`, at the exit"
ANSWERS = {
    "`memrt.live()`": "live",
    "`memrt.sites()`": "sites",
    "`memrt.holders(one)`": "holders",
    "`memrt.retention()`": "retention",
    "`memrt.retention(min_bytes=1)`": "retention of all",
    "`memrt.assert_no_leaks()`, all lost": "leaks",
}
WATCHED = (OFF, SCOPE, LISTED, PYTHON, NATIVE)


def groups() -> list[Group]:
    born = f"Arrays of 128 B, born in {LINES:,} lines."
    asked = f"{born} `{WHOLE}` are there as a whole, of `{HALVES}` nothing but a view is."
    return [
        Group(BOOKS, f"{born} Resident, of one array with all that Python and memrt keep of it.",
              "B", None),
        Group(TIME, f"{asked} Processor time; of what is told at the exit, from the last line of "
              "the program to the end of its process, by the clock.", "ns", None),
        Group(PEAK, "Resident above what was before the question, at the most: of one array.", "B",
              None),
    ]  # fmt: skip


def ask(task: str, way: str, subject: Subject, count: int) -> dict[str, float]:
    """What a worker sees of one question."""
    job = {"task": task, "way": way, "count": count, "lines": LINES}
    return run_worker(WORKERS / "million.py", job, subject)


def report_at_exit(way: str, count: int) -> float:
    """Nanoseconds from the last line of a program that lost all to the end of its process."""
    subject = Subject("report", "memrt", {"scope": False}, variables={"MEMRT_LEAKS": "report"})
    job = {"task": "lose", "way": way, "count": count, "lines": LINES, "subject": subject.job()}
    command = [sys.executable, str(WORKERS / "million.py"), json.dumps(job)]
    environment = subject.environment()
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    end = time.monotonic_ns()
    if f"memrt: {count} buffers" not in run.stderr:
        raise RuntimeError(f"there is no report of {count} buffers: {run.stderr[:200]}")
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
