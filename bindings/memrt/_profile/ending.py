"""Examine live buffers at the end of a program: which are lost, and which objects hold the rest."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import monotonic
from typing import Any

from memrt import _memrt
from memrt._holders.report import Holders
from memrt._holders.retention import retention
from memrt._leaks.leaks import LeakGroup, call_lines, group, held, unexpected
from memrt._leaks.survey import Survey
from memrt._support.units import plural
from memrt._tracking.live import LiveBuffer, live

MOST_ROWS = 100_000
MOST_HOLDERS = 100
HOLDERS_SECONDS = 2.0
SHOWN_HOLDERS = 20
SHOWN_GROUPS = 100

COLUMNS = (
    *("id", "nbytes", "weight", "refcount", "name", "age", "thread", "policy", "kind"),
    *("address", "scope", "site"),
)


class Ending:
    """Live buffers, holders and retention at the end of a program.

    Failure: a part that cannot be determined stays empty, and `notes` gets a sentence.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.buffers: list[LiveBuffer] = []
        self.total: list[tuple[int, int, int]] = []
        self._looked: dict[int, Holders] = {}
        self._survey: Survey | None = None
        self.lost: list[dict[str, Any]] = []
        self.kept: list[dict[str, Any]] = []
        self.retention: dict[str, Any] = {"count": 0, "wasted": 0, "buffers": []}

    def look(self, collect: bool = True) -> None:
        """Collect garbage if `collect` is True, then fill all attributes."""
        self._attempt("live buffers", lambda: self._list(collect))
        self._attempt("all allocations", self._count)
        self._attempt("holders", self._hold)
        self._attempt("lost and held buffers", self._sort_out)
        self._attempt("buffers with small views", self._retain)

    def _attempt(self, what: str, find: Callable[[], None]) -> None:
        try:
            find()
        except KeyboardInterrupt:
            self.notes.append(f"The list of {what} is incomplete: interrupted by Ctrl-C.")
        except Exception as error:
            self.notes.append(f"The list of {what} is incomplete: {type(error).__name__}.")

    def _list(self, collect: bool) -> None:
        if collect:
            gc.collect()
        self.buffers = sorted(live(), key=lambda buffer: -buffer.nbytes)

    def _count(self) -> None:
        counts = enumerate(_memrt.site_allocations(), 1)
        self.total = [(number, count, size) for number, (count, size) in counts if count]
        self.total.sort(key=lambda row: -row[2])

    def _hold(self) -> None:
        """Find the holders of the largest buffers, for at most HOLDERS_SECONDS.

        The search for one buffer takes a pass over all Python objects.
        """
        until = monotonic() + HOLDERS_SECONDS
        wanted = self.buffers[:MOST_HOLDERS]
        for buffer in wanted:
            if monotonic() > until:
                break
            found = held(buffer)
            if found is not None:
                self._looked[buffer.id] = found
        if len(self._looked) < len(self.buffers):
            self.notes.append(
                f"Trees show the holders of the {plural(len(self._looked), 'largest buffer')} of "
                f"{len(self.buffers):,} live at the end."
            )

    def _sort_out(self) -> None:
        """Divide all unsuppressed buffers into lost and held ones, by one search.

        Failure: if the search raises an exception, both lists stay empty.
        """
        expected = unexpected(group(self.buffers))
        buffers = [buffer for each in expected for buffer in each.buffers]
        try:
            survey = self._survey = Survey(buffers)
        except BaseException:
            self.notes.append(
                f"{plural(len(buffers), 'buffer')} were not examined, and may be lost."
            )
            raise
        lost = [buffer for buffer in buffers if survey.is_lost(buffer)]
        ids = {buffer.id for buffer in lost}
        self.lost = [self._plain(each) for each in group(lost)[:SHOWN_GROUPS]]
        kept = group(each for each in buffers if each.id not in ids and survey.is_live(each))
        self.kept = [self._plain(each) for each in kept[:SHOWN_GROUPS]]

    def _plain(self, each: LeakGroup) -> dict[str, Any]:
        """Return a group as a dict: the calls, the kinds of holders, the largest's holder tree."""
        largest = each.buffers[0]
        lines = call_lines(each, None)
        lines += [] if self._survey is None else self._survey.lines(each.buffers)
        found = self._looked.get(largest.id)
        return {
            "bytes": each.nbytes,
            "buffers": len(each.buffers),
            "place": None if each.place is None else str(each.place),
            "lines": lines + ([] if found is None else found.tree()),
        }

    def _retain(self) -> None:
        found = retention()
        buffers = [
            {"why": each.why, "wasted": each.wasted, "lines": str(each.holders).splitlines()}
            for each in found.buffers
        ]
        self.retention = {"count": found.count, "wasted": found.wasted, "buffers": buffers}

    def holders(self) -> list[dict[str, Any]]:
        """Return the holder trees of the largest buffers, in the format of a recording."""
        shown = list(self._looked.values())[:SHOWN_HOLDERS]
        return [
            {
                "title": str(each).splitlines()[0],
                "bytes": each.nbytes,
                "lines": each.tree(),
            }
            for each in shown
        ]

    def rows(self, number: Callable[[int], int]) -> list[list[Any]]:
        """Return the largest live buffers as rows of a recording, with the fields COLUMNS.

        Parameters
        ----------
        number : Callable[[int], int]
            Maps the number of a site to its number in the recording.
        """
        return [
            [
                *(b.id, b.nbytes, round(b.weight, 3), b.refcount, b.name, round(b.age, 3)),
                *(b.thread, b.policy, b.kind, b.address, b.scope, number(b.site_number)),
            ]
            for b in self.buffers[:MOST_ROWS]
        ]
