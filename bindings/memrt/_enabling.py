"""memrt for all of a process: this context, and every thread that Python starts from now on."""

from __future__ import annotations

import threading

from memrt import _handlers
from memrt._policy import Policy, default_policy
from memrt._threads import Action, Patch, executor_patch, thread_patch

_MARK = object()  # the owner of entries that enable() makes
_lock = threading.RLock()
_policy: Policy | None = None
_patches: tuple[Patch, Patch] | None = None


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
        patches = _patches or (thread_patch(lambda: _entering(wanted)), executor_patch())
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


def _entering(policy: Policy) -> tuple[Action, Action]:
    """What a thread begins and ends with."""
    return lambda: _handlers.push(_MARK, policy.handler), lambda: _handlers.pop(_MARK)
