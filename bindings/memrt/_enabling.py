"""memrt for all of a process: this context, and every thread that Python starts from now on."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from memrt import _handlers, _memrt
from memrt._policy import Policy, default_policy
from memrt._scopes import carry

_MARK = object()  # the owner of entries that enable() makes
_lock = threading.RLock()
_policy: Policy | None = None
_patches: tuple[_Patch, _Patch] | None = None


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
    global _policy, _patches
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(f"policy must be a memrt.Policy or None, got {type(policy).__name__}")
    with _lock:
        wanted = policy or _policy or default_policy()
        if _policy is not None and _policy is not wanted:
            raise RuntimeError(
                f"policy {_policy.name!r} is enabled already: call memrt.disable() first"
            )
        patches = _patches or (_thread_patch(wanted), _executor_patch())
        _reach_this_context(wanted)
        if _policy is None:
            _policy, _patches = wanted, patches
            patches[0].put()
            patches[1].put()


def disable() -> None:
    """Undo :func:`enable`: one call, however often that was called.

    Threads started from now on are left alone, and this context gets exactly the handler back that
    stood before. Other contexts keep theirs until they end or call this themselves. Without a
    previous enable() it does nothing.
    """
    global _policy, _patches
    with _lock:
        _handlers.pop(_MARK)
        if _patches is not None:
            _patches[0].remove()
            _patches[1].remove()
            _policy = _patches = None


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


class _Patch:
    """Stands in for a method of a class from put() to remove()."""

    def __init__(self, owner: type, name: str, make: Callable[[_Patch, Any], Any]) -> None:
        self.active = True
        self._owner, self._name = owner, name
        self._original = getattr(owner, name)
        self._method = functools.wraps(self._original)(make(self, self._original))

    def put(self) -> None:
        setattr(self._owner, self._name, self._method)

    def remove(self) -> None:
        """Take it off; below another library's patch it stays, and only passes on."""
        self.active = False
        if getattr(self._owner, self._name) is self._method:
            setattr(self._owner, self._name, self._original)


def _thread_patch(policy: Policy) -> _Patch:
    """Threads begin with the policy."""

    def make(patch: _Patch, original: Any) -> Any:
        def start(thread: threading.Thread) -> None:
            if not patch.active:
                original(thread)
                return
            restore = _prepare(thread, policy)
            try:
                original(thread)
            except BaseException:
                restore()
                raise

        return start

    return _Patch(threading.Thread, "start", make)


def _executor_patch() -> _Patch:
    """What is submitted runs in the scope of who submits it."""

    def make(patch: _Patch, original: Any) -> Any:
        def submit(executor: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
            carried = carry(function) if patch.active else function
            return original(executor, carried, *args, **kwargs)

        return submit

    return _Patch(ThreadPoolExecutor, "submit", make)


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
