"""Measure the part `limits`: memory and time under options that limit cached memory."""

from __future__ import annotations

from options import Options
from places import WORKERS
from result import Group
from rounds import Progress, in_turn, run_worker
from subjects import DEFAULT, Subject

KEPT = "Resident after large arrays are freed"
TEMPORARY = "Time of a temporary of 4 MiB"
FILL = "First fill by mode of huge pages"
RESIDENT = "Resident by mode of huge pages"
HUGE = "On huge pages by mode"
KEEPING = ("CACHE_LIMIT=0", "CACHE_LIMIT=16M", "DECAY=0", "DECAY=50", "DECAY=never")
MODES = ("off", "large", "advise")
COUNT, BYTES, WAITS = 16, 4 << 20, (0.2, 1.0)
FILLED = {
    "one of 1 KiB": (1, 1 << 10),
    "40,000 of 1 KiB": (40_000, 1 << 10),
    "500 of 100 KiB": (500, 100 << 10),
    "20 of 3 MiB": (20, 3 << 20),
    "one of 64 MiB": (1, 64 << 20),
}


def groups() -> dict[str, Group]:
    fresh = "Arrays on fresh memory."
    found = [
        Group(
            KEPT,
            f"Increase of resident memory after {COUNT} arrays of {BYTES >> 20} MiB were made, "
            "filled, and dropped at once. A column is named after the MEMRT_ option that is set.",
            "KiB",
            None,
        ),
        Group(TEMPORARY, "`a + a` in a loop. Processor time of one iteration.", "ns", DEFAULT),
        Group(FILL, f"{fresh} Processor time to make and fill one array.", "ns", "off"),
        Group(RESIDENT, f"{fresh} All arrays of a row are live.", "KiB", None),
        Group(
            HUGE,
            f"{fresh} All arrays of a row are live. AnonHugePages of the process.",
            "KiB",
            None,
        ),
    ]
    return {group.title: group for group in found}


def keepers() -> list[Subject]:
    """Return memrt with default options, and memrt with one option set, for each option."""
    plain = Subject(DEFAULT, "memrt")
    return [plain, *(set_to(option, option) for option in KEEPING)]


def set_to(name: str, setting: str) -> Subject:
    variable, value = setting.split("=")
    return Subject(name, "memrt", variables={f"MEMRT_{variable}": value})


def modes() -> list[Subject]:
    return [set_to(mode, f"HUGEPAGES={mode}") for mode in MODES]


def look(task: str, subject: Subject, **job: object) -> dict[str, float]:
    """Run a task in a worker process and return its figures."""
    return run_worker(WORKERS / "limits.py", {"task": task, **job}, subject)


def measure_keeping(found: dict[str, Group], rounds: int) -> None:
    for subject in in_turn(keepers(), rounds):
        seen = look("kept", subject, count=COUNT, bytes=BYTES, waits=WAITS)
        found[TEMPORARY].case(f"{BYTES >> 20} MiB").add(subject.name, seen.pop("ns"))
        for moment, amount in seen.items():
            found[KEPT].case(moment).add(subject.name, amount)


def measure_modes(found: dict[str, Group], rounds: int) -> None:
    for case, (count, size) in FILLED.items():
        for subject in in_turn(modes(), rounds):
            seen = look("filled", subject, count=count, bytes=size)
            for title, figure in ((FILL, "ns"), (RESIDENT, "resident"), (HUGE, "huge")):
                found[title].case(case).add(subject.name, seen[figure])


def measure(options: Options, progress: Progress) -> list[Group]:
    rounds = options.rounds_of(complete=7, quick=3)
    found = groups()
    progress(KEPT)
    measure_keeping(found, rounds)
    progress(FILL)
    measure_modes(found, rounds)
    return list(found.values())
