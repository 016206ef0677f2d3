"""Measure the memory that a part of a program, such as a test, allocates and leaves live."""

from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from memrt import _memrt
from memrt._policy import handlers
from memrt._policy.current_scope import current_scope, enter_scope, leave_scope
from memrt._policy.policy import default_policy
from memrt._policy.scope import Scope, open_scope
from memrt._policy.threads import executor_patch, thread_patch
from memrt._stats.snapshot import Stats
from memrt._tracking.live import LiveBuffer, live, tracking

_serial = itertools.count(1)
_NAME_BYTES = 63


def spare_scope() -> Scope:
    """Return the shared scope for measures that cannot get a scope of their own."""
    return open_scope(None, "tests")


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
    def now(cls, tracked: bool = True) -> _Seen:
        if not tracked:
            return cls(frozenset(), frozenset())
        threads = frozenset(thread.native_id for thread in threading.enumerate())
        buffers = frozenset(row[0] for row in _memrt.live(dict))  # dict(): no paths of scopes
        return cls(buffers, threads - {threading.get_native_id()})

    def __or__(self, other: _Seen) -> _Seen:
        return _Seen(self.buffers | other.buffers, self.threads | other.threads)

    def __sub__(self, other: _Seen) -> _Seen:
        return _Seen(self.buffers - other.buffers, self.threads - other.threads)


class Measure:
    """Count allocations between enter() and leave(), in this context and in threads started there.

    In between, NumPy allocates from memrt, by the default policy unless a policy of memrt is in
    force. A measure may be entered again after leave(). The figures can be read at any time.

    Parameters
    ----------
    name : str
        Name for the scope that counts.
    tracked : bool
        Whether to track the live buffers for live().
    spare : Scope
        Scope to use at the limit of scopes, from spare_scope().
    """

    def __init__(self, name: str, tracked: bool, spare: Scope) -> None:
        self._scope = _new_scope(name, spare)
        self._path = "/".join(self._scope.path) + "/"
        self._tracked = tracked
        self._stack = ExitStack()
        self._is_inside = False
        self._others = _Seen(frozenset(), frozenset())
        self._seen = self._others
        self._before = self._scope.stats()
        self._mark = self._before.live

    def enter(self) -> None:
        """Start to count."""
        with ExitStack() as stack:
            stack.callback(handlers.pop, self)
            stack.callback(leave_scope, self)
            self._enter_context()
            stack.callback(setattr, self, "_is_inside", False)
            self._is_inside = True
            executors = executor_patch(lambda: self._is_inside)
            for patch in (thread_patch(self._enter_thread), executors):
                stack.callback(patch.remove)
                patch.put()
            if self._tracked:
                self._others |= _Seen.now() - self._seen
                stack.enter_context(tracking())
            self._stack = stack.pop_all()

    def leave(self, *, is_last: bool = False) -> None:
        """Stop counting. `is_last` states that the measure is not entered again."""
        self._stack.close()
        if not is_last:
            self._seen = _Seen.now(self._tracked)

    def _enter_thread(self) -> None:
        if self._is_inside:
            self._enter_context()

    def _enter_context(self) -> None:
        if not _is_on_memrt():
            handlers.push(self, default_policy().handler)
        enter_scope(self, self._scope)

    def restart_peak(self) -> None:
        """Restart the peak at the bytes live now."""
        self._scope.reset_peak()
        self._mark = self._scope.live

    @property
    def stats(self) -> Stats:
        """Statistics of the measure."""
        return self._scope.stats() - self._before

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


def _is_on_memrt() -> bool:
    name = _memrt.handler_name()
    return name is not None and (name == "memrt" or name.startswith("memrt:"))
