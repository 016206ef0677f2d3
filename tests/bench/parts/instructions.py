"""Count the instructions of pairs for the part `alloc`: the rows of budgets.py, beside mallocs."""

from __future__ import annotations

from pathlib import Path

from counts.budgets import BUDGETS
from counts.pairs import Pair, count_pairs
from result import Group
from subjects import MEMRT, Subject

TOTAL = "Instructions of a pair"
ADDED = "Instructions added to a pair"
COMPARED = {"64 B": 64, "1 KiB": 1 << 10}  # sizes of the pairs of all subjects
WORKS = {"malloc": "malloc", "memrt": "block"}  # work of pairs.c, by kind of subject


def groups() -> list[Group]:
    """Return the groups of counts by callgrind."""
    return [
        Group(
            TOTAL,
            "Allocate, write one byte, free, in a plain loop of C, counted by callgrind; "
            "independent of the load.",
            "instructions",
            None,
        ),
        Group(
            ADDED,
            "Difference to the same pair without a policy, scope or fork.",
            "instructions",
            None,
        ),
    ]


def count_rows(subject: Subject, library: Path, found: list[Group]) -> None:
    """Count the pair of each row of budgets.py."""
    total, added = found
    rows = [row for row in BUDGETS if row.pair]
    counts = count_pairs([row.pair for row in rows], library, subject)
    figures = dict(zip((row.name for row in rows), counts, strict=True))
    for row in rows:
        total.case(row.name).add(subject.name, figures[row.name])
        if row.over:
            added.case(row.name).add(subject.name, figures[row.name] - figures[row.over])


def count_blocks(subject: Subject, library: Path, total: Group) -> None:
    """Count a pair of blocks, or of malloc and free, in each size of COMPARED."""
    pairs = [Pair(WORKS[subject.kind], size) for size in COMPARED.values()]
    for size, count in zip(COMPARED, count_pairs(pairs, library, subject), strict=True):
        total.case(f"block, {size}").add(subject.name, count)


def count(subjects: list[Subject]) -> list[Group]:
    """Count the instructions of all subjects that can do a work of pairs.c."""
    import memrt

    found = groups()
    for subject in subjects:
        library = Path(str(subject.needs.get("library", memrt.get_library())))
        if subject.name == MEMRT:
            count_rows(subject, library, found)
        elif subject.kind in WORKS:
            count_blocks(subject, library, found[0])
    return found
