"""Measure the part `memory`: resident memory during and after work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from options import Options
from parts.programs import run_program
from parts.traces import recorded
from places import WORKERS, compiled
from result import Group
from rounds import Progress, in_turn, run_worker
from subjects import DEFAULT, MEMRT, Subject, allocators, environments

GLIBC = "glibc"
TRACES_PEAK = "Resident peak of recorded traces"
TRACES_TIME = "Time of recorded traces"
KEPT = "Kept one second after"
KEPT_PROGRAMS = "Kept one second after whole programs"
RELEASED = "Kept after release_unused()"
CACHED = "Cached after release_unused(), by memrt's statistics"
TINY = "A million tiny arrays"
THREADS = "Growth with short-lived threads"
HANDED = "Growth while another thread frees"
ALLOWED_SHARE, ALLOWED = 0.05, 16 * 1024  # limit of kept memory: share of the peak, KiB
LINGERING = ("heat equation", "neural network", "group by", "photo pipeline")
NAMES = (GLIBC, "mimalloc", "tcmalloc", "jemalloc", MEMRT)


def groups() -> dict[str, Group]:
    every = "Replay of all calls of malloc and its variants. Each page of a block is written once."
    after = f"Increase of resident memory, as a ratio to {ALLOWED_SHARE:.0%} of the peak or to "
    found = [
        Group(TRACES_PEAK, f"{every} Increase of resident memory.", "KiB", GLIBC),
        Group(TRACES_TIME, f"{every} Processor time of one call.", "ns", GLIBC),
        Group(KEPT, f"{after}{ALLOWED // 1024} MiB, whichever is more.", "share", None),
        Group(
            KEPT_PROGRAMS,
            "Increase of resident memory, minus the increase of the same program by default, as "
            "the same ratio.",
            "share",
            None,
        ),
        Group(RELEASED, "Increase of resident memory.", "KiB", None),
        Group(CACHED, "All blocks are freed.", "KiB", None),
        Group(TINY, "Resident memory with 1,000,000 live arrays of 8 to 64 bytes.", "KiB", DEFAULT),
        Group(
            THREADS,
            "Growth from the 1,000th to the 10,000th thread. The threads run one after another; "
            "each allocates and frees one block of 1 KiB.",
            "KiB",
            None,
        ),
        Group(
            HANDED, "Growth during the last nine tenths of 2,000,000 blocks of 1 KiB.", "KiB", None
        ),
    ]
    return {group.title: group for group in found}


def subjects() -> list[Subject]:
    """Return the allocators; memrt also gets table.c, for calls specific to memrt."""
    import memrt

    table = str(compiled(WORKERS / "native" / "table.c", f"-I{memrt.get_include()}"))
    return [
        replace(subject, needs={**subject.needs, "table": table})
        if subject.kind == "memrt"
        else subject
        for subject in allocators(None)
        if subject.name in NAMES
    ]


def look(task: str, subject: Subject, **job: object) -> dict[str, float]:
    """Run a task in a worker process and return the figures."""
    return run_worker(WORKERS / "memory.py", {"task": task, **job}, subject)


def measure_trace(found: dict[str, Group], program: str, trace: Path, rounds: int) -> None:
    replay = str(compiled(WORKERS / "native" / "replay.c"))
    for subject in in_turn(subjects(), rounds):
        seen = look("trace", subject, replay=replay, trace=str(trace))
        share = seen["kept"] / allowed(seen["peak"])
        found[TRACES_PEAK].case(program).add(subject.name, seen["peak"])
        found[TRACES_TIME].case(program).add(subject.name, seen["ns"])
        found[KEPT].case(program).add(subject.name, share)
        if subject.name == MEMRT:
            found[RELEASED].case(program).add(subject.name, seen["released"])
            found[CACHED].case(program).add(subject.name, seen["cached"])


def allowed(peak: float) -> float:
    """Return the KiB that may stay resident after work with a peak of `peak` KiB."""
    return max(ALLOWED_SHARE * peak, ALLOWED)


def measure_programs(group: Group, rounds: int) -> None:
    """Measure memory kept by whole programs, compared with the default in the same round."""
    usual, *others = environments("mimalloc", "tcmalloc")
    for program in LINGERING:
        for _ in range(rounds):
            base = run_program(program, usual, linger=True)
            for subject in others:
                seen = run_program(program, subject, linger=True)
                more = (seen["after"] - seen["before"]) - (base["after"] - base["before"])
                share = more / allowed(base["peak"] - base["before"])
                group.case(program).add(subject.name, share)


def measure_growth(group: Group, rounds: int, loop: str, count: int) -> None:
    loops = str(compiled(WORKERS / "native" / "loops.c"))
    for subject in in_turn(subjects(), rounds):
        seen = look("growth", subject, loops=loops, loop=loop, size=1024, count=count)
        group.case("resident").add(subject.name, seen["growth"])
        if subject.name == MEMRT:
            group.case("cached, by the statistics").add(subject.name, seen["cached"])


def measure_tiny(group: Group, rounds: int) -> None:
    for subject in in_turn(environments("mimalloc", "tcmalloc"), rounds):
        seen = look("arrays", subject, count=1_000_000)
        group.case("8 to 64 B").add(subject.name, seen["resident"])


def measure(options: Options, progress: Progress) -> list[Group]:
    rounds = options.rounds_of(complete=3, quick=1)
    found = groups()
    progress("recording traces")
    for program, trace in recorded().items():
        progress(f"trace: {program}")
        measure_trace(found, program, trace, rounds)
    progress(KEPT_PROGRAMS)
    measure_programs(found[KEPT_PROGRAMS], rounds)
    progress(TINY)
    measure_tiny(found[TINY], rounds)
    progress(THREADS)
    measure_growth(found[THREADS], rounds, "short_threads", 10_000)
    progress(HANDED)
    measure_growth(found[HANDED], rounds, "handed_over", 2_000_000)
    return list(found.values())
