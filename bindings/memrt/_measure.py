"""A measure: the memory that a piece of a program, as a test, makes and leaves."""

from __future__ import annotations

import gc
import itertools
import threading
from contextlib import ExitStack
from typing import NamedTuple

from memrt import _handlers, _memrt, _scopes
from memrt._live import LiveBuffer, live, tracking
from memrt._policy import default_policy
from memrt._stats import Stats
from memrt._threads import Action, executor_patch, thread_patch

_serial = itertools.count(1)
_NAME_BYTES = 63


def spare_scope() -> _scopes.Scope:
    """A scope for all measures that there is no room for one of their own for."""
    return _scopes._open(None, "tests")


def _new_scope(name: str, spare: _scopes.Scope) -> _scopes.Scope:
    """A scope that nobody else is in, if there is room for one more."""
    text = f"test {next(_serial)}: {name}".encode("ascii", "replace")[:_NAME_BYTES].decode()
    try:
        return _scopes._open(_scopes.current_scope(), text)
    except RuntimeError:
        return spare


class _Seen(NamedTuple):
    """What there is that others made."""

    buffers: frozenset[int]
    """Serial numbers of live ones."""
    threads: frozenset[int | None]
    """The operating system's numbers of all but this one."""

    @classmethod
    def now(cls, tracked: bool = True) -> _Seen:
        if not tracked:
            return cls(frozenset(), frozenset())
        threads = frozenset(thread.native_id for thread in threading.enumerate())
        buffers = frozenset(buffer.id for buffer in live())
        return cls(buffers, threads - {threading.get_native_id()})

    def __or__(self, other: _Seen) -> _Seen:
        return _Seen(self.buffers | other.buffers, self.threads | other.threads)

    def __sub__(self, other: _Seen) -> _Seen:
        return _Seen(self.buffers - other.buffers, self.threads - other.threads)


class Measure:
    """Counts, between enter() and leave(), what is made in this context and the threads it starts.

    NumPy is put on memrt there, unless it is already. After leave() it may be entered again. The
    figures can be read at any time.

    Args:
        name: for the scope that counts.
        tracked: whether the live buffers are to be told, too.
        spare: from spare_scope().
    """

    def __init__(self, name: str, tracked: bool, spare: _scopes.Scope) -> None:
        self._scope = _new_scope(name, spare)
        self._path = "/".join(self._scope.path) + "/"
        self._tracked = tracked
        self._stack = ExitStack()
        self._others = self._seen = _Seen.now(tracked)
        self._before = self._scope.stats()
        self._mark = self._before.live

    def enter(self) -> None:
        """Count from now on."""
        with ExitStack() as stack:
            self._enter_here(stack)
            for patch in (thread_patch(self._entering_thread), executor_patch()):
                stack.callback(patch.remove)
                patch.put()
            if self._tracked:
                self._others |= _Seen.now() - self._seen
                stack.enter_context(tracking())
            self._stack = stack.pop_all()

    def leave(self) -> None:
        """Do not count what is made from now on."""
        self._stack.close()
        self._seen = _Seen.now(self._tracked)

    def _enter_here(self, stack: ExitStack) -> None:
        if not _is_on_memrt():
            stack.callback(_handlers.pop, self)
            _handlers.push(self, default_policy().handler)
        stack.callback(_scopes._leave, self)
        _scopes._enter(self, self._scope)

    def _entering_thread(self) -> tuple[Action, Action]:
        stack = ExitStack()
        return lambda: self._enter_here(stack), stack.close

    def restart_peak(self) -> None:
        """Let the peak count from what is live now."""
        self._scope.reset_peak()
        self._mark = self._scope.live

    @property
    def stats(self) -> Stats:
        """What was counted."""
        return self._scope.stats() - self._before

    @property
    def peak(self) -> int:
        """Most bytes in use at once above those at restart_peak()."""
        return max(self._scope.peak - self._mark, 0)

    def live(self) -> list[LiveBuffer]:
        """The live buffers that were made, oldest first; their scopes are told from here on."""
        return [
            buffer._replace(scope=self._scope_within(buffer))
            for buffer in live()
            if self._made(buffer)
        ]

    def collect(self) -> None:
        """Let garbage go, if anything is left at all."""
        if self.stats.live > 0 or (self._tracked and self.live()):
            gc.collect()

    def _made(self, buffer: LiveBuffer) -> bool:
        """Whether the buffer was born here, as far as is known: in the scope, or in no scope by a
        thread that was not there before."""
        if buffer.id in self._others.buffers:
            return False
        if buffer.scope is not None:
            return f"{buffer.scope}/".startswith(self._path)
        return buffer.thread not in self._others.threads

    def _scope_within(self, buffer: LiveBuffer) -> str | None:
        return (buffer.scope or "")[len(self._path) :] or None


def _is_on_memrt() -> bool:
    name = _memrt.handler_name()
    return name is not None and (name == "memrt" or name.startswith("memrt:"))
