"""Measure the part `threads`: threads with separate blocks, and blocks freed remotely."""

from __future__ import annotations

import subprocess

from options import Options
from parts.alloc import KIB, Job, nanoseconds
from places import ROOT, WORKERS, compiled
from result import Group
from rounds import Progress, in_turn
from subjects import MEMRT, Subject, allocators

SIZES = {"64 B": 64, "1 KiB": KIB, "32 KiB": 32 * KIB}
REPEATS = 15  # the minimum counts: a thread may lose the core in some measurements
# Minimum bytes of a measurement, but at most 10,000 blocks: waking a thread takes as long as many
# blocks.
LEAST = 10 << 20
OWN = "Two threads, each with separate blocks"
SCALING = "Two threads against one"
HANDED = "One thread allocates, another frees"
POLICIES = "A new policy and its release"
# Released policies with live blocks, and threads with a block of each of these policies.
DEAD = {
    "alone": (0, 1),
    "4,000 dead policies, one thread": (4000, 1),
    "4,000 dead policies, 64 threads": (4000, 64),
}
PAIRS = 8000  # twice the dead policies: each sweep continues after the previous one


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
        Group(
            POLICIES,
            "`policy_new` and `policy_release`. Dead policies are released, and each thread has a "
            "live block of each dead policy. Processor time, minimum of 7 measurements.",
            "ns",
            None,
        ),
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


def renew_policies(dead: int, threads: int) -> float:
    """Return the nanoseconds of policy_new and policy_release, measured by policies.c."""
    import memrt

    headers = f"-I{ROOT / 'api' / 'include'}"
    program = compiled(WORKERS / "native" / "policies.c", headers, program=True)
    command = [program, memrt.get_library(), str(dead), str(threads), str(PAIRS)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure_policies(group: Group, rounds: int) -> None:
    for name in in_turn(DEAD, rounds):
        group.case(name).add(MEMRT, renew_policies(*DEAD[name]))


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
    progress(POLICIES)
    measure_policies(found[POLICIES], rounds)
    return list(found.values())
