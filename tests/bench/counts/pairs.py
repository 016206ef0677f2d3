"""Count the instructions of a pair, an allocation and a free, in a plain loop of C.

The count of callgrind does not depend on the machine and its load. The count includes the loop and
the touch of one byte.
"""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from places import ROOT, WORKERS, compiled
from subjects import Subject

FEW, MANY = 1_000, 11_000  # pairs of the two runs; the difference excludes start and end
COLLECTED = re.compile(r"Collected : (\d+)")


@dataclass(frozen=True)
class Pair:
    """Arguments of pairs.c: the work, bytes of a block, a setting, and a peak before the loop."""

    work: str
    size: int
    setting: str = ""
    peak: int = 0


def program() -> Path:
    """Return the path of pairs.c, compiled to a program."""
    return compiled(WORKERS / "native" / "pairs.c", f"-I{ROOT / 'api' / 'include'}", program=True)


def command(pair: Pair, library: Path, pairs: int) -> list[str]:
    """Return the command that runs `pairs` pairs on a libmemrt."""
    words = [str(program()), str(library), pair.work, str(pair.size), str(pairs)]
    if pair.peak:
        return [*words, pair.setting or "none", str(pair.peak)]
    return words + [pair.setting] * bool(pair.setting)


def collected(report: str) -> int:
    """Return the sum of all counts in callgrind's report: one count per process."""
    return sum(map(int, COLLECTED.findall(report)))


def count_run(pair: Pair, library: Path, subject: Subject, pairs: int) -> int:
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={os.devnull}"]
    report = subprocess.run(
        valgrind + command(pair, library, pairs),
        env=subject.environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    return collected(report)


def count_pair(pair: Pair, library: Path, subject: Subject) -> float:
    """Return the instructions of one pair."""
    few, many = (count_run(pair, library, subject, pairs) for pairs in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def count_pairs(pairs: list[Pair], library: Path, subject: Subject) -> list[float]:
    """Return the instructions of each pair, counted on all cores at the same time."""
    program()  # compiled before the threads need the file
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(partial(count_pair, library=library, subject=subject), pairs))
