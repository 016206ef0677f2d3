"""Run a function with each possible failure of a request for memory."""

from __future__ import annotations

import gc
import itertools
import reprlib
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple

from memrt._faults.outcomes import Exhaustion, FailurePoint
from memrt._faults.plan import fail_allocations
from memrt._policy.live_policies import default_policy
from memrt._policy.policy import Policy
from memrt._stats.snapshot import stats
from memrt._support.public import public
from memrt._tracking.measure import is_on_memrt

_NEVER = 2**62  # number of a request that no call makes


class _Call(NamedTuple):
    """Facts of one call, without references to objects of the call."""

    plan: fail_allocations
    error: str | None = None
    place: str | None = None
    result: str | None = None
    is_expected: bool = True


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _place_of(error: BaseException) -> str | None:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None


def _call(
    call: Callable[[], object], plan: fail_allocations, errors: tuple[type[Exception], ...]
) -> _Call:
    """Call a function under a plan. All objects of the call end, also frames of the exception."""
    try:
        with plan:
            result = call()
        return _Call(plan, result=reprlib.repr(result))
    except Exception as error:
        if plan.failed == 0:
            raise
        return _Call(plan, _first_line(error), _place_of(error), None, isinstance(error, errors))


def _live() -> tuple[int, int]:
    """Return the live blocks of the process, and their bytes."""
    now = stats()
    return now.alloc - now.free, now.live


def _left_since(before: tuple[int, int]) -> tuple[int, int]:
    """Return the blocks and bytes that are live since `before`, without objects in cycles."""
    for generation in range(3):
        if _live()[0] <= before[0]:
            break
        gc.collect(generation)
    now = _live()
    return max(now[0] - before[0], 0), max(now[1] - before[1], 0)


@public("memrt.testing")
def exhaust(
    function: Callable[..., object],
    *,
    setup: Callable[[], object] | None = None,
    every: int | None = None,
    this_thread: bool = True,
    errors: tuple[type[Exception], ...] = (MemoryError,),
    most: int = 10_000,
    policy: Policy | None = None,
    **select: Any,
) -> Exhaustion:
    """Repeat a function, each time with another failed request, until no failure point is left.

    The first call has no failure, so that caches fill. Call number n then fails the nth request of
    memrt, until a call has fewer requests. NumPy allocates from memrt meanwhile: from `policy`, the
    policy in force, or the default policy.

    Parameters
    ----------
    function : callable
        Function under test, which is called without arguments, or with the result of `setup`. The
        function must make the same requests in each call, up to the failure.
    setup : callable, optional
        Function called before each call, without failures.
    every : int, optional
        None: one request fails. 1: all requests from the nth on, as when memory stays short.
    this_thread : bool, default True
        Whether only requests of the calling thread fail.
    errors : tuple of type, default (MemoryError,)
        Exceptions that the function may raise. Others are problems.
    most : int, default 10_000
        Maximum of failure points.
    policy : memrt.Policy, optional
        Only requests of this policy fail.
    **select
        `kind`, `min_size`, `max_size` and `scope`, as for :class:`fail_allocations`. The function
        enters the scope.

    Returns
    -------
    memrt.types.Exhaustion
        Outcome of each failure point; `problems` has the points with blocks left live and with
        other exceptions.

    Raises
    ------
    RuntimeError
        There are more than `most` failure points, or a block of :class:`fail_allocations` is
        active.
    ValueError, TypeError
        An argument is bad, as for :class:`fail_allocations`.
    Exception
        The function or `setup` raised the exception in a call without a failure.

    Notes
    -----
    Blocks left live are counted for the process, after garbage collection. So no other thread may
    allocate meanwhile, and memory that the function caches in a failed call counts. Results and
    exceptions are kept as texts only. Exceptions that are no Exception, such as KeyboardInterrupt,
    end the repetition.

    Examples
    --------
    >>> import memrt
    >>> import numpy as np
    >>> kept = []
    >>> def load():
    ...     kept.append(np.zeros(1000))
    ...     try:
    ...         return np.empty(5000)
    ...     finally:
    ...         kept.pop()
    >>> result = memrt.testing.exhaust(load, kind="block")
    >>> result.summary, result.problems
    ('2 failure points: 2 raised MemoryError', ())
    """

    def selects(nth: int) -> fail_allocations:
        return fail_allocations(nth, every, this_thread, policy=policy, **select)

    selects(1)  # checks the arguments
    if most < 1:
        raise ValueError(f"most must be 1 or more, got {most}")
    outcomes: list[FailurePoint] = []
    with _memory_of(policy):
        _verify_points(_one_call(function, setup, selects(_NEVER), errors).plan.points, most)
        for nth in itertools.count(1):
            _verify_points(nth - 1, most)
            before = _live()
            made = _one_call(function, setup, selects(nth), errors)
            left, nbytes = _left_since(before)
            if made.plan.failed == 0:
                break
            request = (nth, str(made.plan.kind), made.plan.nbytes)
            outcome = (made.error, made.place, made.result)
            outcomes.append(FailurePoint(*request, *outcome, left, nbytes, made.is_expected))
    name = getattr(function, "__qualname__", None) or repr(function)
    return Exhaustion(name, tuple(outcomes), left)


def _verify_points(points: int, most: int) -> None:
    if points > most:
        raise RuntimeError(
            f"function must have at most {most:,} failure points, got more: select a kind of "
            "request, or raise most"
        )


def _one_call(
    function: Callable[..., object],
    setup: Callable[[], object] | None,
    plan: fail_allocations,
    errors: tuple[type[Exception], ...],
) -> _Call:
    return _call(function if setup is None else partial(function, setup()), plan, errors)


def _memory_of(policy: Policy | None) -> AbstractContextManager[object]:
    """Return a context in which NumPy allocates from memrt."""
    if policy is None and is_on_memrt():
        return nullcontext()
    return policy or default_policy()
