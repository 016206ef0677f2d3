"""Inject allocation failures into tests of programs that use memrt."""

from __future__ import annotations

from types import TracebackType

from memrt import _memrt

__all__ = ["fail_allocations"]


class fail_allocations:  # noqa: N801 - reads as a verb where it is used
    """Context manager for fault injection: chosen requests to memrt fail inside the block.

    Every request for memory in memrt counts, for example for blocks, MemInfos, adoptions, names and
    policies. Requests for stack frames, allocation sites, texts of event traces and the leak report
    do not count and do not fail.

    Parameters
    ----------
    nth : int, default 1
        Number of the first request that fails, counted from 1 at the entry of the block.
    every : int, optional
        None: only the nth request fails. 1: all requests from the nth on. k: every k-th request
        from the nth on.
    this_thread : bool, default False
        Whether to count and fail only the requests of the entering thread.

    Raises
    ------
    ValueError
        A number is below 1.
    RuntimeError
        On entry: another block is active. A process has one plan of failures at a time.

    Examples
    --------
    Run a call once with each possible failure:

    >>> import itertools, memrt
    >>> from memrt.testing import fail_allocations
    >>> for nth in itertools.count(1):
    ...     with fail_allocations(nth, this_thread=True) as plan:
    ...         try:
    ...             mi = memrt.alloc(1000)
    ...         except MemoryError:
    ...             continue
    ...     if plan.points < nth:
    ...         break
    >>> mi.nbytes
    1000
    """

    _active: fail_allocations | None = None

    def __init__(self, nth: int = 1, every: int | None = None, this_thread: bool = False) -> None:
        if nth < 1:
            raise ValueError(f"nth must be 1 or more, got {nth}")
        if every is not None and every < 1:
            raise ValueError(f"every must be None, 1 or more, got {every}")
        self._plan = (nth, every or 0, this_thread)
        self._points = 0

    @property
    def points(self) -> int:
        """Number of requests so far; after the block, the number of requests in the block."""
        if fail_allocations._active is self:
            return _memrt.failure_points()
        return self._points

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
        self._points = _memrt.failure_points()
        _memrt.stop_failing()
        fail_allocations._active = None
