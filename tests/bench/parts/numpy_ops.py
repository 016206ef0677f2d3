"""Measure the part `numpy`: NumPy on its default handler, memrt and preloaded allocators.

No library measures in this order: pyperf finishes one subject before the next, but ratios need all
subjects in each round.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from counts.instructions import counted_by_name
from options import Options
from places import WORKERS
from result import Group
from rounds import Progress, Server, in_turn, run_worker, servers
from subjects import DEFAULT, MEMRT, Subject, environments

KIB, MIB = 1 << 10, 1 << 20
HUGE = 64 * MIB  # bytes; larger or equal arrays get at most two rounds per process
TARGET = 8_000_000  # nanoseconds per measurement
PEERS = ("mimalloc", "tcmalloc", "jemalloc")
EXPRESSION = "An expression, (a - b)**2 + c*a - b/c"
OPERATIONS = "Twenty operations"
ZEROS = "np.zeros"
FIRST_FILL = "First fill of a fresh array"
CREATION = "Small arrays"
GROWTH = "Results of unknown number"
ABOUT_GROWTH = (
    "Collect doubles by additions of one number or of an array, until an array over all doubles. "
    "`memrt` is a `memrt.types.Buffer`, whose earlier views stay valid. Processor time."
)
GROWTHS = {
    "20,000, one at a time": (20_000, 1),
    "1,000,000, arrays of 1,000": (1_000_000, 1000),
}  # doubles in all, and of one addition
IN_INSTRUCTIONS = {
    "creation": f"{CREATION}, in instructions",
    "operations": f"{OPERATIONS}, in instructions",
}
ABOUT_INSTRUCTIONS = (
    "Instructions of one call from Python, counted by callgrind, independent of the load."
)
COUNTED = (("creation", 8), ("creation", 64), ("creation", 512), ("creation", 1 << 10),
           ("creation", 16 << 10), ("operations", 1 << 10), ("operations", 32 << 10))  # fmt: skip
UNITS = ((MIB, "MiB"), (KIB, "KiB"), (1, "B"))


@dataclass(frozen=True)
class Topic:
    """One group of cases, with the parameters of requests to workers."""

    title: str
    about: str
    name: str  # the worker's name for the topic
    sizes: tuple[int, ...]  # bytes of one array
    peers: tuple[str, ...] = PEERS[:2]
    processes: int = 3  # processes per subject
    rounds: int = 5  # rounds per process
    once: bool = False  # do the work once per measurement


TOPICS = (
    Topic(
        EXPRESSION,
        "Rows by bytes of one array. `out=` is the same work into existing arrays, in the same "
        "process.",
        "expression",
        tuple(64 * 4**power for power in range(12)),
    ),
    Topic(OPERATIONS, "Rows by bytes of one array.", "operations", (KIB, 32 * KIB, MIB, 16 * MIB)),
    Topic(
        ZEROS,
        "Make an array, write a part, drop the array.",
        "zeros",
        (KIB, 16 * KIB, 256 * KIB, MIB, 4 * MIB, 64 * MIB, 256 * MIB),
        PEERS,
    ),
    Topic(
        FIRST_FILL,
        "Make and fill an array, once per process; the array stays, so all memory is fresh.",
        "first fill",
        (4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB),
        processes=7,
        rounds=1,
        once=True,
    ),
    Topic(
        CREATION,
        "Make and drop an array from Python: `np.empty`, `np.zeros`, memrt's functions, and an "
        "array over a buffer of pyarrow's default pool.",
        "creation",
        (8, 64, KIB, 16 * KIB),
    ),
)


def size_name(size: int) -> str:
    unit, name = next(row for row in UNITS if size >= row[0])
    return f"{size // unit} {name}"


def label(subject: Subject, way: str) -> str:
    """Return the label of a figure: the subject, and the variant of the work, if any."""
    return f"{subject.name}, {way}" if way else subject.name


def shortened(topic: Topic, options: Options) -> tuple[tuple[int, ...], int, int]:
    """Return the sizes, the processes per subject and the rounds per process."""
    if options.rounds is not None:
        return topic.sizes, options.rounds, 1 if topic.once else topic.rounds
    if options.quick:
        return tuple(size for size in topic.sizes if size <= 16 * MIB), 1, 1 if topic.once else 3
    return topic.sizes, topic.processes, topic.rounds


def time_case(everybody: list[Server], asked: tuple[Topic, str], rounds: int, case) -> None:
    """Time all variants of one case, with the subjects in random order in each round."""
    topic, name = asked
    for server in in_turn(everybody, rounds):
        for way in server.ways[name]:
            took = server.ask("time", name, way, TARGET, 1 if topic.once else None)
            case.add(label(server.subject, way), took)


def time_size(everybody: list[Server], topic: Topic, size: int, rounds: int, group: Group) -> None:
    """Time all cases of one size."""
    for server in everybody:
        server.ways = server.ask("prepare", topic.name, size)
    for name in everybody[0].ways:
        title = ", ".join(part for part in (name, size_name(size)) if part)
        fewer = min(rounds, 2) if size >= HUGE else rounds
        time_case(everybody, (topic, name), fewer, group.case(title))


def process_groups(topic: Topic, processes: int) -> list[list[Subject]]:
    """Return groups of subjects whose processes run at the same time.

    All subjects run together, unless the topic keeps memory (`once`). Then each process runs
    alone, because huge pages held by one process are not available to another.
    """
    subjects = environments(*topic.peers)
    if topic.once:
        return [[subject] for subject in in_turn(subjects, processes)]
    return [subjects] * processes


def measure_topic(topic: Topic, options: Options) -> Group:
    group = Group(topic.title, topic.about + " Processor time.", "ns", DEFAULT)
    sizes, processes, rounds = shortened(topic, options)
    for together in process_groups(topic, processes):
        with servers(WORKERS / "arrays.py", together) as everybody:
            for size in sizes:
                time_size(everybody, topic, size, rounds, group)
    return group


def count_subject(subject: Subject) -> dict[str, float]:
    return counted_by_name("arrays.py", {"topics": COUNTED}, subject)


def count_instructions() -> list[Group]:
    """Count the instructions of NumPy on its default handler and on memrt."""
    groups = {
        topic: Group(title, ABOUT_INSTRUCTIONS, "instructions", DEFAULT)
        for topic, title in IN_INSTRUCTIONS.items()
    }
    subjects = environments()
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # counts do not depend on the load
        counts = list(threads.map(count_subject, subjects))
    for subject, found in zip(subjects, counts, strict=True):
        for title, count in found.items():
            topic, name, size, way = title.split("/")
            case = ", ".join(part for part in (name, size_name(int(size))) if part)
            groups[topic].case(case).add(label(subject, way), count)
    return list(groups.values())


def measure_growth(options: Options) -> Group:
    group = Group(GROWTH, ABOUT_GROWTH, "ns", "list")
    for _ in range(options.rounds_of(complete=7, quick=1)):
        job = {"cases": GROWTHS, "turns": 3}
        found = run_worker(WORKERS / "growing.py", job, Subject(MEMRT, "memrt"))
        for case, ways in found.items():
            for way, took in ways.items():
                group.case(case).add(way, took)
    return group


def measure(options: Options, progress: Progress) -> list[Group]:
    found = []
    for topic in TOPICS:
        progress(topic.title)
        found.append(measure_topic(topic, options))
    progress(GROWTH)
    found.append(measure_growth(options))
    if options.instructions:
        progress("instructions")
        found.extend(count_instructions())
    return found
