"""Read the times of slow paths and system calls."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

from memrt import _memrt
from memrt._support.public import public

_PATHS = (
    *("map", "unmap", "remap", "discard", "advise", "grow"),
    *("refill", "overflow", "drain", "recall", "reclaim"),
)


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class Latency:
    """Times of a slow path, or of a system call of memrt.

    Examples
    --------
    >>> import memrt
    >>> latency = memrt.types.Latency(count=3, nanoseconds=1900, bins={512: 2, 1024: 1})
    >>> latency.nanoseconds / latency.count
    633.3333333333334
    """

    count: int
    """Measured runs."""
    nanoseconds: int
    """Sum of the times."""
    bins: dict[int, int]
    """Runs by time. The value of key k counts runs of at least k/2 and less than k nanoseconds. The
    last possible key, 1 << 40, also counts all longer runs."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name.

        Returns
        -------
        dict
            All fields, in order.
        """
        return asdict(self)


@public("memrt.debug")
def latency() -> dict[str, Latency]:
    """Return the times of slow paths and system calls, measured while ``MEMRT_LATENCY`` was 1.

    Returns
    -------
    dict of str to memrt.types.Latency
        Times by path; paths without a run are left out. System calls: "map", "unmap", "remap",
        "discard" and "advise". Heap: "grow" of the page heap, "refill", "overflow" and "drain" of
        thread caches. Limits: "recall" of unused bytes, and "reclaim" callbacks.

    Notes
    -----
    ``memrt.set_option("latency", True)`` starts the measurement. A path that calls another measured
    path includes the time of the other path.

    Threads: runs that end during the call may be missing.

    Examples
    --------
    >>> import memrt
    >>> memrt.set_option("latency", True)
    >>> table = memrt.zeros(64 << 20, "u1")
    >>> memrt.set_option("latency", False)
    >>> all(path.count == sum(path.bins.values()) for path in memrt.debug.latency().values())
    True
    """
    rows = zip(_PATHS, _memrt.latency(), strict=True)
    return {
        name: Latency(count, time, {1 << bits: runs for bits, runs in enumerate(bins) if runs})
        for name, (count, time, bins) in rows
        if count
    }


BOUNDS = tuple(1 << bits for bits in range(8, 35, 2))
"""Upper bounds of the buckets in metrics, in nanoseconds: 256 ns to 17 s."""


def count_below(latency: Latency) -> list[int]:
    """Return the number of runs below each of `BOUNDS`."""
    steps = [0, *BOUNDS]
    return list(
        accumulate(
            sum(runs for key, runs in latency.bins.items() if low < key <= high)
            for low, high in zip(steps, BOUNDS, strict=False)
        )
    )
