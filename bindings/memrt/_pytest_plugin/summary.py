"""List the tests with the highest peaks, for the summary of pytest --memrt."""

from __future__ import annotations

import heapq
from typing import Any

from memrt._stats.snapshot import Stats
from memrt._support.units import human_bytes

_WITH_LINES = 5  # tests whose heaviest line the summary names

Figures = dict[str, dict[str, Any]]
"""Figures by test: bytes and blocks, and as "line" the source line that allocates most, or None."""


class TopPeaks:
    """Highest peaks of the tests so far, which tell whether a summary can list a test.

    `top` is the most tests of the summary; 0 states that the summary lists all tests.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._peaks: list[int] = []  # heap, the lowest of the highest peaks first

    def add(self, peak: int) -> bool:
        """Add the peak of a test. Return False if `top` earlier tests come before the test."""
        if self._top == 0:
            return True
        if len(self._peaks) < self._top:
            heapq.heappush(self._peaks, peak)
            return True
        return heapq.heappushpop(self._peaks, peak) < peak


def figures_of(stats: Stats, peak: int, failed: bool) -> dict[str, int]:
    """Return the figures of a test for the summary.

    A failed test has no figure "left", because its traceback may keep objects alive.
    """
    figures = {"peak": peak, "total": stats.total, "blocks": stats.alloc}
    return figures if failed else {**figures, "left": stats.live}


def heaviest(figures: Figures, top: int) -> list[tuple[str, dict[str, Any]]]:
    """Return the tests with the highest peaks, and their figures. `top` 0 returns all tests."""
    return sorted(figures.items(), key=lambda entry: -entry[1]["peak"])[: top or None]


def summary_lines(figures: Figures, top: int) -> list[str]:
    """Return the lines of a table of the tests with the highest peaks, and a line of totals.

    A second line of the first tests names the source line that allocates most. `top` is the most
    tests to list; 0 lists all tests.
    """
    rows = heaviest(figures, top)
    leaving = [numbers["left"] for numbers in figures.values() if numbers.get("left", 0) > 0]
    return [
        f"{'peak':>11} {'total':>11} {'blocks':>9} {'left':>11}  test",
        *(line for test, numbers in rows[:_WITH_LINES] for line in _rows(test, numbers)),
        *(_row(test, numbers) for test, numbers in rows[_WITH_LINES:]),
        f"{len(figures)} tests measured; {len(leaving)} left {human_bytes(sum(leaving))} in use",
    ]


def _rows(test: str, figures: dict[str, Any]) -> list[str]:
    line = figures["line"]
    return [_row(test, figures), *([] if line is None else [f"{'':>11} most from {line}"])]


def _row(test: str, figures: dict[str, Any]) -> str:
    peak, total = human_bytes(figures["peak"]), human_bytes(figures["total"])
    left = human_bytes(figures["left"]) if "left" in figures else "failed"
    return f"{peak:>11} {total:>11} {figures['blocks']:>9,} {left:>11}  {test}"
