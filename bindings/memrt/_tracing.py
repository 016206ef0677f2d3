"""Recording traces: every allocation of a time as an event in a file."""

from __future__ import annotations

import os
import warnings
from types import TracebackType
from typing import NamedTuple

from memrt import _memrt
from memrt._units import plural

FRAMES_MAX = 128
LAST_MAX = 2**28


class TraceStats(NamedTuple):
    """How far a trace is, or what came of it."""

    recording: bool
    """Whether it is recorded now."""
    events: int
    """Events recorded, overwritten ones too."""
    lost: int
    """Events that were not recorded: there was no room in the file, or no memory."""
    overwritten: int
    """Events of those that were recorded that later ones took the place of, where only the last
    are kept."""
    bytes: int
    """Bytes of the file."""
    error: int
    """The system's number of why it last refused to write to the file; 0: it never did."""

    @property
    def loss(self) -> str | None:
        """What was lost and why, as a sentence; None: nothing."""
        if self.lost == 0:
            return None
        why = os.strerror(self.error) if self.error else "there was no memory"
        was = "was" if self.lost == 1 else "were"
        return f"{plural(self.lost, 'event')} {was} lost: {why}"


class trace:  # noqa: N801 - reads as a verb where it is used
    """Context manager: what happens inside, on any thread, is recorded into a file.

    Events are births, resizes and deaths of buffers, requests that are refused, and what
    :func:`mark` says. Buffers that were born before are in none. :class:`Trace` reads the file. A
    process records one trace at a time; a forked child is not recorded. Where the disk is full the
    program goes on, events are lost, and the end of the block warns of that.

    :param path: of the file.
    :param frames: most Python calls to record of each birth, 0 to 128.
    :param native: most calls of native code to record of each birth, 0 to 128.
    :param last: keep only so many events, the last ones, in memory, and write them at the end;
        None: write all as they come.
    :param replace: whether a file that is there may be replaced.
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
                raise TypeError(f"{name} is a whole number, not {number!r}")
            if not least <= number <= most:
                raise ValueError(f"{name} must be from {least} to {most}, not {number}")
        self.path = os.fspath(path)
        self._wanted = (frames, native, last or 0, replace)
        self._ended: TraceStats | None = None
        self._owner = 0

    @property
    def stats(self) -> TraceStats:
        """How far it is, or what came of it."""
        return TraceStats(*_memrt.trace_stats()) if self._ended is None else self._ended

    def __enter__(self) -> trace:
        owner = os.getpid()
        _memrt.trace_start(self.path, *self._wanted)
        self._owner = owner  # from here on nothing needs memory
        self._ended = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        if self._owner != os.getpid():  # the block was left in a forked child
            return
        stopped = _memrt.trace_stop()
        self._owner = 0
        if stopped is not None:
            self._ended = TraceStats(*stopped)
            self._warn(self._ended.loss)

    def _warn(self, loss: str | None) -> None:
        if loss is not None:
            warnings.warn(f"trace {self.path!r}: {loss}", RuntimeWarning, stacklevel=3)


def mark(name: str) -> None:
    """Put an event with a name into the trace that is recorded, to find this moment again.

    Nothing happens while none is recorded, so that marks can stay in a program.

    :raises ValueError: for a name that is empty or longer than 1023 bytes.
    """
    _memrt.trace_mark(name)
