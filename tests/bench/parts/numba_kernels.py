"""Measure the part `numba`: jitted functions on Numba's runtime, on memrt, and on tcmalloc; and on
memrt in a policy, in a scope, and under `memrt run`.

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
WITHIN = "Jitted functions in a policy, in a scope and under memrt run"
POLICY, SCOPE, RUN = "memrt, in a policy", "memrt, in a scope", "memrt run --numba"
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


def places() -> list[Subject]:
    """Return memrt outside of policies and scopes, in a policy, in a scope, and under `run`."""
    (memrt,) = [subject for subject in subjects() if subject.name == MEMRT]
    inside = {POLICY: "policy", SCOPE: "scope", RUN: "run"}
    return [memrt] + [
        replace(memrt, name=name, needs={"within": place}) for name, place in inside.items()
    ]


def kernels(subject: Subject) -> dict[str, float]:
    """Return the nanoseconds per iteration of each kernel, measured in one process."""
    flags = ("-m", "memrt", "run", "--quiet", "--numba") if subject.name == RUN else ()
    return run_worker(WORKERS / "kernels.py", {}, subject, *flags)


def measure_in_turn(found: Group, subjects: list[Subject], rounds: int) -> Group:
    for subject in in_turn(subjects, rounds):
        for name, took in kernels(subject).items():
            found.case(name).add(subject.name, took)
    return found


def measure(options: Options, progress: Progress) -> list[Group]:
    rounds = options.rounds_of(complete=9, quick=3)
    progress("compiling")
    for subject in subjects():
        kernels(subject)
    progress(f"on {DEFAULT} and {MEMRT}, in turn")
    groups = [measure_in_turn(group(), subjects(), rounds)]
    progress("in a policy, in a scope and under run, in turn")
    about = "The same loops on memrt, in a policy, in a scope, and started by `memrt run --numba`."
    groups.append(measure_in_turn(Group(WITHIN, about, "ns", MEMRT), places(), rounds))
    if not options.instructions:
        return groups
    progress("instructions")
    counts = Group(INSTRUCTIONS, ABOUT_INSTRUCTIONS, "instructions", DEFAULT)
    for subject in subjects()[:2]:
        for name, count in counted_by_name("kernels.py", {}, subject).items():
            counts.case(name).add(subject.name, count)
    return [*groups, counts]
