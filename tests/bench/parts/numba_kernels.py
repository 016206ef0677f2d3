"""Measure the part `numba`: jitted functions on Numba's runtime, on memrt, and on tcmalloc.

Every process runs the same machine code, loaded from Numba's cache on disk.
"""

from __future__ import annotations

from dataclasses import replace

from counts.instructions import counted_by_name
from options import Options
from places import OUT, WORKERS
from result import Group
from rounds import Progress, in_turn, run_worker
from subjects import DEFAULT, MEMRT, Subject, environments

GROUP = "Jitted functions"
INSTRUCTIONS = "Jitted functions, in instructions"
ABOUT_INSTRUCTIONS = "Instructions of one iteration, counted by callgrind, independent of the load."


def group() -> Group:
    about = (
        "Buffers made and dropped in a loop: processor time of one iteration. Numba's statistics "
        "are off, the default; memrt's statistics are always on."
    )
    return Group(GROUP, about, "ns", DEFAULT)


def subjects() -> list[Subject]:
    """Return the subjects: Numba's runtime, memrt, and Numba's runtime with tcmalloc preloaded."""
    cached = {"NUMBA_CACHE_DIR": str(OUT / "numba-cache")}
    return [replace(subject, variables=cached) for subject in environments("tcmalloc")]


def kernels(subject: Subject) -> dict[str, float]:
    """Return the nanoseconds per iteration of each kernel, measured in one process."""
    return run_worker(WORKERS / "kernels.py", {}, subject)


def measure(options: Options, progress: Progress) -> list[Group]:
    found = group()
    progress("compiling")
    for subject in subjects():
        kernels(subject)
    progress(f"on {DEFAULT} and {MEMRT}, in turn")
    for subject in in_turn(subjects(), options.rounds_of(complete=9, quick=3)):
        for name, took in kernels(subject).items():
            found.case(name).add(subject.name, took)
    if not options.instructions:
        return [found]
    progress("instructions")
    counts = Group(INSTRUCTIONS, ABOUT_INSTRUCTIONS, "instructions", DEFAULT)
    for subject in subjects()[:2]:
        for name, count in counted_by_name("kernels.py", {}, subject).items():
            counts.case(name).add(subject.name, count)
    return [found, counts]
