"""Structured log records of refused allocations, for the module logging."""

from __future__ import annotations

import logging
import os
import threading
from contextvars import Context
from time import monotonic
from typing import Any

from memrt._policy.limit import limits
from memrt._policy.refusal import LAST, on_refusal
from memrt._policy.scope_tree import scope_name, scopes
from memrt._stats.snapshot import stats
from memrt._support.closable import Closable
from memrt._support.public import public
from memrt._support.units import human_bytes
from memrt._tracking.live import sites

_SHOWN = 5


class _Interval:
    """Counter of refusals, with a minimum time between two records.

    Threads and forks: each process counts under a lock of its own.
    """

    def __init__(self, seconds: float) -> None:
        if not isinstance(seconds, int | float):
            raise TypeError(f"interval must be a number of seconds, got {seconds!r}")
        if not seconds >= 0:
            raise ValueError(f"interval must be 0 seconds or more, got {seconds}")
        self._seconds = seconds
        self._next = 0.0
        self._left_out = 0
        self._locks: dict[int, threading.Lock] = {}

    def begin(self) -> int | None:
        """Return the number of refusals without record since the last record; None: no record."""
        with self._locks.setdefault(os.getpid(), threading.Lock()):
            now = monotonic()
            if now < self._next:
                self._left_out += 1
                return None
            self._next, left_out, self._left_out = now + self._seconds, self._left_out, 0
            return left_out


@public("memrt.telemetry")
class log_refusals(Closable):  # noqa: N801 - used like a function
    """Log a record before an allocation is refused for lack of memory.

    The record has the level ERROR, a text of one line, and the attribute ``memrt``: a dict for JSON
    with the request, the live bytes, the limits, the scopes and the allocation sites. The record
    follows all functions of :class:`memrt.debug.on_refusal`. Then the allocation raises
    MemoryError.

    Parameters
    ----------
    logger : str or logging.Logger, default "memrt"
        Logger, or the name of the logger.
    interval : float, default 10.0
        Minimum of seconds between two records. The next record has the number of refusals without
        a record.

    Raises
    ------
    TypeError, ValueError
        `interval` is not a number of at least 0.
    RuntimeError
        64 callbacks for refusals are registered.

    Notes
    -----
    ======================  ====================================================================
    member of ``memrt``     content
    ======================  ====================================================================
    event                   "out_of_memory"
    requested               bytes of the refused request
    live, cached, peak      bytes of the process
    limits                  up to 5 limits with the least room: `of`, `limit`, `live`
    scopes                  up to 5 scopes with the most live bytes: `scope`, `live`
    sites                   up to 5 source lines with the most tracked live bytes: `file`, `line`,
                            `function`, `bytes`, `buffers`; empty without tracking
    left_out                refusals since the last record that have no record
    ======================  ====================================================================

    Handlers of the logger run inside the allocation. They may allocate, but a refused allocation
    raises MemoryError at once. No record is written where callbacks for refusals do not run: on a
    thread without the GIL, while an exception is pending, and while the interpreter shuts down. An
    exception goes to ``sys.unraisablehook``.

    Examples
    --------
    >>> import logging, memrt
    >>> class Show(logging.Handler):
    ...     def emit(self, record):
    ...         print(record.levelname, record.memrt["event"], record.memrt["requested"])
    >>> logger = logging.Logger("service")
    >>> logger.addHandler(Show())
    >>> policy = memrt.Policy(name="logged", limit="1 MiB")
    >>> with memrt.telemetry.log_refusals(logger):
    ...     try:
    ...         table = memrt.zeros(2 << 20, "u1", policy=policy)
    ...     except MemoryError:
    ...         print("refused")
    ERROR out_of_memory 2097152
    refused
    """

    __slots__ = ("_callback", "_interval", "_logger")

    def __init__(self, logger: str | logging.Logger = "memrt", *, interval: float = 10.0) -> None:
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._interval = _Interval(interval)
        self._callback = on_refusal(self._log, LAST)

    def _log(self, wanted: int) -> None:
        if not self._logger.isEnabledFor(logging.ERROR):
            return
        left_out = self._interval.begin()
        if left_out is None:
            return
        # In an empty context, NumPy allocates from its own allocator.
        fields = Context().run(_fields, wanted, left_out)
        text = "no memory for %s: %s live in the process"
        arguments = (human_bytes(wanted), human_bytes(fields["live"]))
        self._logger.error(text, *arguments, extra={"memrt": fields})

    def close(self) -> None:
        """End the records. A second call has no effect."""
        self._callback.close()


def _fields(wanted: int, left_out: int) -> dict[str, Any]:
    process = stats()
    hard = [(each.limit - each.live, each) for each in limits() if each.limit is not None]
    nearest = [each for _, each in sorted(hard, key=lambda pair: pair[0])[:_SHOWN]]
    inside = [(scope_name(scope.path), scope.stats().live) for scope in scopes()]
    largest = sorted(inside, key=lambda row: -row[1])[:_SHOWN]
    return {
        "event": "out_of_memory",
        "requested": wanted,
        "live": process.live,
        "cached": process.cached,
        "peak": process.peak,
        "limits": [{"of": each.of, "limit": each.limit, "live": each.live} for each in nearest],
        "scopes": [{"scope": name, "live": live} for name, live in largest if live],
        "sites": _sites(),
        "left_out": left_out,
    }


def _sites() -> list[dict[str, Any]]:
    return [
        {
            "file": None if each.place is None else each.place.file,
            "line": None if each.place is None else each.place.line,
            "function": None if each.place is None else each.place.function,
            "bytes": round(each.bytes),
            "buffers": round(each.blocks),
        }
        for each in sites()[:_SHOWN]
    ]
