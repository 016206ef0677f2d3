"""The account of the memory of this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from memrt._process.kinds import divide_by_kind
from memrt._process.malloc import MallocFigures, read_malloc
from memrt._process.pieces import Kind
from memrt._process.smaps import Memory, read_mappings, read_peak_resident
from memrt._stats.memory import memory_stats
from memrt._stats.snapshot import Stats, stats
from memrt._support.public import public
from memrt._support.units import human_bytes


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Part of the memory of a process: bytes in memory, and bytes mapped.

    Examples
    --------
    >>> import memrt
    >>> part = memrt.debug.process_memory().code
    >>> 0 < part.resident <= part.mapped
    True
    """

    resident: int | None
    """Bytes in memory. None: not known."""
    mapped: int | None
    """Bytes of addresses in use, in memory or not. None: not known."""
    reason: str = ""
    """Reason for unknown figures; empty for known figures."""

    def to_dict(self) -> dict[str, int | str | None]:
        """Return the fields by name.

        Returns
        -------
        dict
            Bytes in memory and mapped, and the reason for unknown figures.
        """
        known: dict[str, int | str | None] = {"resident": self.resident, "mapped": self.mapped}
        return {**known, "reason": self.reason} if self.reason else known


@public("memrt.types")
@dataclass(frozen=True, slots=True, repr=False)
class ProcessMemory:
    """Account of the memory of a process. The parts add up to the resident bytes.

    Examples
    --------
    >>> import memrt
    >>> memory = memrt.debug.process_memory()
    >>> sum(part.resident or 0 for part in memory.parts().values()) == memory.resident
    True
    """

    resident: int
    """Bytes in memory."""
    peak_resident: int
    """Most bytes in memory at once, since the start of the program."""
    peak_arrays: int
    """Most bytes of memrt's arrays at once, since start or reset: ``stats().peak``."""
    swapped: int
    """Bytes in swap space; not part of `resident`."""
    huge_asked: int
    """Bytes of huge pages for which memrt asks, as `MemoryStats.huge_asked`."""
    huge_got: int | None
    """Bytes of `huge_asked` in huge pages now, as `MemoryStats.huge_got`. None: not known."""
    arrays: MemoryPart
    """Live blocks of memrt, in memrt's own mappings."""
    cached: MemoryPart
    """Freed blocks that memrt keeps for reuse."""
    headers: MemoryPart
    """Headers and rounding of memrt's blocks, and memrt's tables."""
    malloc_used: MemoryPart
    """Blocks of the C library's malloc, in use."""
    malloc_free: MemoryPart
    """Memory that the C library's malloc holds for later requests."""
    python: MemoryPart
    """Python's own allocator: objects of up to 512 bytes; without the GIL, all objects."""
    stacks: MemoryPart
    """Stacks of threads."""
    files: MemoryPart
    """Mapped files."""
    shared: MemoryPart
    """Memory for sharing with other processes."""
    code: MemoryPart
    """Programs, libraries and compiled functions, with their static data."""
    rest: MemoryPart
    """Memory without an explanation."""

    def parts(self) -> dict[str, MemoryPart]:
        """Return the parts by name.

        Returns
        -------
        dict of str to MemoryPart
            The parts, in the order of the fields.
        """
        return dict(zip(_PARTS, _parts_of(self), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the account as numbers and texts, for example for JSON.

        Returns
        -------
        dict
            Totals by name, and the member `parts` with a dict for each part.
        """
        totals = dict(zip(_TOTALS, _totals_of(self), strict=True))
        return {**totals, "parts": {name: part.to_dict() for name, part in self.parts().items()}}

    def __repr__(self) -> str:
        rows = [_row(*row) for row in self._rows()]
        return "\n".join(["memrt.types.ProcessMemory:", *rows])

    def _repr_html_(self) -> str:
        """Return the rows of repr() as an HTML table, for notebooks."""
        cells = "".join(
            "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in self._rows()
        )
        return f"<table><caption>memrt.types.ProcessMemory</caption><tbody>{cells}</tbody></table>"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """Return name, resident bytes, mapped bytes if different, and meaning of each row."""
        rows = [
            (name, _amount(part.resident), _mapped(part), part.reason or MEANINGS[name])
            for name, part in self.parts().items()
            if part.resident != 0
        ]
        asked = f"of {human_bytes(self.huge_asked)}"
        huge = f", huge pages {_amount(self.huge_got)} {asked}" if self.huge_asked else ""
        swapped = f", {human_bytes(self.swapped)} in swap space" if self.swapped else ""
        peaks = (
            f"peak {human_bytes(self.peak_resident)}, "
            f"peak of arrays {human_bytes(self.peak_arrays)}{huge}{swapped}"
        )
        return [*rows, ("resident", human_bytes(self.resident), "", peaks)]


_TOTALS = ("resident", "peak_resident", "peak_arrays", "swapped", "huge_asked", "huge_got")
_PARTS = tuple(field.name for field in fields(ProcessMemory) if field.name not in _TOTALS)
_parts_of, _totals_of = attrgetter(*_PARTS), attrgetter(*_TOTALS)

MEANINGS = {
    "arrays": "live arrays of memrt",
    "cached": "freed arrays that memrt keeps for reuse",
    "headers": "headers, rounding and tables of memrt",
    "malloc_used": "malloc: in use",
    "malloc_free": "malloc: free, held for later requests",
    "python": "Python's own allocator, for small objects",
    "stacks": "stacks of threads",
    "files": "mapped files",
    "shared": "shared memory",
    "code": "programs and libraries",
    "rest": "not explained",
}
"""Meaning of each part, for tables."""


def _amount(count: int | None) -> str:
    return "?" if count is None else human_bytes(count)


def _mapped(part: MemoryPart) -> str:
    """Return the mapped bytes as text, if the text differs from the resident bytes."""
    same = part.mapped is None or human_bytes(part.mapped) == _amount(part.resident)
    return "" if same else f"of {_amount(part.mapped)}"


def _row(name: str, resident: str, mapped: str, meaning: str) -> str:
    return f"  {name:<12} {resident:>11}  {mapped:<14} {meaning}"


@public("memrt.debug")
def process_memory() -> ProcessMemory:
    """Return the account of the whole memory of this process: arrays, malloc, Python, code.

    Returns
    -------
    memrt.types.ProcessMemory
        Parts that add up to the resident memory of the process.

    Raises
    ------
    OSError
        A file of /proc cannot be read, for example in a sandbox; the error names the file.

    Notes
    -----
    The system reports the resident bytes of each mapping. The kind of a mapping comes from its
    name, from memrt, from the loader, or from its contents. The mappings of memrt, malloc and
    Python are often neighbours that look like one mapping to the system. The pages in memory
    divide such a mapping.

    Arrays of policies with other allocators, and small arrays with ``MEMRT_CACHE=0``,
    are blocks of malloc. Figures of malloc need glibc 2.33 or later.

    The call takes milliseconds, and about 0.25 s per GiB of small Python objects. Memory that other
    threads allocate or free meanwhile may be in the wrong part.

    Examples
    --------
    >>> import memrt
    >>> array = memrt.full(1_000_000, 1.0)
    >>> memory = memrt.debug.process_memory()
    >>> memory.arrays.resident >= array.nbytes
    True
    >>> memory.rest.resident < memory.resident / 20
    True
    """
    mappings = read_mappings()
    malloc = read_malloc()
    now = stats()
    behind = memory_stats()
    with Memory() as memory:
        pieces = divide_by_kind(mappings, malloc, memory)
        residents = pieces.residents(memory)
    sizes = pieces.sizes()
    resident = sum(each.resident for each in mappings)

    def whole(kind: Kind) -> MemoryPart:
        return MemoryPart(residents.get(kind, 0), sizes.get(kind, 0))

    return ProcessMemory(
        resident,
        max(read_peak_resident(), resident),
        now.peak,
        sum(each.swapped for each in mappings),
        behind.huge_asked,
        behind.huge_got,
        *_parts_of_memrt(whole, now),
        *_parts_of_malloc(whole, malloc),
        *map(whole, _OTHER_KINDS),
    )


_Whole = Callable[[Kind], MemoryPart]

# Kinds whose mappings belong to one part, in the order of the fields of ProcessMemory.
_OTHER_KINDS = (Kind.PYTHON, Kind.STACK, Kind.FILE, Kind.SHARED, Kind.CODE, Kind.UNKNOWN)


def _figures(part: MemoryPart) -> tuple[int, int]:
    return part.resident or 0, part.mapped or 0


def _parts_of_memrt(whole: _Whole, now: Stats) -> tuple[MemoryPart, MemoryPart, MemoryPart]:
    """Divide memrt's mappings into live arrays, cached blocks, and headers with tables.

    Cached smaller blocks are in memory. The rest of the resident bytes are live arrays, up to the
    live bytes.
    """
    kinds = (Kind.BLOCKS, Kind.SPANS, Kind.CACHED, Kind.RECORDS)
    large, spans, kept, records = (_figures(whole(kind)) for kind in kinds)
    small = min(max(now.cached - kept[1], 0), spans[0])
    resident, mapped = (large[i] + spans[i] - small for i in range(2))
    arrays = MemoryPart(min(now.live, resident), min(now.live, mapped))
    cached = MemoryPart(kept[0] + small, kept[1] + small)
    live_resident, live_mapped = _figures(arrays)
    headers = MemoryPart(records[0] + resident - live_resident, records[1] + mapped - live_mapped)
    return arrays, cached, headers


def _parts_of_malloc(whole: _Whole, malloc: MallocFigures | str) -> tuple[MemoryPart, MemoryPart]:
    """Divide the memory of malloc into blocks in use and free memory."""
    if isinstance(malloc, str):
        unknown = MemoryPart(None, None, malloc)
        return unknown, unknown
    arenas, _ = _figures(whole(Kind.MALLOC_ARENA))
    blocks, _ = _figures(whole(Kind.MALLOC_BLOCK))
    used = min(malloc.used, arenas)
    return (
        MemoryPart(used + blocks, malloc.used + malloc.mapped),
        MemoryPart(arenas - used, malloc.free),
    )
