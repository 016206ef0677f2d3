"""Measure the part `exchange`: export and import of memory by memrt, NumPy and pyarrow."""

from __future__ import annotations

from options import Options
from places import WORKERS
from result import Group
from rounds import Progress, run_worker
from subjects import MEMRT, Subject

NUMPY, ARROW = "NumPy", "pyarrow"
BY_NUMPY = "By DLPack and buffers"
BY_ARROW = "By Arrow"
TARGET = 2_000_000  # nanoseconds per measurement
TURNS = 25  # measurements of each library in a process; the libraries alternate


def groups() -> dict[str, Group]:
    about = (
        "An export or import of a thousand doubles, or as many bytes, and its release. The number "
        "does not matter, because no data is copied. memrt also records the holder and the size "
        "of each export and import. "
    )
    same = "The same calls on NumPy's arrays and on memrt's Tensors and MemInfos. "
    columns = (
        "The same calls on pyarrow's arrays and on memrt's Columns; an object with only "
        "`__arrow_c_array__` forwards the call to pyarrow's array. "
    )
    return {
        NUMPY: Group(BY_NUMPY, f"{about}{same}Processor time.", "ns", NUMPY),
        ARROW: Group(BY_ARROW, f"{about}{columns}Processor time.", "ns", ARROW),
    }


def times(peer: str, target: int = TARGET, turns: int = TURNS) -> dict[str, dict[str, float]]:
    """Return nanoseconds per call by case and library, all measured in one process."""
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
