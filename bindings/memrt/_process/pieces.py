"""Divide the mappings of a process into pieces with one kind of content each."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from memrt._process.smaps import PAGE, Mapping, Memory


class Kind(Enum):
    """Content of a piece of memory."""

    BLOCKS = auto()
    """Large block of memrt, in use."""
    SPANS = auto()
    """Smaller blocks of memrt, in use and cached."""
    CACHED = auto()
    """Large block of memrt, freed and cached."""
    RECORDS = auto()
    """Tables of memrt."""
    MALLOC_ARENA = auto()
    """Arena of malloc, with blocks in use and free."""
    MALLOC_BLOCK = auto()
    """Large block of malloc, in use."""
    PYTHON = auto()
    """Arena of Python's own allocator."""
    STACK = auto()
    FILE = auto()
    """Mapped file without code."""
    SHARED = auto()
    """Memory shared with other processes, or for sharing."""
    CODE = auto()
    """Program, library, or code compiled at run time, with static data."""
    UNKNOWN = auto()


@dataclass(slots=True)
class Piece:
    """Range of addresses in one mapping, with one kind of content."""

    start: int
    end: int
    kind: Kind
    mapping: Mapping


class Pieces:
    """Pieces of all mappings, in the order of addresses."""

    def __init__(self, kinds: list[tuple[Mapping, Kind]]) -> None:
        self._pieces = [Piece(each.start, each.end, kind, each) for each, kind in kinds]

    def claim(self, start: int, end: int, kind: Kind) -> None:
        """Give a kind to the pages of a range whose kind is not known yet."""
        start, end = start // PAGE * PAGE, -(-end // PAGE) * PAGE
        at = max(bisect_right(self._pieces, start, key=_start) - 1, 0)
        while at < len(self._pieces) and self._pieces[at].start < end:
            piece = self._pieces[at]
            if piece.kind is Kind.UNKNOWN and piece.end > start:
                parts = _split(piece, max(start, piece.start), min(end, piece.end), kind)
                self._pieces[at : at + 1] = parts
                at += len(parts)
            else:
                at += 1

    def unknown(self) -> list[Piece]:
        """Return the pieces of private anonymous memory whose kind is not known yet."""
        return [
            piece
            for piece in self._pieces
            if piece.kind is Kind.UNKNOWN and piece.mapping.is_private and piece.mapping.resident
        ]

    def unknown_ranges(self) -> list[tuple[int, int]]:
        """Return the ranges of the pieces of :meth:`unknown`, with neighbours joined.

        A block may lie in several mappings, because NumPy advises huge pages for a part of a block.
        Ranges without a page in memory are left out.
        """
        ranges: list[list[int]] = []  # start, end, resident bytes of the mappings
        for piece in self.unknown():
            if not ranges or ranges[-1][1] != piece.start:
                ranges.append([piece.start, piece.end, 0])
            ranges[-1][1] = piece.end
            ranges[-1][2] += piece.mapping.resident
        return [(start, end) for start, end, resident in ranges if resident]

    def find_unknown(self, address: int) -> Piece | None:
        """Return the piece with an address, if the kind of the piece is not known yet."""
        at = bisect_right(self._pieces, address, key=_start) - 1
        piece = self._pieces[at] if at >= 0 else None
        if piece is None or piece.kind is not Kind.UNKNOWN or address >= piece.end:
            return None
        return piece

    def before(self, piece: Piece) -> Piece | None:
        """Return the piece that ends where a piece starts."""
        at = bisect_right(self._pieces, piece.start - 1, key=_start) - 1
        return self._pieces[at] if at >= 0 and self._pieces[at].end == piece.start else None

    def sizes(self) -> dict[Kind, int]:
        """Return the mapped bytes of each kind, without memory that cannot be accessed."""
        sizes: defaultdict[Kind, int] = defaultdict(int)
        for piece in self._pieces:
            if piece.mapping.access[0] != "-":
                sizes[piece.kind] += piece.end - piece.start
        return sizes

    def residents(self, memory: Memory) -> dict[Kind, int]:
        """Return the bytes in memory of each kind. The sum is the sum of all mappings."""
        residents: defaultdict[Kind, int] = defaultdict(int)
        for parts in self._by_mapping():
            for piece, resident in zip(parts, _divide(parts, memory), strict=True):
                residents[piece.kind] += resident
        return residents

    def _by_mapping(self) -> Iterator[list[Piece]]:
        parts: list[Piece] = []
        for piece in self._pieces:
            if parts and piece.mapping is not parts[0].mapping:
                yield parts
                parts = []
            parts.append(piece)
        if parts:
            yield parts


def _start(piece: Piece) -> int:
    return piece.start


def _split(piece: Piece, start: int, end: int, kind: Kind) -> list[Piece]:
    """Split a piece at two addresses. The memory between the addresses gets another kind."""
    bounds = [(piece.start, start, piece.kind), (start, end, kind), (end, piece.end, piece.kind)]
    return [Piece(*bound, piece.mapping) for bound in bounds if bound[0] < bound[1]]


def _divide(parts: list[Piece], memory: Memory) -> list[int]:
    """Divide the resident bytes of a mapping between its pieces, by their pages in memory."""
    resident = parts[0].mapping.resident
    if len(parts) == 1 or resident == 0:
        return [resident if part is parts[0] else 0 for part in parts]
    return _scaled(_weights(parts, resident, memory), resident)


def _weights(parts: list[Piece], resident: int, memory: Memory) -> list[int]:
    """Return the bytes of each piece in memory.

    Pieces whose pages are not known have the rest of the mapping, in proportion to their sizes.
    """
    present = [memory.present(part.start, part.end) for part in parts]
    known = [0 if pages is None else int(pages.sum()) * PAGE for pages in present]
    unknown = [
        part.end - part.start if pages is None else 0
        for part, pages in zip(parts, present, strict=True)
    ]
    share = max(resident - sum(known), 0) / max(sum(unknown), 1)
    return [have + int(size * share) for have, size in zip(known, unknown, strict=True)]


def _scaled(weights: list[int], total: int) -> list[int]:
    """Divide a total in proportion to weights. The largest share gets the rest after rounding.

    Pages that were only read, and are still zero, count as present, but not as resident. A page of
    another thread may also have changed since the sum was read.
    """
    whole = sum(weights)
    if whole == 0:
        return [total, *(0 for _ in weights[1:])]
    shares = [total * weight // whole for weight in weights]
    shares[shares.index(max(shares))] += total - sum(shares)
    return shares
