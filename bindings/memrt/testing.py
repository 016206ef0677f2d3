"""Help for tests of programs that use memrt."""

from __future__ import annotations

from types import TracebackType

from memrt import _memrt

__all__ = ["fail_allocations"]


class fail_allocations:  # noqa: N801 - reads as a verb where it is used
    """Context manager: inside, memrt's allocations fail on purpose.

    Every request to memrt counts: blocks, MemInfos, adoptions, names, policies. There is one plan
    for the process; blocks of this kind cannot be nested.

    Args:
        nth: the first request that fails, counted from 1 when the block is entered.
        every: None: just the nth fails. 1: all from the nth on. k: every k-th from the nth on.
        this_thread: count and fail the requests of the entering thread only.

    Attributes:
        points: requests seen so far; after the block, how many failure points it had.

    To meet each failure of a call once::

        for nth in itertools.count(1):
            with fail_allocations(nth) as plan:
                try:
                    call()
                except MemoryError:
                    continue
            if plan.points < nth:
                break
    """

    _active: fail_allocations | None = None

    def __init__(self, nth: int = 1, every: int | None = None, this_thread: bool = False) -> None:
        if nth < 1:
            raise ValueError(f"nth counts from 1, got {nth}")
        if every is not None and every < 1:
            raise ValueError(f"every must be None, 1 or more, got {every}")
        self._plan = (nth, every or 0, this_thread)
        self._points = 0

    @property
    def points(self) -> int:
        if fail_allocations._active is self:
            return _memrt.failure_points()
        return self._points

    def __enter__(self) -> fail_allocations:
        if fail_allocations._active is not None:
            raise RuntimeError("allocations fail by another plan already: leave that block first")
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
