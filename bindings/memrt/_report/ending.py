"""The end of a program: what is live then, what of it is lost, who holds the rest."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import monotonic
from typing import Any

import memrt
from memrt import _memrt
from memrt._holders import Holders
from memrt._leaks import LeakGroup, group, held, unexpected
from memrt._live import LiveBuffer
from memrt._sites import is_a_runners
from memrt._units import plural

MOST_ROWS = 100_000
MOST_HOLDERS = 100
HOLDERS_SECONDS = 2.0
SHOWN_HOLDERS = 20
SHOWN_GROUPS = 100

COLUMNS = (
    *("id", "size", "stands_for", "refcount", "name", "age", "thread", "policy", "kind"),
    *("address", "scope", "site"),
)


class Ending:
    """What is found at the end; a part that cannot be found is left empty, with a note."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.buffers: list[LiveBuffer] = []
        self.total: list[tuple[int, int, int]] = []
        self._looked: dict[int, Holders] = {}
        self.lost: list[dict[str, Any]] = []
        self.kept: list[dict[str, Any]] = []
        self.retention: dict[str, Any] = {"count": 0, "wasted": 0, "buffers": []}

    def look(self) -> None:
        """Find all of it, garbage collected."""
        self._attempt("what is live", self._list)
        self._attempt("what was ever born", self._count)
        self._attempt("who holds what is live", self._hold)
        self._attempt("what is lost", self._sort_out)
        self._attempt("what is kept for a part of it", self._retain)

    def _attempt(self, what: str, find: Callable[[], None]) -> None:
        try:
            find()
        except KeyboardInterrupt:
            self.notes.append(f"Not all was found of {what}: interrupted by Ctrl-C.")
        except Exception as error:
            self.notes.append(f"Not all was found of {what}: {type(error).__name__}.")

    def _list(self) -> None:
        gc.collect()
        self.buffers = sorted(memrt.live(), key=lambda buffer: -buffer.size)

    def _count(self) -> None:
        births = enumerate(_memrt.site_births(), 1)
        self.total = [(number, count, size) for number, (count, size) in births if count]
        self.total.sort(key=lambda row: -row[2])

    def _hold(self) -> None:
        """Look for the holders of the largest: each takes a pass over all objects."""
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
                f"Holders were looked for of the {plural(len(self._looked), 'largest buffer')} "
                f"of {len(self.buffers):,} that were live at the end."
            )

    def _sort_out(self) -> None:
        expected = unexpected(group(self.buffers))
        buffers = [buffer for each in expected for buffer in each.buffers]
        lost = [buffer for buffer in buffers if self._is_lost(buffer)]
        ids = {buffer.id for buffer in lost}
        self.lost = [self._plain(each) for each in group(lost)[:SHOWN_GROUPS]]
        kept = group(buffer for buffer in buffers if buffer.id not in ids)
        self.kept = [self._plain(each) for each in kept[:SHOWN_GROUPS]]

    def _plain(self, each: LeakGroup) -> dict[str, Any]:
        """A group as a recording has it, with the calls and the holders of the largest buffer."""
        largest = each.buffers[0]
        calls = [] if largest.site is None else largest.site.frames
        lines = [f"called from {frame}" for frame in calls if not is_a_runners(frame)][1:]
        found = self._looked.get(largest.id)
        return {
            "bytes": each.nbytes,
            "buffers": len(each.buffers),
            "place": None if each.place is None else str(each.place),
            "lines": lines + ([] if found is None else found.tree()),
        }

    def _is_lost(self, buffer: LiveBuffer) -> bool:
        found = self._looked.get(buffer.id)
        if found is None or found.named:
            return False
        return not any(each.referrers for each in found.rows)

    def _retain(self) -> None:
        found = memrt.retention()
        buffers = [
            {"why": each.why, "wasted": each.wasted, "lines": str(each.holders).splitlines()}
            for each in found.buffers
        ]
        self.retention = {"count": found.count, "wasted": found.wasted, "buffers": buffers}

    def holders(self) -> list[dict[str, Any]]:
        """Who holds the largest, as a recording has it."""
        shown = list(self._looked.values())[:SHOWN_HOLDERS]
        return [
            {
                "title": str(each).splitlines()[0],
                "bytes": each.size,
                "lines": each.tree(),
            }
            for each in shown
        ]

    def rows(self, number: Callable[[int], int]) -> list[list[Any]]:
        """The largest live buffers as a recording has them: COLUMNS."""
        return [
            [
                *(b.id, b.size, round(b.stands_for, 3), b.refcount, b.name, round(b.age, 3)),
                *(b.thread, b.policy, b.kind, b.address, b.scope, number(b.site_number)),
            ]
            for b in self.buffers[:MOST_ROWS]
        ]
