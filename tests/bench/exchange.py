"""The part `exchange`: what it costs to hand memory over, next to NumPy's and pyarrow's own."""

from __future__ import annotations

from options import Options
from places import WORKERS
from result import Group
from rounds import Progress, run_worker
from subjects import MEMRT, Subject

NUMPY, ARROW = "NumPy", "pyarrow"
BY_NUMPY = "By DLPack and buffers"
BY_ARROW = "By Arrow"
TARGET = 2_000_000  # nanoseconds of one measurement
TURNS = 25  # measurements of each way in a process, one way after the other


def groups() -> dict[str, Group]:
    about = (
        "A thousand doubles, or as many bytes, handed over and given back; how many does not "
        "matter, for nothing is copied. What memrt hands over and takes it puts on its books: who "
        "holds it, and how much. "
    )
    same = "The same calls, of NumPy's arrays and on memrt's Tensors and MemInfos. "
    columns = (
        "Of an array of pyarrow's, which an object forwards that has nothing but "
        "`__arrow_c_array__`, and of memrt's Columns. "
    )
    return {
        NUMPY: Group(BY_NUMPY, f"{about}{same}Processor time.", "ns", NUMPY),
        ARROW: Group(BY_ARROW, f"{about}{columns}Processor time.", "ns", ARROW),
    }


def times(peer: str, target: int = TARGET, turns: int = TURNS) -> dict[str, dict[str, float]]:
    """By case and by whose way, nanoseconds, all in one process."""
    job = {"peer": peer, "target": target, "turns": turns}
    return run_worker(WORKERS / "exchange.py", job, Subject(MEMRT, "memrt"))


def measure(options: Options, progress: Progress) -> list[Group]:
    found = groups()
    for peer, group in found.items():
        progress(group.title)
        for _ in range(options.rounds_of(complete=9, quick=3)):
            for case, ways in times(peer).items():
                for whose, took in ways.items():
                    group.case(case).add(whose, took)
    return list(found.values())
