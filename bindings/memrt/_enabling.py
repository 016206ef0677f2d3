"""memrt for all of a process: this context, and every thread that Python starts from now on."""

from __future__ import annotations

import functools
import threading
from typing import Any

from memrt import _handlers, _memrt
from memrt._policy import Policy, default_policy

_MARK = object()  # the owner of entries that enable() makes
_lock = threading.RLock()
_policy: Policy | None = None
_patch: _ThreadPatch | None = None


def enable(policy: Policy | None = None) -> None:
    """Put NumPy on memrt, here and in every thread that Python starts from now on.

    Reaches the current context with the tasks that inherit it, and threads started by
    ``threading.Thread`` in any way: executors, ``ThreadPool``, ``Timer``, subclasses. Out of reach
    are threads that run already, contexts that exist already, and threads that were not started by
    ``threading`` (``_thread``, C code); there, call it once more, or enter a policy.
    :func:`memrt.handler_name` tells what holds where it is called.

    Calling it again does nothing but reach the context of the caller, too.

    Args:
        policy: None for the default policy, or for the one that is enabled already.

    Raises:
        RuntimeError: when another policy is enabled already; call :func:`disable` first.
    """
    global _policy, _patch
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(f"policy must be a memrt.Policy or None, got {type(policy).__name__}")
    with _lock:
        wanted = policy or _policy or default_policy()
        if _policy is not None and _policy is not wanted:
            raise RuntimeError(
                f"policy {_policy.name!r} is enabled already: call memrt.disable() first"
            )
        patch = _patch or _ThreadPatch(wanted)
        _reach_this_context(wanted)
        if _policy is None:
            _policy, _patch = wanted, patch
            patch.put()


def disable() -> None:
    """Undo :func:`enable`: one call, however often that was called.

    Threads started from now on are left alone, and this context gets exactly the handler back that
    stood before. Other contexts keep theirs until they end or call this themselves. Without a
    previous enable() it does nothing.
    """
    global _policy, _patch
    with _lock:
        _handlers.pop(_MARK)
        if _patch is not None:
            _patch.remove()
            _policy = _patch = None


def enabled() -> Policy | None:
    """The policy that new threads start with, or None while memrt is not enabled."""
    return _policy


def _reach_this_context(policy: Policy) -> None:
    present = _handlers.handler_of(_MARK)
    if present is policy.handler:
        return
    if present is not None:  # left over from an enable() that was disabled in another context
        _handlers.pop(_MARK)
    _handlers.push(_MARK, policy.handler)


class _ThreadPatch:
    """Stands in for ``threading.Thread.start`` from put() to remove()."""

    def __init__(self, policy: Policy) -> None:
        self.active = True
        original = threading.Thread.start

        @functools.wraps(original)
        def start(thread: threading.Thread) -> None:
            if not self.active:
                original(thread)
                return
            restore = _prepare(thread, policy)
            try:
                original(thread)
            except BaseException:
                restore()
                raise

        self._original, self._start = original, start

    def put(self) -> None:
        threading.Thread.start = self._start  # type: ignore[method-assign, assignment]

    def remove(self) -> None:
        """Take it off; below another library's patch it stays, and only passes on."""
        self.active = False
        if threading.Thread.start is self._start:
            threading.Thread.start = self._original  # type: ignore[method-assign]


def _prepare(thread: threading.Thread, policy: Policy) -> Any:
    """Let `thread.run` begin with the policy; returns what puts the attribute back."""
    run = thread.run
    own = vars(thread).get("run")

    def restore() -> None:
        if own is None:
            vars(thread).pop("run", None)
        else:
            thread.run = own  # type: ignore[method-assign]

    def begin() -> None:
        restore()
        _handlers.push(_MARK, policy.handler)

    def end() -> None:
        _handlers.pop(_MARK)

    # In C, so that a traceback of the thread shows the program's frames alone.
    thread.run = functools.partial(_memrt.call_between, begin, run, end)  # type: ignore
    return restore
