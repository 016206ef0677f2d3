"""Enable memrt for a process: this context, and every thread that Python starts from now on."""

from __future__ import annotations

import contextvars
import os
import threading
import warnings
from types import TracebackType

from memrt import _memrt
from memrt._policy import handlers
from memrt._policy.live_policies import default_policy
from memrt._policy.policy import Policy
from memrt._policy.threads import executor_patch, thread_patch
from memrt._support.leaving import end_block
from memrt._support.public import public

_MARK = object()  # owner of the handler stack entries that enable() makes
# Guards the policy and the patches. The lock is reentrant, because signal handlers and finalizers
# may call enable() and disable() anywhere. A forked child gets a new lock, because the thread that
# holds the old lock may exist in the parent alone. The child restores the patches from the policy.
_lock = threading.RLock()
_policy: Policy | None = None


@public("memrt")
def enable(policy: Policy | None = None) -> None:
    """Make NumPy allocate from memrt, here and in every thread that Python starts from now on.

    A second call also reaches the context of the caller, and restores the patch of
    ``ThreadPoolExecutor.submit`` if another library removed the patch.

    Parameters
    ----------
    policy : Policy, optional
        Policy of the memory. None: the enabled policy, or the default policy if none is enabled.

    Raises
    ------
    RuntimeError
        Another policy is already enabled; call :func:`disable` first.
    TypeError
        `policy` is neither a Policy nor None.

    Notes
    -----
    Threads: the call reaches the current context with the tasks that inherit the context. Threads
    started by ``threading.Thread`` are reached in any form: executors, ``ThreadPool``, ``Timer``,
    subclasses.

    The call does not reach running threads, existing contexts, and threads that ``threading`` did
    not start (``_thread``, C code). Greenlets are not reached either, because each greenlet begins
    with an empty context. In such threads and contexts, call enable() again, or enter a policy.
    :func:`memrt.handler_name` returns the handler in force for its caller.
    :func:`memrt.debug.without_policy` keeps NumPy's own handler for a thread, or a part of one.

    Examples
    --------
    >>> import memrt
    >>> import numpy as np
    >>> memrt.enable()
    >>> memrt.is_managed(np.ones(1000))
    True
    >>> memrt.disable()
    """
    global _policy
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(f"policy must be a memrt.Policy or None, got {type(policy).__name__}")
    with _lock:
        before = _policy
        wanted = policy or before or default_policy()
        if before is not None and before is not wanted:
            raise RuntimeError(
                f"policy {before.name!r} is enabled already: call memrt.disable() first"
            )
        try:
            _policy = wanted
            _threads.put()
            _executors.put()
            _enable_context(wanted)
        except BaseException:
            if before is None:
                _policy = None
                _executors.remove()
                _threads.remove()
            raise


@public("memrt")
def disable() -> None:
    """Undo :func:`enable`. One call suffices for any number of calls of enable().

    Threads started from now on do not use memrt. This context gets exactly the previous handler
    back. Other contexts keep memrt's handler until they end or call disable(). Without a previous
    enable() the call does nothing.

    Warns
    -----
    RuntimeWarning
        Another library has put a handler in force since then. The handler stays in force.

    Examples
    --------
    >>> import memrt
    >>> memrt.enable()
    >>> memrt.disable()
    >>> memrt.handler_name()
    'default_allocator'
    """
    global _policy
    with _lock:
        left = handlers.pop(_MARK)
        _policy = None
        _executors.remove()
        _threads.remove()
    if left == handlers.OVERRIDDEN:
        problem = handlers.problem_of(left, "memrt.enable()")
        warnings.warn(problem, RuntimeWarning, stacklevel=2)


@public("memrt.debug")
def enabled() -> Policy | None:
    """Return the policy that new threads start with.

    Returns
    -------
    Policy or None
        Policy of :func:`enable`; None while memrt is not enabled.

    Examples
    --------
    >>> import memrt
    >>> memrt.debug.enabled() is None
    True
    """
    return _policy


@public("memrt.debug")
class without_policy:  # noqa: N801 (a context manager that reads like a function)
    """Keep NumPy's own handler for a block, in any thread, also while memrt is enabled.

    Inside the block, NumPy allocates from its own allocator in this context. Leaving the block
    restores exactly the previous handler. A policy entered inside the block has effect.
    :func:`memrt.enable` inside the block has effect in this context from the end of the block.

    Warns
    -----
    RuntimeWarning
        On leaving: another library has put a handler in force inside, which stays in force; or the
        block was not entered in this context. The warning never replaces a pending exception.

    Notes
    -----
    Ownership: an array keeps the handler that allocated the array. Arrays made before the block
    stay with memrt.

    Threads: the block belongs to the current context, as policies do: tasks started inside inherit
    the block. Threads inherit it only if ``sys.flags.thread_inherit_context`` is 1. For a whole
    thread, put the block around the body of its function.
    One object may be entered by several threads at once: for the threads of an executor, use
    ``initializer=memrt.debug.without_policy().__enter__``.

    Only NumPy's handler changes. :func:`memrt.empty`, :func:`memrt.alloc`, related functions and
    compiled functions of Numba allocate from memrt's default policy inside the block.

    Examples
    --------
    >>> import memrt
    >>> import numpy as np
    >>> memrt.enable()
    >>> with memrt.debug.without_policy():
    ...     memrt.is_managed(np.ones(1000))
    False
    >>> memrt.is_managed(np.ones(1000))
    True
    >>> memrt.disable()
    """

    __slots__ = ()

    def __enter__(self) -> None:
        # An empty context has NumPy's own handler.
        handlers.push(self, contextvars.Context().run(_memrt.get_handler))

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        end_block(kind, self._leave)

    def _leave(self) -> str | None:
        left = handlers.pop(self)
        if left == handlers.RESTORED:
            return None
        return handlers.problem_of(left, "memrt.debug.without_policy()")


def _enable_thread() -> None:
    policy = _policy
    if policy is not None:
        _enable_context(policy)


def _is_enabled() -> bool:
    return _policy is not None


def _enable_context(policy: Policy) -> None:
    present = handlers.handler_of(_MARK)
    if present is policy.handler:
        return
    if present is not None:  # disable() ran in another context and left this entry
        handlers.pop(_MARK)
    if not handlers.push_below(without_policy, _MARK, policy.handler):
        handlers.push(_MARK, policy.handler)


def _recover_after_fork() -> None:
    """Restore lock and patches in a forked child.

    Another thread of the parent may have been inside enable() or disable() at the fork.
    """
    global _lock
    _lock = threading.RLock()
    if _policy is not None:
        _threads.put()
        _executors.put()
    else:
        _executors.remove()
        _threads.remove()


_threads, _executors = thread_patch(_enable_thread), executor_patch(_is_enabled)
os.register_at_fork(after_in_child=_recover_after_fork)
