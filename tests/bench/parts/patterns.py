"""Measure the part `patterns`: threads that share, hand over and leave blocks behind."""

from __future__ import annotations

from dataclasses import dataclass

from options import Options
from places import WORKERS
from result import Case, Group
from rounds import Progress, in_turn, run_worker
from subjects import BLOCKS, GLIBC, MEMRT, PRELOADED, Subject, allocators

TIME = "Patterns of threads"
PEAK = "Resident peak of patterns of threads"
BEST = "best peer"
PEERS = (GLIBC, *PRELOADED)
THREADS = 2


@dataclass(frozen=True)
class Pattern:
    """A loop of patterns.c, with the arguments of a measurement."""

    loop: str
    size: int  # bytes of a block; for larson the largest size
    count: int  # blocks of a measurement
    about: str
    threads: int | None = THREADS

    def job(self) -> dict[str, object]:
        job = {"loop": self.loop, "size": self.size, "count": self.count}
        return job | ({"threads": self.threads} if self.threads else {})


PATTERNS = {
    "Larson": Pattern(
        "larson",
        1000,
        2_000_000,
        "Two threads replace random blocks of 16 B to 1 KiB among 1,000 live blocks each. Twenty "
        "generations of threads continue with the blocks of ended threads, so blocks bleed from "
        "thread to thread.",
    ),
    "asymmetric, 256 B": Pattern(
        "consumers",
        256,
        1_000_000,
        "One thread allocates, and two threads free the blocks in turn without any allocation. "
        "The freed memory must find the way back to the producer.",
    ),
    "survivors, 1 KiB": Pattern(
        "survivors",
        1 << 10,
        1_000_000,
        "Threads run one after the other, allocate 4,000 blocks each and free seven in eight. The "
        "survivors pin memory of ended threads, until the fourth thread after frees them.",
        threads=None,
    ),
    "false sharing, 8 B": Pattern(
        "false_sharing",
        8,
        400_000,
        "The main thread allocates neighbouring blocks, and each of two threads writes 200 times "
        "to its block, frees the block and allocates the next. Blocks of two threads on one cache "
        "line slow both threads down.",
    ),
    "thread exit, 256 B": Pattern(
        "exits",
        256,
        1_000_000,
        "Two threads allocate 4,000 blocks each and end. The main thread then frees all blocks of "
        "the ended threads.",
    ),
}


def groups() -> list[Group]:
    about = " ".join(f"**{name}**: {pattern.about}" for name, pattern in PATTERNS.items())
    against = f"`{BEST}`: the least of {', '.join(PEERS)} in each round."
    return [
        Group(TIME, f"{about} Wall time of one block. {against}", "ns", BEST),
        Group(PEAK, f"Increase of resident memory in the table above. {against}", "KiB", BEST),
    ]


def subjects() -> list[Subject]:
    return [each for each in allocators(None) if each.name in (*PEERS, MEMRT, BLOCKS)]


def look(pattern: Pattern, subject: Subject) -> dict[str, float]:
    """Run a pattern in a new process. Return the nanoseconds per block and the peak in KiB."""
    job = {"task": "pattern", "loops": subject.loops("patterns.c"), **pattern.job()}
    return run_worker(WORKERS / "memory.py", job, subject)


def add_best(case: Case) -> None:
    """Add the least figure of all peers, for each round."""
    rounds = zip(*(case.figures[name] for name in PEERS), strict=True)
    case.figures[BEST] = [min(figures) for figures in rounds]


def measure(options: Options, progress: Progress) -> list[Group]:
    time, peak = found = groups()
    for name, pattern in PATTERNS.items():
        progress(name)
        for subject in in_turn(subjects(), options.rounds_of(complete=7, quick=3)):
            seen = look(pattern, subject)
            time.case(name).add(subject.name, seen["ns"])
            peak.case(name).add(subject.name, max(seen["peak"], 1))
        add_best(time.case(name))
        add_best(peak.case(name))
    return found
