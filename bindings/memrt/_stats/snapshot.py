"""Read statistics: snapshots of the accounts, and differences of snapshots."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter, sub
from typing import TYPE_CHECKING, NamedTuple, overload

from memrt import _memrt
from memrt._stats.threads import ThreadStats, thread_stats
from memrt._support.html_table import html_table
from memrt._support.public import public
from memrt._support.units import human_bytes

if TYPE_CHECKING:
    import threading

    from memrt._policy.policy import Policy


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class Stats:
    """Snapshot of one account: of the process, a policy or a scope.

    Sizes are requested sizes, without headers and padding, unless stated otherwise. ``after -
    before`` gives a Stats of the differences, in which ``peak`` is the rise of the peak between the
    two snapshots. After :func:`memrt.debug.reset_peak` this rise is the most memory in use above
    the start.

    Examples
    --------
    >>> import memrt
    >>> before = memrt.stats()
    >>> mi = memrt.alloc(1000)
    >>> (memrt.stats() - before).live
    1000
    """

    alloc: int
    """Blocks allocated so far. An inline MemInfo is one block, a resizable MemInfo two."""
    free: int
    """Blocks freed so far."""
    mi_alloc: int
    """MemInfos created so far."""
    mi_free: int
    """MemInfos destroyed so far."""
    realloc: int
    """Blocks resized so far."""
    failed: int
    """Requests refused, for any reason."""
    live: int
    """Bytes in use now."""
    peak: int
    """Most bytes in use at once, since start or reset."""
    peak_error: int
    """Error bound of `peak` in bytes, in both directions; 0: exact."""
    total: int
    """Bytes allocated so far. Growth by resizing counts, shrinking does not."""
    adopted: int
    """Bytes of live adopted buffers; not part of `live`."""
    cached: int
    """Bytes kept for reuse."""
    reserved: int
    """Bytes taken from allocators: live blocks with headers and padding, and cached blocks."""
    inherited: int
    """Bytes of `live` allocated before the fork that created this process; 0 without a fork."""
    inherited_blocks: int
    """Blocks allocated before that fork and not yet freed."""
    inherited_error: int
    """Bytes of `live` beyond `inherited` that may be inherited, too; 0: `inherited` is exact."""
    exported: int
    """References handed to other libraries, for example by DLPack, and not yet returned."""

    def to_dict(self) -> dict[str, int]:
        """Return the fields by name.

        Returns
        -------
        dict of str to int
            All fields, in order.
        """
        return dict(zip(FIELDS, _values(self), strict=True))

    def __sub__(self, before: Stats) -> Stats:
        if not isinstance(before, Stats):
            return NotImplemented
        difference = list(map(sub, _values(self), _values(before)))
        for error in ("peak_error", "inherited_error"):
            difference[FIELDS.index(error)] = getattr(self, error) + getattr(before, error)
        return Stats(*difference)

    def __repr__(self) -> str:
        return "\n".join(["memrt.types.Stats:", *(f"  {line}" for line in describe(self))])

    def _repr_html_(self) -> str:
        """Return the lines of repr() as an HTML table, for notebooks."""
        rows = [line.split(maxsplit=1) for line in describe(self)]
        return html_table("memrt.types.Stats", rows, align="right")


FIELDS = tuple(field.name for field in fields(Stats))
"""Names of the figures, in the order of the extension."""
_values = attrgetter(*FIELDS)

BYTES = frozenset(
    {"live", "peak", "peak_error", "total", "adopted", "cached", "reserved"}
    | {"inherited", "inherited_error"}
)
"""Fields that count bytes. All other fields count events, blocks or references."""


def main_figures(stats: Stats) -> dict[str, str]:
    """Return the main figures of an account as readable amounts."""
    return {
        "live": human_bytes(stats.live),
        "peak": human_bytes(stats.peak),
        "total": human_bytes(stats.total),
        "blocks": f"{stats.alloc - stats.free:,}",
    }


def describe(stats: Stats) -> list[str]:
    """Return one line per field: name, readable amount, exact number. The peak has its error."""
    lines = [_line(name, number) for name, number in zip(FIELDS, _values(stats), strict=True)]
    error = stats.peak_error
    lines[FIELDS.index("peak")] += f" ± {human_bytes(error)}" if error else " exact"
    return lines


def _line(name: str, number: int) -> str:
    if name in BYTES:
        return f"{name:<16} {human_bytes(number):>12}   ({number:,} bytes)"
    return f"{name:<16} {number:>12,}"


@public("memrt.types")
class AllocationStats(NamedTuple):
    """Numba's four counters, with Numba's meaning.

    Examples
    --------
    >>> import memrt
    >>> counters = memrt.telemetry.get_allocation_stats()
    >>> counters.alloc >= counters.free
    True
    """

    alloc: int
    free: int
    mi_alloc: int
    mi_free: int


@overload
def stats(policy: Policy | None = None) -> Stats: ...
@overload
def stats(*, thread: threading.Thread | int) -> ThreadStats: ...
@public("memrt")
def stats(
    policy: Policy | None = None, *, thread: threading.Thread | int | None = None
) -> Stats | ThreadStats:
    """Return the current statistics of the process, of a policy or of a thread.

    Parameters
    ----------
    policy : Policy, optional
        Policy with the account. None: the whole process.
    thread : threading.Thread or int, optional
        Running thread, or its native id. :func:`memrt.debug.threads` lists all threads.

    Returns
    -------
    memrt.types.Stats or memrt.types.ThreadStats
        Snapshot of the account, or work of the thread since the thread first used memrt.

    Raises
    ------
    TypeError
        Both a policy and a thread, or an argument of another type.
    ValueError
        The thread is not running, or no thread with that id uses memrt.

    Notes
    -----
    Threads: the numbers are exact when no other thread is inside memrt. Otherwise the changes that
    other threads make during the call may be missing from each number.

    Examples
    --------
    >>> import memrt
    >>> policy = memrt.Policy(name="mine")
    >>> mi = memrt.alloc(1000, policy=policy)
    >>> memrt.stats(policy).live, memrt.stats(policy).alloc
    (1000, 1)
    """
    if thread is None:
        return Stats(*_memrt.stats_read(policy))
    if policy is not None:
        raise TypeError("stats() takes a policy or a thread, got both")
    return thread_stats(thread)


@public("memrt.telemetry")
def get_allocation_stats() -> AllocationStats:
    """Return the counters of the process that Numba's ``rtsys.get_allocation_stats()`` returns.

    Returns
    -------
    memrt.types.AllocationStats
        Counts of allocated and freed blocks and MemInfos.

    Examples
    --------
    >>> import memrt
    >>> before = memrt.telemetry.get_allocation_stats()
    >>> mi = memrt.alloc(1000)
    >>> memrt.telemetry.get_allocation_stats().mi_alloc - before.mi_alloc
    1
    """
    return AllocationStats(*_memrt.stats_read(None)[:4])


@public("memrt.debug")
def reset_peak(policy: Policy | None = None) -> None:
    """Restart the peak of a policy or of the process at the bytes live now.

    Parameters
    ----------
    policy : Policy, optional
        Policy with the account. None: the whole process.

    Examples
    --------
    >>> import memrt
    >>> policy = memrt.Policy(name="mine")
    >>> mi = memrt.alloc(100_000, policy=policy)
    >>> del mi
    >>> memrt.debug.reset_peak(policy)
    >>> memrt.stats(policy).peak
    0
    """
    _memrt.stats_reset_peak(policy)
