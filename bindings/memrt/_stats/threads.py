"""Read the statistics of threads."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from memrt import _memrt
from memrt._support.public import public
from memrt._support.units import human_bytes


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class ThreadStats:
    """Work of one thread since the thread first used memrt.

    A thread counts the blocks that the thread itself made or freed, for all policies and scopes. A
    free counts on the thread that frees, whichever thread made the block. `id` and `started`
    together identify a thread, because the system gives the id of an ended thread to a new thread.

    Examples
    --------
    >>> import memrt, threading
    >>> before = memrt.stats(thread=threading.current_thread())
    >>> mi = memrt.alloc(1000)
    >>> memrt.stats(thread=threading.current_thread()).allocated - before.allocated
    1000
    """

    id: int
    """The system's id of the thread: `threading.Thread.native_id`."""
    name: str
    """Name of the `threading.Thread`; empty for threads that Python does not know."""
    started: float
    """Time at which the thread first used memrt, in seconds since 1970; 0: not yet."""
    alloc: int
    """Blocks that the thread made."""
    free: int
    """Blocks that the thread freed."""
    allocated: int
    """Bytes that the thread allocated. Growth by resizing counts, shrinking does not."""
    freed: int
    """Bytes that the thread freed."""

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return (
            f"<memrt.types.ThreadStats of thread {self.id}{name}: "
            f"allocated {human_bytes(self.allocated)} in {self.alloc:,} blocks, "
            f"freed {human_bytes(self.freed)} in {self.free:,} blocks>"
        )


@public("memrt.debug")
def threads() -> list[ThreadStats]:
    """Return the statistics of the running threads that use memrt.

    Returns
    -------
    list of memrt.types.ThreadStats
        The threads in the order of their first use of memrt. Threads of C are included.

    Notes
    -----
    Threads: while a thread works, its figures may lack the latest changes. Threads that have ended
    are not listed; the totals of the process include their work.

    Examples
    --------
    >>> import memrt, threading
    >>> mi = memrt.alloc(1000)
    >>> threading.get_native_id() in [thread.id for thread in memrt.debug.threads()]
    True
    """
    return from_rows(_memrt.threads())


def from_rows(rows: Iterable[tuple[int, ...]]) -> list[ThreadStats]:
    """Return the statistics of threads in the order of their first use of memrt.

    A row has the id, the start in nanoseconds, and the four counts of ThreadStats in their order.
    """
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    return [
        ThreadStats(number, names.get(number, ""), started / 1e9, *counts)
        for number, started, *counts in sorted(rows, key=lambda row: row[1])
    ]


def thread_stats(thread: threading.Thread | int) -> ThreadStats:
    """Return the statistics of a running thread. Zeros if the thread has not used memrt yet."""
    if isinstance(thread, threading.Thread):
        if not thread.is_alive():
            raise ValueError(f"thread must be running, got {thread!r}")
        number = thread.native_id or 0
        return _find(number) or ThreadStats(number, thread.name, 0.0, 0, 0, 0, 0)
    if isinstance(thread, bool) or not isinstance(thread, int):
        raise TypeError(
            f"thread must be a threading.Thread or the native id of a thread, got {thread!r}"
        )
    found = _find(thread)
    if found is None:
        raise ValueError(
            f"thread must be the native id of a thread that uses memrt, got {thread!r}"
        )
    return found


def _find(number: int) -> ThreadStats | None:
    return next((each for each in threads() if each.id == number), None)
