"""Read an event trace: events, marks, sites, policies, buffers and memory in use."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memrt._support.computed import computed
from memrt._support.public import public
from memrt._support.units import human_bytes, human_seconds, plural
from memrt._trace.buffer_events import BufferEvents
from memrt._trace.events import EVENT_NAMES, MARK
from memrt._trace.trace_file import Tables, collect_events, read_trace_file
from memrt._trace.usage import TraceUsage, sum_usage
from memrt._tracking.sites import Frame, Place, Site, frame_of


@public("memrt.types")
class TracePolicy(NamedTuple):
    """Policy, or subpolicy of a policy in one scope, as recorded in a trace.

    Examples
    --------
    >>> import memrt, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.memtrace")
    >>> with memrt.debug.trace(path):
    ...     table = memrt.zeros(1000)
    ...     memrt.debug.mark("loaded")
    >>> [policy.name for policy in memrt.debug.Trace(path).policies.values()]
    ['default']
    """

    name: str
    """Name of the policy."""
    scope: str | None
    """Path of the scope, names joined by slashes; None outside of scopes."""
    number: int
    """Index in the process. An earlier policy may have had the same index."""
    alignment: int
    """Alignment in bytes."""


@public("memrt.types")
class Mark(NamedTuple):
    """Moment that the program named with :func:`memrt.debug.mark`.

    Examples
    --------
    >>> import memrt, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.memtrace")
    >>> with memrt.debug.trace(path):
    ...     table = memrt.zeros(1000)
    ...     memrt.debug.mark("loaded")
    >>> [mark.name for mark in memrt.debug.Trace(path).marks]
    ['loaded']
    """

    time: float
    """Seconds since the start of the trace."""
    name: str
    """Name of the mark."""
    thread: int
    """Operating system's number of the thread."""


@public("memrt.debug")
class Trace:
    """Event trace recorded by :class:`memrt.debug.trace` or ``python -m memrt trace``.

    A trace that was cut off, for example by the end of its process, is read up to the last complete
    record. :attr:`problem` then states that the trace is incomplete.

    Parameters
    ----------
    path : str or os.PathLike
        Path of the file.

    Raises
    ------
    TraceError
        The file is not a trace, is damaged, or has an unsupported version.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import memrt, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.memtrace")
    >>> with memrt.debug.trace(path):
    ...     table = memrt.zeros(1000)
    ...     memrt.debug.mark("loaded")
    >>> trace = memrt.debug.Trace(path)
    >>> [trace.event_names[event["type"]] for event in trace.events], trace.peak
    (['alloc', 'mark'], 8000)
    """

    path: str
    """Path of the file."""
    process: int
    """Operating system's number of the process."""
    began: datetime
    """Start of the trace, in UTC."""
    library: str
    """Version of the memrt that recorded the trace."""
    last: int | None
    """Number of last events to keep, as requested for the recording; None: all events."""
    events: NDArray[Any]
    """All events, ordered by time: `time` in nanoseconds since the start, `nbytes`, `block`,
    the number of the allocation, `site`, `policy`, `type` (a key of `event_names`), `kind`,
    `align_log2` and `thread`."""
    policies: dict[int, TracePolicy]
    """Policies by the number in the field `policy` of events."""
    event_names: ClassVar[dict[int, str]] = EVENT_NAMES
    """Names of the values in the field `type` of events."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        header, self._tables = read_trace_file(self.path)
        self.process = header.process
        self.began = _date_of(header.began)
        self.library = header.library
        self.last = header.last or None
        self.events = collect_events(self._tables, header.order)
        self.policies = _policies_of(self._tables)

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        peak = human_bytes(self.peak)
        span = human_seconds(self.duration)
        return f"<Trace {self.path!r}: {plural(len(self), 'event')} in {span}, peak {peak}>"

    @property
    def is_complete(self) -> bool:
        """Whether the file has its end record, so that nothing was cut off."""
        return self._tables.end is not None

    @property
    def lost(self) -> int:
        """Number of events that could not be recorded; 0 if the file has no end record."""
        return 0 if self._tables.end is None else self._tables.end[1]

    @property
    def overwritten(self) -> int:
        """Number of events that later events replaced; 0 if the file has no end record."""
        return 0 if self._tables.end is None else self._tables.end[2]

    @property
    def problem(self) -> str | None:
        """Sentence on the missing part of the trace; None if nothing is missing."""
        if not self.is_complete:
            where = " in the middle of a record" if self._tables.cut else ""
            return (
                f"the trace was cut off{where}: events after the last complete record are missing"
            )
        if self.lost:
            was = "was" if self.lost == 1 else "were"
            return f"{plural(self.lost, 'event')} {was} lost during the trace"
        if self.overwritten:
            return f"{plural(self.overwritten, 'event')} overwritten: last {self.last:,} kept"
        return None

    @property
    def duration(self) -> float:
        """Seconds from the start to the end, or to the last event of a trace that was cut off."""
        end = 0 if self._tables.end is None else self._tables.end[3]
        last = int(self.events["time"][-1]) if len(self) else 0
        return max(end, last) / 1e9

    @computed
    def marks(self) -> list[Mark]:
        """Marks of the program, ordered by time."""
        rows = self.events[self.events["type"] == MARK]
        return [
            Mark(int(row["time"]) / 1e9, self._text(int(row["block"])) or "?", int(row["thread"]))
            for row in rows
        ]

    @computed
    def sites(self) -> dict[int, Site]:
        """Allocation sites by the number in the field `site` of events."""
        return {
            number: Site(number, tuple(self._frame(frame) for frame in frames))
            for number, frames in self._tables.frames.items()
            if frames
        }

    def place(self, site: int) -> Place | None:
        """Return the source line of a site.

        Parameters
        ----------
        site : int
            Number of the site.

        Returns
        -------
        memrt.types.Place or None
            Source line; None if not known.
        """
        found = self.sites.get(site)
        return None if found is None else found.place

    @computed
    def live(self) -> NDArray[np.int64]:
        """Bytes live after each event, without adopted buffers."""
        return self._by_buffer.live

    @computed
    def peak(self) -> int:
        """Most bytes live at once."""
        return max(int(self.live.max()), 0) if len(self) else 0

    @computed
    def peak_event(self) -> int:
        """Index of the event after which most bytes were live; -1 for a trace without events."""
        return int(self.live.argmax()) if len(self) else -1

    @computed
    def buffers(self) -> NDArray[Any]:
        """All buffers of the trace, ordered by the number of the allocation.

        `allocated` and `freed` are the times of allocation and free in nanoseconds. `nbytes` is the
        first size in bytes, `largest` the largest size. `site`, `policy`, `thread` and `kind`
        describe the allocation. `seen_alloc` is false if the allocation is in no event, `seen_free`
        if the free is in no event. The first or last event of the buffer then gives the time.
        """
        return self._by_buffer.buffers

    def usage(self, by: str = "place") -> list[TraceUsage]:
        """Return the memory by source line, scope, policy or thread, most bytes at the peak first.

        Parameters
        ----------
        by : {'place', 'scope', 'policy', 'thread'}, default 'place'
            Property of the allocation. 'place' is the source line.

        Returns
        -------
        list of memrt.types.TraceUsage
            Sums of each value of the property.

        Raises
        ------
        ValueError
            `by` has another value.
        """
        if by not in ("place", "scope", "policy", "thread"):
            raise ValueError(f"by must be 'place', 'scope', 'policy' or 'thread', got {by!r}")
        keys, names = self._names(by)
        return sum_usage(self.events["type"], self._by_buffer.changes, self.peak_event, keys, names)

    def _names(self, by: str) -> tuple[NDArray[np.intp], list[str]]:
        """Return an index into the names for each event, and the names."""
        column = {"place": "site", "thread": "thread"}.get(by, "policy")
        values, inverse = np.unique(self._by_buffer.allocation_values(column), return_inverse=True)
        name_of = getattr(self, f"_{by}_name")
        names: dict[str, int] = {}
        numbers = [names.setdefault(name_of(int(value)), len(names)) for value in values]
        return np.array(numbers, np.intp)[inverse.reshape(-1)], list(names)

    def _place_name(self, site: int) -> str:
        place = self.place(site)
        return "unknown source line" if place is None else str(place)

    def _scope_name(self, policy: int) -> str:
        known = self.policies.get(policy)
        return "no scope" if known is None or known.scope is None else known.scope

    def _policy_name(self, policy: int) -> str:
        known = self.policies.get(policy)
        return "unknown policy" if known is None else known.name

    def _thread_name(self, thread: int) -> str:
        return f"thread {thread}"

    @computed
    def _by_buffer(self) -> BufferEvents:
        return BufferEvents(self.events)

    def _text(self, number: int) -> str | None:
        return self._tables.texts.get(number)

    def _frame(self, stored: tuple[int, int, int, int]) -> Frame:
        function, file, at, native = stored
        line, offset = (0, at) if native else (at, 0)
        return frame_of(self._text(function), self._text(file), line, offset, bool(native))


def _policies_of(tables: Tables) -> dict[int, TracePolicy]:
    return {
        number: TracePolicy(
            tables.texts.get(name, "?"), tables.texts.get(scope) if scope else None, index, align
        )
        for number, (name, scope, index, align) in tables.policies.items()
    }


def _date_of(nanoseconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, timezone.utc)
