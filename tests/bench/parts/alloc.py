"""Measure the part `alloc`: single blocks and references, through the table and malloc.

No library measures this: benchmarks of allocators call malloc, and neither a table nor a purge.
"""

from __future__ import annotations

import random
from dataclasses import replace

from options import Options
from parts import instructions
from places import WORKERS, compiled
from result import Group
from rounds import Progress, in_turn, run_worker
from subjects import (
    GLIBC_HUGE,
    LIMIT,
    MEMRT,
    NRT_OFF,
    NRT_ON,
    Subject,
    allocators,
    glibc_with_huge_pages,
)

KIB, MIB = 1 << 10, 1 << 20
TARGET = 4_000_000  # nanoseconds per measurement
PEERS = ("glibc", "mimalloc", "tcmalloc", "jemalloc")
COUNTERS = (MEMRT, NRT_OFF, NRT_ON)  # subjects with reference counts
SMALL = {"16 B": 16, "64 B": 64, "256 B": 256, "1 KiB": KIB, "4 KiB": 4 * KIB}
LARGE = {"32 KiB": 32 * KIB, "256 KiB": 256 * KIB, "1 MiB": MIB, "8 MiB": 8 * MIB}
ONE = "One block at a time"
MANY = "Many blocks at once, freed in random order"
LARGE_BLOCKS = "Large blocks"
IN_TWO_THREADS = "Large blocks in two threads"
REFERENCES = "References"
SIZES = [size for size in (*SMALL, *LARGE) if size != "16 B"]
HANDLER_CASES = tuple(f"{size}, {live} live" for size in SIZES for live in ("one", "64"))
INLINED = f"{MEMRT}, inlined"
SEGMENTS = "Many segments"
FORKS = "Forks during a release of many segments"
SEGMENT_COUNTS = {f"{count:,}": count for count in (2_000, 16_000, 64_000)}
FEW_SEGMENTS, MANY_SEGMENTS, MOST_SEGMENTS = SEGMENT_COUNTS

Job = dict[str, object]


def one_live(size: int) -> Job:
    return {"loop": "one_live", "size": size}


def many_live(sizes: list[int]) -> Job:
    """Return a job: allocate blocks of `sizes`, free them in a random order with a fixed seed."""
    order = list(range(len(sizes)))
    random.Random(len(sizes)).shuffle(order)
    repeats = 1 if sum(sizes) >= 64 * MIB else 3
    return {"loop": "many_live", "sizes": sizes, "order": order, "repeats": repeats}


def mixed(live: int) -> list[int]:
    """Return random sizes of 16 B to 4 KiB, uniform on a logarithmic scale; the seed is `live`."""
    chance = random.Random(live)
    return [int(16 * 256 ** chance.random()) for _ in range(live)]


def jobs() -> dict[str, dict[str, Job]]:
    """Return the jobs for loops over blocks, by group and case."""
    many = {
        f"{name}, {live:,} live": many_live([size] * live)
        for live in (64, 1000)
        for name, size in SMALL.items()
    }
    many |= {f"16 B to 4 KiB, {live:,} live": many_live(mixed(live)) for live in (64, 1000)}
    large = {f"{name}, one live": one_live(size) for name, size in LARGE.items()}
    large |= {f"{name}, 64 live": many_live([size] * 64) for name, size in LARGE.items()}
    return {
        ONE: {f"{name}, one live": one_live(size) for name, size in SMALL.items()},
        MANY: many,
        LARGE_BLOCKS: large,
    }


def groups() -> dict[str, Group]:
    touched = "Allocate, write one byte on each page, free: time of one block."
    found = [
        Group(ONE, touched, "ns", "glibc"),
        Group(MANY, touched, "ns", "glibc"),
        Group(
            LARGE_BLOCKS,
            f"{touched} `{GLIBC_HUGE}`: with `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`, which is the "
            "default of glibc 2.43 on AArch64, but not on x86-64.",
            "ns",
            "glibc",
        ),
        Group(
            IN_TWO_THREADS,
            "The same in two threads at once. Wall time of one block of a thread.",
            "ns",
            "glibc",
        ),
        Group(
            REFERENCES,
            f"One reference acquired and released. `{LIMIT}`: two bare locked adds. `{INLINED}`: "
            "the inline functions of the headers.",
            "ns",
            LIMIT,
        ),
        Group(
            SEGMENTS,
            "Blocks of 1 MiB, three in a segment of 4 MiB. Only the headers are touched. Then two "
            "blocks of each segment are freed, and `release_unused` releases the pages. Processor "
            "time per segment, by the number of segments.",
            "ns",
            FEW_SEGMENTS,
        ),
        Group(
            FORKS,
            "The same release, while a second thread forks. Longest time of memrt's handler before "
            "a fork.",
            "ms",
            None,
        ),
    ]
    return {group.title: group for group in found}


def nanoseconds(job: Job, subject: Subject) -> float:
    """Return the nanoseconds per block of a loop, measured in a new process."""
    whole = {
        "loops": subject.loops(),
        "target": TARGET,
        "repeats": 3,
        **job,
    }
    return run_worker(WORKERS / "blocks.py", whole, subject, "-I")["ns"]


def measure_two_threads(group: Group, subjects: list[Subject], rounds: int) -> None:
    """Measure large blocks in two threads, without Numba's runtime, which calls glibc's malloc."""
    loops = {"one": ("loops.c", "in_threads", 1), "64": ("patterns.c", "many_in_threads", 64)}
    chosen = [subject for subject in subjects if subject.name not in (NRT_OFF, NRT_ON)]
    for live, (source, loop, least) in loops.items():
        for name, size in LARGE.items():
            job = {"loop": loop, "size": size, "threads": 2, "least": least}
            for subject in in_turn(chosen, rounds):
                job["loops"] = subject.loops(source)
                group.case(f"{name}, {live} live").add(subject.name, nanoseconds(job, subject))


def measure_references(group: Group, subjects: list[Subject], rounds: int) -> None:
    import memrt

    table = str(compiled(WORKERS / "native" / "table.c", f"-I{memrt.get_include()}"))
    jobs: dict[str, Job] = {
        LIMIT: {"loop": "locked_adds"},
        INLINED: {"loop": "inlined_references", "loops": table},
    }
    counters = [subject for subject in subjects if subject.name in COUNTERS]
    inlined = [replace(s, name=INLINED) for s in counters if s.name == MEMRT]
    for subject in in_turn([Subject(LIMIT, "bare"), *inlined, *counters], rounds):
        job = jobs.get(subject.name, {"loop": "references"})
        took = nanoseconds({"size": 64, **job}, subject)
        group.case("acquire and release").add(subject.name, took)


def segment_figures(count: int, forks: bool) -> dict[str, float]:
    """Measure a heap of `count` segments in a new process."""
    import memrt

    native = compiled(WORKERS / "native" / "segments.c", f"-I{memrt.get_include()}")
    job = {"native": str(native), "segments": count, "forks": forks}
    subject = Subject(MEMRT, "memrt", {"library": memrt.get_library()})
    return run_worker(WORKERS / "segments.py", job, subject, "-I")


def measure_segments(found: dict[str, Group], rounds: int) -> None:
    for name in in_turn(SEGMENT_COUNTS, rounds):
        figures = segment_figures(SEGMENT_COUNTS[name], forks=False)
        for case in ("allocation", "release_unused"):
            found[SEGMENTS].case(case).add(name, figures[case])
    for name in in_turn((FEW_SEGMENTS, MANY_SEGMENTS), rounds):
        took = segment_figures(SEGMENT_COUNTS[name], forks=True)["fork"]
        found[FORKS].case(f"{name} segments").add(MEMRT, took / 1e6)


def measure(options: Options, progress: Progress) -> list[Group]:
    rounds = options.rounds_of(complete=9, quick=3)
    subjects = allocators(options.uncounted)
    found = groups()
    for title, cases in jobs().items():
        further = [glibc_with_huge_pages()] if title == LARGE_BLOCKS else []
        for name, job in cases.items():
            progress(f"{title}: {name}")
            for subject in in_turn([*subjects, *further], rounds):
                found[title].case(name).add(subject.name, nanoseconds(job, subject))
    progress(IN_TWO_THREADS)
    measure_two_threads(found[IN_TWO_THREADS], subjects, options.rounds_of(complete=5, quick=1))
    progress(REFERENCES)
    measure_references(found[REFERENCES], subjects, rounds)
    progress(SEGMENTS)
    measure_segments(found, options.rounds_of(complete=9, quick=3))
    progress(instructions.TOTAL)
    return [*found.values(), *instructions.count(subjects)]
