"""Record event traces: write every allocation, resize and free as an event to a file."""

from __future__ import annotations

import os
from types import TracebackType
from typing import NamedTuple

from memrt import _memrt
from memrt._leaving import end_block
from memrt._units import plural

FRAMES_MAX = 128
LAST_MAX = 2**28


class TraceStats(NamedTuple):
    """Progress of an event trace, or its final state."""

    recording: bool
    """Whether the trace is being recorded now."""
    events: int
    """Number of events recorded, including overwritten events."""
    lost: int
    """Number of events not recorded, because the file had no room or memory ran out."""
    overwritten: int
    """Number of recorded events that later events replaced, when only the last events are kept."""
    bytes: int
    """Size of the file in bytes."""
    error: int
    """errno of the last failed write to the file; 0: no write failed."""

    @property
    def loss(self) -> str | None:
        """Number of lost events with the cause, as a sentence; None if no event was lost."""
        if self.lost == 0:
            return None
        why = os.strerror(self.error) if self.error else "out of memory"
        was = "was" if self.lost == 1 else "were"
        return f"{plural(self.lost, 'event')} {was} lost: {why}"


class trace:  # noqa: N801 - reads as a verb where it is used
    """Context manager: record the memory events of all threads to a file.

    Events are allocations, resizes and frees of buffers, refused requests, and the marks of
    :func:`mark`. Buffers allocated before the trace appear in no event. :class:`Trace` reads the
    file. A process records one trace at a time. A forked child is not recorded. On a full disk the
    program continues, events are lost, and the end of the ``with`` block causes a warning.

    :param path: path of the file, which is created with mode 0600.
    :param frames: most Python calls to record for each allocation, 0 to 128.
    :param native: most calls of native code to record for each allocation, 0 to 128.
    :param last: keep only this number of last events, in memory, and write the file at the end;
        None: write all events as recorded.
    :param replace: whether a new file may replace a regular file at `path`. A symbolic link is
        refused. The old file stays if the trace cannot start.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        frames: int = 16,
        native: int = 0,
        last: int | None = None,
        replace: bool = False,
    ) -> None:
        for name, number, least, most in (
            ("frames", frames, 0, FRAMES_MAX),
            ("native", native, 0, FRAMES_MAX),
            ("last", 1 if last is None else last, 1, LAST_MAX),
        ):
            if not isinstance(number, int):
                raise TypeError(f"{name} must be a whole number, got {number!r}")
            if not least <= number <= most:
                raise ValueError(f"{name} must be from {least} to {most}, got {number}")
        self.path = os.fspath(path)
        self._wanted = (frames, native, last or 0, replace)
        self._ended: TraceStats | None = None
        self._owner = 0

    @property
    def stats(self) -> TraceStats:
        """Progress of the trace, or its final state."""
        return TraceStats(*_memrt.trace_stats()) if self._ended is None else self._ended

    def __enter__(self) -> trace:
        owner = os.getpid()
        _memrt.trace_start(self.path, *self._wanted)
        self._owner = owner  # from here on nothing allocates memory
        self._ended = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        if self._owner == os.getpid():  # otherwise a forked child leaves the block
            end_block(kind, self._stop)

    def _stop(self) -> str | None:
        stopped = _memrt.trace_stop()
        self._owner = 0
        if stopped is None:
            return None
        self._ended = TraceStats(*stopped)
        loss = self._ended.loss
        return None if loss is None else f"trace {self.path!r}: {loss}"


def mark(name: str) -> None:
    """Record a named event in the current event trace, to find this moment again.

    The call does nothing while no trace is being recorded, so marks can stay in a program.

    :raises ValueError: the name is empty or longer than 1023 bytes.
    """
    _memrt.trace_mark(name)
