"""Read the file of an event trace, and compute live memory, buffers and usage from the events."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memrt._support.units import human_bytes, human_seconds, plural
from memrt._tracking.sites import Frame, Place, Site

if TYPE_CHECKING:
    _computed = cached_property
else:

    class _computed(cached_property):  # noqa: N801 - a decorator
        """cached_property without the lock that versions before Python 3.12 take.

        A child forked while a thread computes could never acquire the lock. If two threads compute
        at once, both get the result of the first thread.
        """

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            return vars(instance).setdefault(self.attrname, self.func(instance))


MAGIC = b"MEMRTRC\n"
VERSION = 1
ORDER = 0x01020304

TEXT, SITE, POLICY, EVENTS, END = 1, 2, 3, 4, 5
ALLOC, ADOPTION, RESIZE, FREE, FAILURE, MARK = 1, 2, 3, 4, 5, 6

EVENT_NAMES = {
    ALLOC: "alloc",
    ADOPTION: "adoption",
    RESIZE: "resize",
    FREE: "free",
    FAILURE: "failure",
    MARK: "mark",
}
KIND_NAMES = ("", "inline", "adopted", "resizable", "block")
ADOPTED = 2

_STORED = np.dtype(
    [
        ("time", "u8"),
        ("nbytes", "u8"),
        ("block", "u4"),
        ("site", "u4"),
        ("policy", "u4"),
        ("type", "u1"),
        ("kind", "u1"),
        ("align_log2", "u1"),
        ("reserved", "u1"),
    ]
)
_FIELDS = [*_STORED.names[:-1], "thread"]  # type: ignore[index]
EVENT = np.dtype([(name, "u4" if name == "thread" else _STORED[name].str[1:]) for name in _FIELDS])

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


class TraceError(ValueError):
    """Exception for an invalid or unsupported trace file.

    The message states the problem and a remedy.

    Examples
    --------
    >>> import memrt, os
    >>> try:
    ...     memrt.debug.Trace(os.devnull)
    ... except memrt.debug.TraceError as error:
    ...     print(error)
    '/dev/null' is empty: record a trace with `python -m memrt trace SCRIPT`
    """


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


class TraceUsage(NamedTuple):
    """Memory of one source line, scope, policy or thread in a trace.

    Examples
    --------
    >>> import memrt, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.memtrace")
    >>> with memrt.debug.trace(path):
    ...     table = memrt.zeros(1000)
    ...     memrt.debug.mark("loaded")
    >>> [usage] = memrt.debug.Trace(path).usage("policy")
    >>> usage.name, usage.allocations, usage.at_peak
    ('default', 1, 8000)
    """

    name: str
    """Source line, path of the scope, name of the policy, or number of the thread."""
    allocations: int
    """Number of buffers allocated or adopted."""
    total: int
    """Bytes allocated. Growth by resizing counts, shrinking does not."""
    at_peak: int
    """Bytes live at the peak of the whole trace."""
    at_end: int
    """Bytes live at the end of the trace."""


@dataclass(frozen=True)
class _Header:
    order: str
    size: int
    process: int
    began: int
    last: int
    library: str


class _Tables:
    """Contents of the records of a file."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.frames: dict[int, list[tuple[int, int, int, int]]] = {}
        self.policies: dict[int, tuple[int, int, int, int]] = {}
        self.pieces: list[NDArray[Any]] = []
        self.threads: list[int] = []
        self.end: tuple[int, int, int, int] | None = None
        self.cut = False


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
        with open(self.path, "rb") as file:
            data = file.read()
        header = _read_header(self.path, data)
        self._tables = _read_records(self.path, data, header)
        self.process = header.process
        self.began = _date_of(header.began)
        self.library = header.library
        self.last = header.last or None
        self.events = _events_of(self._tables, header.order)
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

    @_computed
    def marks(self) -> list[Mark]:
        """Marks of the program, ordered by time."""
        rows = self.events[self.events["type"] == MARK]
        return [
            Mark(int(row["time"]) / 1e9, self._text(int(row["block"])) or "?", int(row["thread"]))
            for row in rows
        ]

    @_computed
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

    @_computed
    def live(self) -> NDArray[np.int64]:
        """Bytes live after each event, without adopted buffers."""
        before = int(self._foreign_frees.sum())
        live: NDArray[np.int64] = before + np.cumsum(self._changes)
        return live

    @_computed
    def peak(self) -> int:
        """Most bytes live at once."""
        return max(int(self.live.max()), 0) if len(self) else 0

    @_computed
    def peak_event(self) -> int:
        """Index of the event after which most bytes were live; -1 for a trace without events."""
        return int(self.live.argmax()) if len(self) else -1

    @_computed
    def buffers(self) -> NDArray[Any]:
        """All buffers of the trace, ordered by the number of the allocation.

        `allocated` and `freed` are the times of allocation and free in nanoseconds. `nbytes` is the
        first size in bytes, `largest` the largest size. `site`, `policy`, `thread` and `kind`
        describe the allocation. `seen_alloc` is false if the allocation is in no event, `seen_free`
        if the free is in no event. The first or last event of the buffer then gives the time.
        """
        ordered = self.events[self._block_order]
        starts = np.flatnonzero(self._is_first_event)
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
        return _sum_usage(self, keys, names)

    def _names(self, by: str) -> tuple[NDArray[np.intp], list[str]]:
        """Return an index into the names for each event, and the names."""
        column = {"place": "site", "thread": "thread"}.get(by, "policy")
        values, inverse = np.unique(self._allocation_values(column), return_inverse=True)
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

    def _allocation_values(self, column: str) -> NDArray[Any]:
        """Return a column with the value of the buffer's first event in each event of a buffer."""
        values = self.events[column].copy()
        order = self._block_order
        first = order[np.flatnonzero(self._is_first_event)]
        counts = np.diff(np.append(np.flatnonzero(self._is_first_event), len(order)))
        values[order] = np.repeat(self.events[column][first], counts)
        return values

    @_computed
    def _block_order(self) -> NDArray[np.intp]:
        """Indexes of the events of buffers, sorted by buffer, then by time."""
        events = self.events
        chosen = np.flatnonzero((events["type"] >= ALLOC) & (events["type"] <= FREE))
        keys = events[chosen]
        order: NDArray[np.intp] = chosen[np.lexsort((keys["type"], keys["time"], keys["block"]))]
        return order

    @_computed
    def _is_first_event(self) -> NDArray[np.bool_]:
        """Whether each event of _block_order is the first event of its buffer."""
        blocks = self.events["block"][self._block_order]
        first = np.ones(len(blocks), bool)
        first[1:] = blocks[1:] != blocks[:-1]
        return first

    @_computed
    def _foreign_frees(self) -> NDArray[np.int64]:
        """Bytes of buffers whose only event is a free: live at the start of the trace."""
        ordered = self.events[self._block_order]
        alone = self._is_first_event & (ordered["type"] == FREE) & (ordered["kind"] != ADOPTED)
        sizes: NDArray[np.int64] = ordered["nbytes"][alone].astype(np.int64)
        return sizes

    @_computed
    def _changes(self) -> NDArray[np.int64]:
        """Change of the live bytes by each event."""
        ordered = self.events[self._block_order]
        is_free = ordered["type"] == FREE
        sizes = ordered["nbytes"].astype(np.int64)
        after = np.where(is_free, 0, sizes)
        before = np.zeros(len(after), np.int64)
        before[1:] = after[:-1]
        before[self._is_first_event] = np.where(is_free, sizes, 0)[self._is_first_event]
        changes = np.zeros(len(self.events), np.int64)
        changes[self._block_order] = np.where(ordered["kind"] == ADOPTED, 0, after - before)
        return changes

    def _text(self, number: int) -> str | None:
        return self._tables.texts.get(number)

    def _frame(self, stored: tuple[int, int, int, int]) -> Frame:
        function, file, at, native = stored
        line, offset = (0, at) if native else (at, 0)
        return Frame(self._text(function), self._text(file), line, offset, bool(native))


def _sum_usage(trace: Trace, keys: NDArray[np.intp], names: list[str]) -> list[TraceUsage]:
    changes, types = trace._changes, trace.events["type"]
    peak, count = trace.peak_event + 1, len(names)
    allocations = np.bincount(keys[(types == ALLOC) | (types == ADOPTION)], minlength=count)
    total = _sums(keys, np.maximum(changes, 0), count)
    at_peak, at_end = _sums(keys[:peak], changes[:peak], count), _sums(keys, changes, count)
    rows = [
        TraceUsage(name, int(allocations[i]), int(total[i]), int(at_peak[i]), int(at_end[i]))
        for i, name in enumerate(names)
        if allocations[i] or total[i] or at_peak[i] or at_end[i]
    ]
    return sorted(rows, key=lambda row: (-row.at_peak, -row.total, row.name))


def _sums(keys: NDArray[np.intp], values: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    sums = np.bincount(keys, values, count)  # exact up to 2**53
    return np.rint(sums).astype(np.int64)


def _read_header(path: str, data: bytes) -> _Header:
    if data[: len(MAGIC)] != MAGIC:
        what = "is empty" if not data else "is not a trace of memrt"
        raise TraceError(f"{path!r} {what}: record a trace with `python -m memrt trace SCRIPT`")
    if len(data) < 64:
        raise TraceError(f"{path!r} was cut off in the header: record the trace again")
    order = _byte_order(path, data)
    version, header_size, event_size = struct.unpack_from(f"{order}3I", data, 12)
    if version != VERSION:
        newer = "a newer" if version > VERSION else "another"
        raise TraceError(
            f"{path!r} must have format version {VERSION}, got {version}: read the trace with "
            f"{newer} memrt"
        )
    process, began, last, library = struct.unpack_from(f"{order}3Q16s", data, 24)
    if header_size < 64 or header_size % 8 or event_size != _STORED.itemsize:
        raise _damaged(path, 16)
    text = library.rstrip(b"\0").decode("utf-8", "replace")
    return _Header(order, header_size, process, began, last, text)


def _byte_order(path: str, data: bytes) -> str:
    for order in "<>":
        if struct.unpack_from(f"{order}I", data, 8)[0] == ORDER:
            return order
    raise _damaged(path, 8)


def _damaged(path: str, at: int) -> TraceError:
    return TraceError(f"{path!r} is damaged at byte {at}: record the trace again")


def _read_records(path: str, data: bytes, header: _Header) -> _Tables:
    tables, at, size = _Tables(), header.size, len(data)
    head = struct.Struct(f"{header.order}2I")
    while at + 8 <= size:
        kind, length = head.unpack_from(data, at)
        if length % 8:
            raise _damaged(path, at)
        if at + 8 + length > size:
            break
        try:
            _read_record(tables, kind, data, at + 8, length, header.order)
        except (struct.error, ValueError) as error:
            raise _damaged(path, at) from error
        at += 8 + length
    tables.cut = at != size
    return tables


def _read_record(tables: _Tables, kind: int, data: bytes, at: int, length: int, order: str) -> None:
    """Read one record into the tables. A record of an unknown kind is skipped.

    Raises
    ------
    ValueError
        The record is malformed.
    """
    if kind == EVENTS:
        thread, count = _numbers(f"{order}2I", data, at, length)
        _require(length == 8 + count * _STORED.itemsize)
        dtype = _STORED.newbyteorder(order)  # type: ignore[arg-type]
        tables.pieces.append(np.frombuffer(data, dtype, count, at + 8))
        tables.threads.append(thread)
    elif kind == TEXT:
        number, size = _numbers(f"{order}2I", data, at, length)
        _require(size <= length - 8)
        tables.texts[number] = data[at + 8 : at + 8 + size].decode("utf-8", "replace")
    elif kind == SITE:
        number, count = _numbers(f"{order}2I", data, at, length)
        _require(length == 8 + count * 24)
        frames = struct.iter_unpack(f"{order}2I2Q", data[at + 8 : at + length])
        tables.frames[number] = list(frames)
    elif kind == POLICY:
        number, name, scope, index, alignment = _numbers(f"{order}4IQ", data, at, length)
        tables.policies[number] = (name, scope, index, alignment)
    elif kind == END:
        tables.end = _numbers(f"{order}4Q", data, at, length)


def _numbers(form: str, data: bytes, at: int, length: int) -> tuple[Any, ...]:
    _require(struct.calcsize(form) <= length)
    return struct.unpack_from(form, data, at)


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError


def _events_of(tables: _Tables, order: str) -> NDArray[Any]:
    lengths = [len(piece) for piece in tables.pieces]
    events = np.empty(sum(lengths), EVENT)
    at = 0
    for piece, thread in zip(tables.pieces, tables.threads, strict=True):
        part = events[at : at + len(piece)]
        for name in _FIELDS[:-1]:
            part[name] = piece[name]
        part["thread"] = thread
        at += len(piece)
    tables.pieces.clear()  # the pieces keep the bytes of the file alive
    times = events["time"]
    if len(events) and (times[1:] < times[:-1]).any():
        events = events[np.argsort(times, kind="stable")]
    return events


def _policies_of(tables: _Tables) -> dict[int, TracePolicy]:
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
