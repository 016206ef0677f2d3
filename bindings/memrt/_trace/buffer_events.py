"""Group the events of a trace by buffer, for the live bytes and the table of buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memrt._support.computed import computed
from memrt._trace.events import ADOPTED, ADOPTION, ALLOC, FREE

BUFFER = np.dtype(
    [
        ("block", "u4"),
        ("allocated", "u8"),
        ("freed", "u8"),
        ("nbytes", "u8"),
        ("largest", "u8"),
        ("site", "u4"),
        ("policy", "u4"),
        ("thread", "u4"),
        ("kind", "u1"),
        ("seen_alloc", "?"),
        ("seen_free", "?"),
    ]
)
"""Columns of :attr:`memrt.debug.Trace.buffers`."""


class BufferEvents:
    """Events of a trace, grouped by buffer.

    Parameters
    ----------
    events : numpy.ndarray
        Events with the columns :data:`memrt._trace.events.EVENT`, ordered by time.
    """

    def __init__(self, events: NDArray[Any]) -> None:
        self._events = events

    @computed
    def changes(self) -> NDArray[np.int64]:
        """Change of the live bytes by each event."""
        ordered = self._events[self._order]
        is_free = ordered["type"] == FREE
        sizes = ordered["nbytes"].astype(np.int64)
        after = np.where(is_free, 0, sizes)
        before = np.zeros(len(after), np.int64)
        before[1:] = after[:-1]
        before[self._is_first] = np.where(is_free, sizes, 0)[self._is_first]
        changes = np.zeros(len(self._events), np.int64)
        changes[self._order] = np.where(ordered["kind"] == ADOPTED, 0, after - before)
        return changes

    @computed
    def count_changes(self) -> NDArray[np.int64]:
        """Change of the number of live buffers by each event, without adopted buffers."""
        ordered = self._events[self._order]
        counts = self._is_first.astype(np.int64) - (ordered["type"] == FREE)
        changes = np.zeros(len(self._events), np.int64)
        changes[self._order] = np.where(ordered["kind"] == ADOPTED, 0, counts)
        return changes

    @computed
    def live(self) -> NDArray[np.int64]:
        """Bytes live after each event, without adopted buffers."""
        live: NDArray[np.int64] = self._live_at_start() + np.cumsum(self.changes)
        return live

    @computed
    def buffers(self) -> NDArray[Any]:
        """One row for each buffer, ordered by the number of the allocation."""
        ordered = self._events[self._order]
        starts = np.flatnonzero(self._is_first)
        first = ordered[starts]
        ends = np.append(starts[1:], len(ordered)) - 1
        last = ordered[ends] if len(ordered) else ordered
        found = np.zeros(len(first), BUFFER)
        for name in ("block", "nbytes", "site", "policy", "thread", "kind"):
            found[name] = first[name]
        found["allocated"], found["freed"] = first["time"], last["time"]
        found["seen_alloc"] = (first["type"] == ALLOC) | (first["type"] == ADOPTION)
        found["seen_free"] = last["type"] == FREE
        if len(first):
            found["largest"] = np.maximum.reduceat(ordered["nbytes"], starts)
        return found

    def allocation_values(self, column: str) -> NDArray[Any]:
        """Return a column with the value of the buffer's first event in each event of a buffer."""
        values = self._events[column].copy()
        order = self._order
        first = order[np.flatnonzero(self._is_first)]
        counts = np.diff(np.append(np.flatnonzero(self._is_first), len(order)))
        values[order] = np.repeat(self._events[column][first], counts)
        return values

    @computed
    def _order(self) -> NDArray[np.intp]:
        """Indexes of the events of buffers, sorted by buffer, then by time."""
        events = self._events
        chosen = np.flatnonzero((events["type"] >= ALLOC) & (events["type"] <= FREE))
        keys = events[chosen]
        order: NDArray[np.intp] = chosen[np.lexsort((keys["type"], keys["time"], keys["block"]))]
        return order

    @computed
    def _is_first(self) -> NDArray[np.bool_]:
        """Whether each event of _order is the first event of its buffer."""
        blocks = self._events["block"][self._order]
        first = np.ones(len(blocks), bool)
        first[1:] = blocks[1:] != blocks[:-1]
        return first

    def _live_at_start(self) -> int:
        """Return the bytes of buffers whose only event is a free."""
        ordered = self._events[self._order]
        alone = self._is_first & (ordered["type"] == FREE) & (ordered["kind"] != ADOPTED)
        return int(ordered["nbytes"][alone].astype(np.int64).sum())
