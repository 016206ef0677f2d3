"""Measure the part `threads`: threads with separate blocks, and blocks freed remotely."""

from __future__ import annotations

from options import Options
from parts.alloc import KIB, Job, nanoseconds
from result import Group
from rounds import Progress, in_turn
from subjects import Subject, allocators

SIZES = {"64 B": 64, "1 KiB": KIB, "32 KiB": 32 * KIB}
REPEATS = 15  # the minimum counts: a thread may lose the core in some measurements
# Minimum bytes of a measurement, but at most 10,000 blocks: waking a thread takes as long as many
# blocks.
LEAST = 10 << 20
OWN = "Two threads, each with separate blocks"
SCALING = "Two threads against one"
HANDED = "One thread allocates, another frees"


def groups() -> dict[str, Group]:
    wall = f"Wall time of one block, minimum of {REPEATS} measurements in each process."
    found = [
        Group(OWN, wall, "ns", "glibc"),
        Group(
            SCALING,
            "Time of one block with two threads, divided by the time with one thread.",
            "share",
            None,
        ),
        Group(HANDED, f"Through a ring of 256 blocks. {wall}", "ns", "glibc"),
    ]
    return {group.title: group for group in found}


def job(loop: str, size: int) -> Job:
    return {"loop": loop, "size": size, "repeats": REPEATS, "least": min(10_000, LEAST // size)}


def in_threads(size: int, threads: int, subject: Subject) -> float:
    return nanoseconds(job("in_threads", size) | {"threads": threads}, subject)


def measure_own(found: dict[str, Group], subject: Subject, name: str, size: int) -> None:
    """Measure a single thread, then two threads immediately afterwards."""
    one, two = (in_threads(size, threads, subject) for threads in (1, 2))
    found[OWN].case(name).add(subject.name, two)
    found[SCALING].case(name).add(subject.name, two / one)


def measure(options: Options, progress: Progress) -> list[Group]:
    rounds = options.rounds_of(complete=7, quick=3)
    subjects = allocators(options.uncounted)
    found = groups()
    for name, size in SIZES.items():
        progress(f"{OWN}: {name}")
        for subject in in_turn(subjects, rounds):
            measure_own(found, subject, name, size)
        progress(f"{HANDED}: {name}")
        for subject in in_turn(subjects, rounds):
            took = nanoseconds(job("handed_over", size), subject)
            found[HANDED].case(name).add(subject.name, took)
    return list(found.values())
