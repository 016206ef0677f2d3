"""Memory behind all blocks: requested and allocated bytes, pages and addresses."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from memrt import _memrt
from memrt._support.public import public
from memrt._support.units import human_bytes


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Memory behind the blocks of all policies, in bytes.

    ``requested <= allocated <= active <= mapped``, ``mapped == active + cached + tables`` and
    ``metadata == tables + records``.

    Examples
    --------
    >>> import memrt
    >>> memory = memrt.debug.memory_stats()
    >>> memory.requested <= memory.allocated <= memory.active <= memory.mapped
    True
    """

    requested: int
    """Live bytes, as `Stats.live`."""
    headers: int
    """Headers of live blocks, and padding for alignment."""
    allocated: int
    """Blocks in use, with headers, and with rounding to size classes and pages."""
    active: int
    """Pages with blocks in use, or with blocks in thread caches."""
    cached: int
    """Pages without such blocks, kept for reuse."""
    tables: int
    """Tables of the page heap and of mappings."""
    mapped: int
    """Addresses with pages: `active` + `cached` + `tables`."""
    retained: int
    """Addresses of the heap that memrt keeps without pages."""
    resident: int
    """Pages in memory now, of the memory that memrt has mapped itself."""
    records: int
    """Memory of malloc for threads, policies, scopes, the live set and allocation sites."""
    metadata: int
    """`tables` + `records`."""
    outside: int
    """Part of `allocated`, `active` and `mapped` that comes from other allocators, such as malloc,
    as requested from these allocators."""
    huge_asked: int
    """Whole huge pages of 2 MiB in mappings for which memrt asks the system for huge pages."""
    huge_got: int | None
    """Bytes of these mappings in huge pages now. None: Linux before 6.7 does not report them."""

    @property
    def rounding(self) -> int:
        """Bytes of blocks beyond data and headers: rounding to size classes and pages."""
        return max(0, self.allocated - self.requested - self.headers)

    def to_dict(self) -> dict[str, int | None]:
        """Return the fields by name.

        Returns
        -------
        dict
            All fields, in order.
        """
        return dict(zip(_FIELDS, _values(self), strict=True))

    def __repr__(self) -> str:
        texts = {
            name: "?" if value is None else human_bytes(value)
            for name, value in self.to_dict().items()
        }
        rows = (f"  {name:<10} {text:>12}" for name, text in texts.items())
        return "\n".join(["memrt.types.MemoryStats:", *rows])


_UNKNOWN = 2**64 - 1
_FIELDS = tuple(field.name for field in fields(MemoryStats))
_values = attrgetter(*_FIELDS)


@public("memrt.debug")
def memory_stats() -> MemoryStats:
    """Return the memory behind all blocks: requested and allocated bytes, pages and addresses.

    Returns
    -------
    memrt.types.MemoryStats
        The figures now.

    Notes
    -----
    Blocks of memrt's own heap count with their size class and pages. Blocks of other allocators
    count as requested from these allocators. The call asks the system for the pages of each
    mapping, and takes about a millisecond for each GiB.

    Threads: the figures are exact when no other thread is inside memrt. Otherwise each figure may
    be off by the work of other threads during the call; the order of the figures always holds.

    Examples
    --------
    >>> import memrt
    >>> before = memrt.debug.memory_stats()
    >>> buffers = [memrt.alloc(1100) for _ in range(1000)]
    >>> now = memrt.debug.memory_stats()
    >>> now.requested - before.requested
    1100000
    """
    figures: list[Any] = [*_memrt.memory_stats()]
    if figures[-1] == _UNKNOWN:
        figures[-1] = None
    return MemoryStats(*figures)
