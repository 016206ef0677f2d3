"""The part `numpy`: NumPy's work on its own memory, on memrt, and on preloaded allocators."""

from __future__ import annotations

from dataclasses import dataclass

from instructions import counted_by_name
from options import Options
from places import WORKERS
from result import Group
from rounds import Progress, Server, in_turn, servers
from subjects import DEFAULT, Subject, environments

KIB, MIB = 1 << 10, 1 << 20
HUGE = 64 * MIB  # arrays that take so long that two rounds in a process must do
TARGET = 8_000_000  # nanoseconds of one measurement
PEERS = ("mimalloc", "tcmalloc", "jemalloc")
EXPRESSION = "An expression, (a - b)**2 + c*a - b/c"
OPERATIONS = "Twenty operations"
ZEROS = "np.zeros"
FIRST_FILL = "First fill of a fresh array"
CREATION = "Small arrays"
IN_INSTRUCTIONS = {
    "creation": f"{CREATION}, in instructions",
    "operations": f"{OPERATIONS}, in instructions",
}
ABOUT_INSTRUCTIONS = (
    "Instructions of one call from Python, by callgrind: they do not depend on the machine."
)
COUNTED = (("creation", 8), ("creation", 64), ("creation", 512), ("creation", 1 << 10),
           ("creation", 16 << 10), ("operations", 1 << 10), ("operations", 32 << 10))  # fmt: skip
UNITS = ((MIB, "MiB"), (KIB, "KiB"), (1, "B"))


@dataclass(frozen=True)
class Topic:
    """One group of cases and how workers are asked for it."""

    title: str
    about: str
    name: str  # as the worker knows it
    sizes: tuple[int, ...]  # bytes of one array
    peers: tuple[str, ...] = PEERS[:2]
    processes: int = 3  # of each subject
    rounds: int = 5  # in each process
    once: bool = False  # the work is done once in a measurement


TOPICS = (
    Topic(
        EXPRESSION,
        "By bytes of one array. `out=` is the same work into arrays that are there already, in the "
        "same process.",
        "expression",
        tuple(64 * 4**power for power in range(12)),
    ),
    Topic(OPERATIONS, "By bytes of one array.", "operations", (KIB, 32 * KIB, MIB, 16 * MIB)),
    Topic(
        ZEROS,
        "Made, written in part, dropped.",
        "zeros",
        (KIB, 16 * KIB, 256 * KIB, MIB, 4 * MIB, 64 * MIB, 256 * MIB),
        PEERS,
    ),
    Topic(
        FIRST_FILL,
        "Made and filled, once in a process and kept, so that no memory is warm.",
        "first fill",
        (4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB),
        processes=7,
        rounds=1,
        once=True,
    ),
    Topic(
        CREATION,
        "Made and dropped from Python: `np.empty`, and beside it `np.zeros`, memrt's own functions "
        "and an array over a buffer of pyarrow's default pool.",
        "creation",
        (8, 64, KIB, 16 * KIB),
    ),
)


def size_name(size: int) -> str:
    unit, name = next(row for row in UNITS if size >= row[0])
    return f"{size // unit} {name}"


def label(subject: Subject, way: str) -> str:
    """Who has a figure: a subject, or the same work done another way in its process."""
    return f"{subject.name}, {way}" if way else subject.name


def shortened(topic: Topic, options: Options) -> tuple[tuple[int, ...], int, int]:
    """Sizes, processes and rounds in each."""
    if options.rounds is not None:
        return topic.sizes, options.rounds, 1 if topic.once else topic.rounds
    if options.quick:
        return tuple(size for size in topic.sizes if size <= 16 * MIB), 1, 1 if topic.once else 3
    return topic.sizes, topic.processes, topic.rounds


def time_case(everybody: list[Server], asked: tuple[Topic, str], rounds: int, case) -> None:
    """Each subject's ways of one case, in turn."""
    topic, name = asked
    for server in in_turn(everybody, rounds):
        for way in server.ways[name]:
            took = server.ask("time", name, way, TARGET, 1 if topic.once else None)
            case.add(label(server.subject, way), took)


def time_size(everybody: list[Server], topic: Topic, size: int, rounds: int, group: Group) -> None:
    """All cases of one size."""
    for server in everybody:
        server.ways = server.ask("prepare", topic.name, size)
    for name in everybody[0].ways:
        title = ", ".join(part for part in (name, size_name(size)) if part)
        fewer = min(rounds, 2) if size >= HUGE else rounds
        time_case(everybody, (topic, name), fewer, group.case(title))


def process_groups(topic: Topic, processes: int) -> list[list[Subject]]:
    """Who has processes at the same time: all, but one after the other where they keep memory.

    The huge pages that one holds, another cannot have.
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


def count_instructions() -> list[Group]:
    """Of NumPy on its own memory and on memrt."""
    groups = {
        topic: Group(title, ABOUT_INSTRUCTIONS, "instructions", DEFAULT)
        for topic, title in IN_INSTRUCTIONS.items()
    }
    for subject in environments():
        counts = counted_by_name("arrays.py", {"topics": COUNTED}, subject)
        for title, count in counts.items():
            topic, name, size, way = title.split("/")
            case = ", ".join(part for part in (name, size_name(int(size))) if part)
            groups[topic].case(case).add(label(subject, way), count)
    return list(groups.values())


def measure(options: Options, progress: Progress) -> list[Group]:
    found = []
    for topic in TOPICS:
        progress(topic.title)
        found.append(measure_topic(topic, options))
    if options.instructions:
        progress("instructions")
        found.extend(count_instructions())
    return found
