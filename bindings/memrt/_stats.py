"""Statistics: snapshots of the accounts, and their differences."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter, sub
from typing import NamedTuple

from memrt import _memrt
from memrt._policy import Policy
from memrt._units import human_bytes


@dataclass(frozen=True, slots=True)
class Stats:
    """One account at one moment: of the process, or of a policy.

    Sizes are those asked for, without headers and padding, unless said otherwise. ``after -
    before`` gives a Stats of the differences; its ``peak`` is how far the peak rose between the
    two, so that after :func:`reset_peak` it is the most that was in use above the start.
    """

    alloc: int
    """Blocks ever made (an inline MemInfo is one, a resizable one two)."""
    free: int
    """Blocks ever freed."""
    mi_alloc: int
    """MemInfos ever made."""
    mi_free: int
    """MemInfos ever destroyed."""
    realloc: int
    """Blocks ever resized."""
    failed: int
    """Requests refused, for whatever reason."""
    live: int
    """Bytes in use now."""
    peak: int
    """Most bytes in use at once, since start or reset."""
    peak_error: int
    """Bytes by which `peak` may be off either way; 0: exact."""
    total: int
    """Bytes ever allocated; growth by resizing counts, shrinking does not."""
    adopted: int
    """Bytes of live adopted buffers; not part of `live`."""
    cached: int
    """Bytes kept for reuse."""
    reserved: int
    """Bytes taken from allocators for live blocks, with headers and padding, and cached ones."""
    inherited: int
    """Bytes of `live` that were born before the fork that made this process; 0 without one."""
    inherited_blocks: int
    """Blocks born before that fork that are not freed."""
    inherited_error: int
    """Bytes of `live` beyond `inherited` that may be, too: the fork had no memory to tell."""
    exported: int
    """References that other libraries were given, as by DLPack, and have not returned."""

    def to_dict(self) -> dict[str, int]:
        """The fields by name."""
        return dict(zip(_FIELDS, _values(self), strict=True))

    def __sub__(self, before: Stats) -> Stats:
        if not isinstance(before, Stats):
            return NotImplemented
        difference = list(map(sub, _values(self), _values(before)))
        for error in ("peak_error", "inherited_error"):
            difference[_FIELDS.index(error)] = getattr(self, error) + getattr(before, error)
        return Stats(*difference)

    def __repr__(self) -> str:
        return "\n".join(["memrt.Stats:", *(f"  {line}" for line in describe(self))])

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        rows = (line.split(maxsplit=1) for line in describe(self))
        cells = "".join(
            f'<tr><th style="text-align:left">{name}</th>'
            f'<td style="text-align:right">{amount.strip()}</td></tr>'
            for name, amount in rows
        )
        return f"<table><caption>memrt.Stats</caption><tbody>{cells}</tbody></table>"


_FIELDS = tuple(field.name for field in fields(Stats))
_values = attrgetter(*_FIELDS)

BYTES = frozenset(
    {"live", "peak", "peak_error", "total", "adopted", "cached", "reserved"}
    | {"inherited", "inherited_error"}
)
"""The fields that count bytes; the others count events and blocks."""


def describe(stats: Stats) -> list[str]:
    """One line for each field: name, readable amount, exact number; of the peak, how exact."""
    lines = [_line(name, number) for name, number in zip(_FIELDS, _values(stats), strict=True)]
    error = stats.peak_error
    lines[_FIELDS.index("peak")] += f" ± {human_bytes(error)}" if error else " exact"
    return lines


def _line(name: str, number: int) -> str:
    if name in BYTES:
        return f"{name:<16} {human_bytes(number):>12}   ({number:,} bytes)"
    return f"{name:<16} {number:>12,}"


class AllocationStats(NamedTuple):
    """Numba's four counters, with Numba's meaning."""

    alloc: int
    free: int
    mi_alloc: int
    mi_free: int


def stats(policy: Policy | None = None) -> Stats:
    """The account of a policy, or of the whole process for None, as it is now.

    Exact when no other thread is inside memrt; otherwise each number may be off by what other
    threads did during the call.
    """
    return Stats(*_memrt.stats_read(policy))


def get_allocation_stats() -> AllocationStats:
    """The counters of the process that Numba's ``rtsys.get_allocation_stats()`` has."""
    return AllocationStats(*_memrt.stats_read(None)[:4])


def reset_peak(policy: Policy | None = None) -> None:
    """Let the peak of a policy, or of the process for None, start again from what is live now."""
    _memrt.stats_reset_peak(policy)
