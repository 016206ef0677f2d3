"""Count instructions of allocations, and compare the counts with the budgets of budgets.py.

usage: python check_budgets.py LIBRARY

LIBRARY is the path of a libmemrt, built with CMAKE_BUILD_TYPE=Release. NumPy runs on the installed
memrt. A seeded slowness, tracking of all blocks, must first exceed a budget. Close peaks of `python
-m memrt run` must add no instructions to a pair.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from counts.budgets import (
    BUDGETS,
    COMPILER,
    CREATION,
    MEAN,
    OPERATIONS,
    Budget,
    complaint,
    goal_text,
    is_met,
    number,
)
from counts.pairs import MANY, command, count_pair, count_pairs
from parts.numpy_ops import IN_INSTRUCTIONS, count_instructions
from result import Group
from rich.console import Console
from rich.table import Table
from subjects import DEFAULT, MEMRT, Subject

PLAIN = Subject(MEMRT, MEMRT)
CLOSE = Subject("close peaks", MEMRT, variables={"MEMRT_PEAK": "close"})
CLOSE_PEAK = 64 << 20  # bytes; below some megabytes, threads of close peaks update sums more often
CLOSE_SLACK = 1  # instructions of a pair
SLOW = Subject("seeded slowness", MEMRT, variables={"MEMRT_TRACK": "1"})


def compiler() -> str:
    """Return the name and the major version of the C compiler."""
    text = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True).stdout
    version = subprocess.run(["cc", "-dumpversion"], capture_output=True, text=True).stdout
    name = "clang" if "clang" in text.splitlines()[0] else "gcc"
    return f"{name} {version.split('.')[0].strip()}"


def ratios(group: Group) -> list[float]:
    """Return memrt's count divided by the default's, for each case."""
    return [case.ratios(MEMRT, DEFAULT)[0] for case in group.cases if case.has(MEMRT, DEFAULT)]


def numpy_figures() -> dict[str, float]:
    """Return the figures of the rows about NumPy."""
    groups = {group.title: ratios(group) for group in count_instructions()}
    creation, operations = (groups[IN_INSTRUCTIONS[key]] for key in ("creation", "operations"))
    return {
        CREATION: max(creation),
        OPERATIONS: max(operations),
        MEAN: float(np.exp(np.mean(np.log(operations)))),
    }


def measure(library: Path) -> dict[str, float]:
    """Return the figure of each row of the table."""
    rows = [row for row in BUDGETS if row.pair]
    counts = count_pairs([row.pair for row in rows], library, PLAIN)
    return dict(zip((row.name for row in rows), counts, strict=True)) | numpy_figures()


def measure_close(library: Path) -> dict[str, float]:
    """Return the figure of each pair with close peaks, above a peak of CLOSE_PEAK."""
    rows = [row for row in BUDGETS if row.pair]
    pairs = [replace(row.pair, peak=CLOSE_PEAK) for row in rows]
    return dict(zip((row.name for row in rows), count_pairs(pairs, library, CLOSE), strict=True))


def close_complaints(figures: Mapping[str, float], close: Mapping[str, float]) -> list[str]:
    """Return a sentence for each pair to which close peaks add instructions."""
    return [
        f"{name}: measured {count:.1f} with MEMRT_PEAK=close, but {figures[name]:.1f} without"
        for name, count in close.items()
        if count > figures[name] + CLOSE_SLACK
    ]


def show(figures: dict[str, float], used: str) -> None:
    """Print the table of all rows."""
    table = Table(title=f"Instructions of a pair, loop included ({used})")
    for heading in ("goal", "row", "measured", "budget", "goal, at most", ""):
        table.add_column(heading, justify="right" if heading in ("measured", "budget") else "left")
    for row in BUDGETS:
        figure = figures[row.name]
        met = "met" if is_met(row, figures) else "not met"
        budget = number(row, row.most(used))
        table.add_row(row.goal, row.name, number(row, figure), budget, goal_text(row), met)
    Console(width=110).print(table)


def advice(row: Budget, library: Path) -> str:
    """Return the commands that show the instructions of a row by function."""
    if row.pair is None:
        return "  ./dev bench --instructions numpy shows each case"
    run = shlex.join(command(row.pair, library, MANY))
    return (
        f"  valgrind --tool=callgrind --dump-instr=yes --callgrind-out-file=/tmp/pairs.out {run}\n"
        "  callgrind_annotate /tmp/pairs.out"
    )


def detects_slowness(library: Path) -> bool:
    row = BUDGETS[0]
    return complaint(row, count_pair(row.pair, library, SLOW), COMPILER) is not None


def main() -> int:
    library = Path(sys.argv[1]).resolve()
    if not detects_slowness(library):
        print("check_budgets: tracking of all blocks did not exceed the budget, so the count fails")
        return 1
    used, figures = compiler(), measure(library)
    show(figures, used)
    faults = [(row, text) for row in BUDGETS if (text := complaint(row, figures[row.name], used))]
    for row, text in faults:
        print(f"{text}. To look into the row:\n{advice(row, library)}")
    added = close_complaints(figures, measure_close(library))
    print("\n".join(added) or "close peaks: no instructions added to a pair")
    return 1 if faults or added else 0


if __name__ == "__main__":
    sys.exit(main())
