"""Measure the memory that a part of a program, such as a test, allocates and leaves live."""

from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import Callable
from typing import NamedTuple

from memrt import _memrt
from memrt._policy import handlers
from memrt._policy.current_scope import current_scope, enter_scope, leave_scope
from memrt._policy.scope import Scope, open_scope
from memrt._policy.threads import executor_patch, thread_patch
from memrt._stats.snapshot import Stats
from memrt._tracking.live import LiveBuffer, live, tracking

_serial = itertools.count(1)
_NAME_BYTES = 63


def _new_scope(name: str, spare: Scope) -> Scope:
    """Return a new scope for one measure, or `spare` at the limit of scopes."""
    text = f"test {next(_serial)}: {name}".encode("ascii", "replace")[:_NAME_BYTES].decode()
    try:
        return open_scope(current_scope(), text)
    except RuntimeError:
        return spare


class _Seen(NamedTuple):
    """Snapshot of live buffers and other threads, to separate a measure from foreign memory."""

    buffers: frozenset[int]
    """Serial numbers of live buffers."""
    threads: frozenset[int | None]
    """Operating system's numbers of all threads except the calling thread."""

    @classmethod
    def now(cls) -> _Seen:
        threads = frozenset(thread.native_id for thread in threading.enumerate())
        buffers = frozenset(row[0] for row in _memrt.live(dict))  # dict(): no paths of scopes
        return cls(buffers, threads - {threading.get_native_id()})

    def __or__(self, other: _Seen) -> _Seen:
        return _Seen(self.buffers | other.buffers, self.threads | other.threads)

    def __sub__(self, other: _Seen) -> _Seen:
        return _Seen(self.buffers - other.buffers, self.threads - other.threads)


class Measures:
    """Series of measures. At most one measure of a series is entered at a time.

    Parameters
    ----------
    name : str
        Name of the scope shared by measures that get no own scope, at the limit of scopes.
    """

    def __init__(self, name: str) -> None:
        self._spare = open_scope(None, name)
        self._entered: Measure | None = None
        executors = executor_patch(lambda: self._entered is not None)
        self._patches = (thread_patch(self._enter_thread), executors)

    def new(self, name: str, *, tracked: bool) -> Measure:
        """Return a new measure.

        Parameters
        ----------
        name : str
            Name for the scope that counts.
        tracked : bool
            Whether to track the live buffers for live().
        """
        return Measure(self, _new_scope(name, self._spare), tracked)

    def begin(self, measure: Measure) -> None:
        """Let new threads enter `measure`."""
        self._entered = measure
        for patch in self._patches:
            patch.put()

    def end(self) -> None:
        """Let new threads enter no measure. Needs no memory."""
        self._entered = None
        for patch in self._patches:
            patch.remove()

    def _enter_thread(self) -> None:
        measure = self._entered
        if measure is not None:
            measure.enter_context()


class Measure:
    """Count allocations between enter() and leave(), in this context and in threads started there.

    In between, NumPy allocates from memrt, by the default policy unless a policy of memrt is in
    force. A measure may be entered again after leave(). The figures can be read at any time.
    """

    def __init__(self, series: Measures, scope: Scope, tracked: bool) -> None:
        self._series = series
        self._scope = scope
        self._path = "/".join(scope.path) + "/"
        self._tracking = tracking() if tracked else None
        self._others = self._seen = _Seen(frozenset(), frozenset())
        self._before = scope.stats()
        self._mark = self._before.live

    def enter(self) -> None:
        """Start to count."""
        try:
            self.enter_context()
            self._series.begin(self)
            if self._tracking is not None:
                self._others |= _Seen.now() - self._seen
                self._tracking.__enter__()
        except BaseException:
            self._undo()
            raise

    def leave(self, *, is_last: bool = False) -> None:
        """Stop counting. `is_last` states that the measure is not entered again."""
        self._undo()
        if self._tracking is not None and not is_last:
            self._seen = _Seen.now()

    def enter_context(self) -> None:
        """Count the allocations of this context."""
        enter_scope(self, self._scope)
        if not is_on_memrt():
            handlers.push(self, _memrt.default_handler())

    def _undo(self) -> None:
        """Undo enter(), also after a failure in the middle."""
        try:
            if self._tracking is not None:
                self._tracking.__exit__()
        finally:
            self._series.end()
            try:
                handlers.pop(self)
            finally:
                leave_scope(self)

    def restart_peak(self) -> None:
        """Restart the peak at the bytes live now."""
        self._scope.reset_peak()
        self._mark = self._scope.live

    @property
    def stats(self) -> Stats:
        """Statistics of the measure."""
        return self._scope.stats() - self._before

    @property
    def left(self) -> int:
        """Bytes of the measure in use now."""
        return self._scope.live - self._before.live

    @property
    def peak(self) -> int:
        """Most bytes in use at once, above the bytes in use at restart_peak()."""
        return max(self._scope.peak - self._mark, 0)

    def live(self) -> list[LiveBuffer]:
        """Return the live buffers of the measure, oldest first.

        Scope paths start below the scope of the measure.
        """
        return [
            buffer._replace(scope=self._inner_scope(buffer))
            for buffer in live()
            if self._is_own_buffer(buffer)
        ]

    def collect(self, is_enough: Callable[[], bool]) -> bool:
        """Collect garbage until `is_enough()` returns true, and return the last result.

        Young generations come first, because the time of a full collection grows with the number of
        objects in the process."""
        for generation in range(3):
            if is_enough():
                return True
            gc.collect(generation)
        return is_enough()

    def _is_own_buffer(self, buffer: LiveBuffer) -> bool:
        """Return whether the measure allocated the buffer, as far as is known.

        The allocation was in the scope, or outside of scopes on the measuring or a later thread."""
        if buffer.id in self._others.buffers:
            return False
        if buffer.scope is not None:
            return f"{buffer.scope}/".startswith(self._path)
        return buffer.thread not in self._others.threads

    def _inner_scope(self, buffer: LiveBuffer) -> str | None:
        return (buffer.scope or "")[len(self._path) :] or None


def is_on_memrt() -> bool:
    name = _memrt.handler_name()
    return name is not None and (name == "memrt" or name.startswith("memrt:"))
