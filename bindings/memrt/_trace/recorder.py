"""Record event traces: write every allocation, resize and free as an event to a file."""

from __future__ import annotations

import os
from types import TracebackType
from typing import NamedTuple

from memrt import _memrt
from memrt._support.leaving import end_block
from memrt._support.public import public
from memrt._support.units import plural

FRAMES_MAX = 128
LAST_MAX = 2**28


@public("memrt.types")
class TraceStats(NamedTuple):
    """Progress of an event trace, or its final state.

    Examples
    --------
    >>> import memrt, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.memtrace")
    >>> with memrt.debug.trace(path) as trace:
    ...     table = memrt.zeros(1000)
    >>> trace.stats.recording, trace.stats.events, trace.stats.lost
    (False, 1, 0)
    """

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


@public("memrt.debug")
class trace:  # noqa: N801 - reads as a verb where it is used
    """Context manager: record the memory events of all threads to a file.

    Events are allocations, resizes and frees of buffers, refused requests, and the marks of
    :func:`mark`. Buffers allocated before the trace appear in no event. :class:`Trace` reads the
    file.

    Parameters
    ----------
    path : str or os.PathLike
        Path of the file, which is created with mode 0600.
    frames : int, default 16
        Maximum of Python calls to record for each allocation, 0 to 128.
    native : int, default 0
        Maximum of calls of native code to record for each allocation, 0 to 128.
    last : int, optional
        Number of last events to keep, in memory; the end writes the file. None: write all events as
        recorded.
    replace : bool, default False
        Whether a new file may replace a regular file at `path`. A symbolic link is refused. The old
        file stays if the trace cannot start.

    Raises
    ------
    TypeError
        A number is not a whole number.
    ValueError
        A number is out of range.
    OSError
        On entry: the file cannot be created.
    RuntimeError
        On entry: another trace is being recorded.

    Warns
    -----
    RuntimeWarning
        On leaving: events were lost, for example on a full disk. The program continues.

    Notes
    -----
    A process records one trace at a time. A forked child is not recorded.

    Examples
    --------
    >>> import memrt, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.memtrace")
    >>> with memrt.debug.trace(path):
    ...     table = memrt.zeros(1000)
    ...     del table
    >>> memrt.debug.Trace(path).events["nbytes"]
    array([8000, 8000], dtype=uint64)
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


@public("memrt.debug")
def mark(name: str) -> None:
    """Record a named event in the current event trace, to find this moment again.

    The call does nothing while no trace is being recorded, so marks can stay in a program.

    Parameters
    ----------
    name : str
        Name of the mark, 1 to 1023 bytes in UTF-8.

    Raises
    ------
    ValueError
        The name is empty or too long.

    Examples
    --------
    >>> import memrt
    >>> memrt.debug.mark("loaded")
    """
    _memrt.trace_mark(name)
