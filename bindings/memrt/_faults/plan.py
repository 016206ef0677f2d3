"""Plans of fault injection: the requests for memory that fail on purpose."""

from __future__ import annotations

from types import TracebackType

from memrt import _memrt
from memrt._policy.limit_amount import parse_amount
from memrt._policy.policy import Policy
from memrt._policy.scope import Scope
from memrt._support.public import public

KINDS = {"block": 1, "meminfo": 2, "resize": 4, "device": 8, "record": 16}
"""Bit of each kind of request, MEMRT_FAULT_* of the C header."""

_NAMES = {bit: name for name, bit in KINDS.items()}


def _kind_bits(kind: str | tuple[str, ...] | None) -> int:
    names = (kind,) if isinstance(kind, str) else kind or ()
    for name in names:
        if name not in KINDS:
            listed = ", ".join(map(repr, KINDS))
            raise ValueError(f"kind must be one of {listed}, or a tuple of them, got {name!r}")
    return sum(KINDS[name] for name in set(names))


@public("memrt.testing")
class fail_allocations:  # noqa: N801 - reads as a verb where it is used
    """Context manager for fault injection: chosen requests to memrt fail inside the block.

    Every request for memory in memrt counts, for example for blocks, MemInfos, adoptions, names and
    policies. Requests for stack frames, allocation sites, texts of event traces and the leak report
    do not count and do not fail. The keyword arguments select requests: only requests that match
    all of them count and fail.

    Parameters
    ----------
    nth : int, default 1
        Number of the first request that fails, counted from 1 at the entry of the block.
    every : int, optional
        None: only the nth request fails. 1: all requests from the nth on. k: every k-th request
        from the nth on.
    this_thread : bool, default False
        Whether to count and fail only the requests of the entering thread.
    kind : str or tuple of str, optional
        Kinds of requests: 'block', memory of NumPy's arrays; 'meminfo', memory of MemInfos, which
        ``memrt.empty`` and jitted functions use; 'resize', growth of an array or a buffer;
        'device', memory of CUDA; 'record', memory of memrt itself. None: all kinds.
    min_size : int or str, optional
        Minimum of bytes of data: a whole number, or a text like "1 MiB". Records have 0 bytes.
    max_size : int or str, optional
        Maximum of bytes of data, at least 1.
    policy : memrt.Policy, optional
        Only requests of this policy. Records and device memory have no policy.
    scope : memrt.types.Scope, optional
        Only requests in this scope and the scopes inside.

    Raises
    ------
    ValueError
        A number is below 1, `max_size` is below `min_size`, or a kind is unknown.
    TypeError
        A size is neither a text nor a whole number, or `policy` or `scope` has another type.
    RuntimeError
        On entry: another block is active. A process has one plan of failures at a time.

    Examples
    --------
    Fail only large arrays of NumPy:

    >>> import memrt
    >>> import numpy as np
    >>> from memrt.testing import fail_allocations
    >>> with memrt.Policy(), fail_allocations(kind="block", min_size="1 MiB") as plan:
    ...     small = np.ones(1000)
    ...     try:
    ...         np.ones(1_000_000)
    ...     except MemoryError:
    ...         print(plan.kind, plan.nbytes)
    block 8000000

    :func:`exhaust` runs a function once with each possible failure.
    """

    _active: fail_allocations | None = None

    def __init__(
        self,
        nth: int = 1,
        every: int | None = None,
        this_thread: bool = False,
        *,
        kind: str | tuple[str, ...] | None = None,
        min_size: int | str | None = None,
        max_size: int | str | None = None,
        policy: Policy | None = None,
        scope: Scope | None = None,
    ) -> None:
        if nth < 1:
            raise ValueError(f"nth must be 1 or more, got {nth}")
        if every is not None and every < 1:
            raise ValueError(f"every must be None, 1 or more, got {every}")
        if policy is not None and not isinstance(policy, Policy):
            raise TypeError(f"policy must be a memrt.Policy or None, got {type(policy).__name__}")
        if scope is not None and not isinstance(scope, Scope):
            raise TypeError(f"scope must be a Scope or None, got {type(scope).__name__}")
        least = 0 if min_size is None else parse_amount(min_size, "min_size")
        most = None if max_size is None else parse_amount(max_size, "max_size")
        if most is not None and most < max(least, 1):
            bound = max(least, 1)
            raise ValueError(f"max_size must be at least 1 and min_size, {bound:,}, got {most:,}")
        objects = (policy and policy.handler, scope and scope._capsule)  # kept while the plan lasts
        self._plan = (nth, every or 0, this_thread, _kind_bits(kind), least, most or 0, *objects)
        self._read = (0, 0, 0, 0)

    def _now(self) -> tuple[int, int, int, int]:
        return _memrt.failure_read() if fail_allocations._active is self else self._read

    @property
    def points(self) -> int:
        """Number of requests so far; after the block, the number of requests in the block."""
        return self._now()[0]

    @property
    def failed(self) -> int:
        """Number of requests that failed on purpose, counted as `points`."""
        return self._now()[1]

    @property
    def nbytes(self) -> int:
        """Bytes of data of the first request that failed on purpose; 0 for a record."""
        return self._now()[2]

    @property
    def kind(self) -> str | None:
        """Kind of the first request that failed on purpose, as the parameter; None: none failed."""
        return _NAMES.get(self._now()[3])

    def __enter__(self) -> fail_allocations:
        if fail_allocations._active is not None:
            raise RuntimeError("fail_allocations is already active: leave the other block first")
        fail_allocations._active = self
        _memrt.fail_allocations(*self._plan)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._read = _memrt.failure_read()
        _memrt.stop_failing()
        fail_allocations._active = None

    def __repr__(self) -> str:
        nth, every = self._plan[:2]
        points, failed = self._now()[:2]
        return f"<fail_allocations nth={nth} every={every}: {failed} of {points} requests failed>"
