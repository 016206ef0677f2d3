"""Find the memory of the C library's malloc: arenas, and blocks with a mapping of their own."""

from __future__ import annotations

import struct
from typing import NamedTuple

from memrt import _memrt
from memrt._process.pieces import Kind, Pieces
from memrt._process.smaps import PAGE, Memory

_HEAP = 64 << 20  # bytes, and alignment, of the heaps of which glibc makes further arenas
_HEAP_HEAD = struct.Struct("=4Q")  # arena, previous heap, size, accessible bytes
_ARENA_MOST = 256  # bytes from the beginning of a heap to its arena, at most
_BLOCK_HEAD = struct.Struct("=2Q")  # size of the block before, size with flags
_FLAGS, _IS_MAPPED = 7, 2


class MallocFigures(NamedTuple):
    """Figures of malloc, from ``mallinfo2``, for all arenas together."""

    arenas: int
    """Bytes of arenas."""
    used: int
    """Bytes in use in arenas."""
    free: int
    """Bytes free in arenas, held for later requests."""
    mapped_blocks: int
    """Blocks with a mapping of their own."""
    mapped: int
    """Bytes of these blocks."""


def read_malloc() -> MallocFigures | str:
    """Return the figures of malloc, or the reason for having none."""
    figures = _memrt.malloc_figures()
    return figures if isinstance(figures, str) else MallocFigures(*figures)


def claim_arenas(pieces: Pieces, memory: Memory) -> None:
    """Find the heaps of further arenas, at multiples of 64 MiB."""
    for piece in pieces.unknown():
        for heap in range(-piece.start // _HEAP * -_HEAP, piece.end, _HEAP):
            size = _heap_size(heap, memory)
            if 0 < size <= piece.end - heap:
                pieces.claim(heap, heap + size, Kind.MALLOC_ARENA)


def _heap_size(heap: int, memory: Memory) -> int:
    """Return the accessible bytes of the heap at an address, or 0 without a heap there.

    A heap begins with the address of its arena, which lies behind the beginning of the first heap
    of the arena. Every further heap has the address of the heap before.
    """
    head = memory.read(heap, _HEAP_HEAD.size)
    if len(head) < _HEAP_HEAD.size:
        return 0
    arena, previous, size, accessible = _HEAP_HEAD.unpack(head)
    first = arena // _HEAP * _HEAP
    is_chain = first == heap if previous == 0 else previous % _HEAP == 0 and first != heap
    is_sized = 0 < size <= accessible <= _HEAP and size % PAGE == accessible % PAGE == 0
    is_arena = _HEAP_HEAD.size <= arena - first < _ARENA_MOST
    return accessible if is_chain and is_sized and is_arena else 0


def block_size(head: bytes) -> int:
    """Return the bytes of a block with a mapping of its own by its head, or 0 for other memory."""
    before, size = _BLOCK_HEAD.unpack_from(head)
    size_alone: int = size & ~_FLAGS
    is_head = before == 0 and size & _FLAGS == _IS_MAPPED
    if is_head and size_alone % PAGE == PAGE - _BLOCK_HEAD.size:
        size_alone += _BLOCK_HEAD.size  # since glibc 2.43 the size leaves out the head
    return size_alone if is_head and size_alone % PAGE == 0 else 0


def choose_blocks(found: list[tuple[int, int]], figures: MallocFigures) -> list[tuple[int, int]]:
    """Return the found blocks that malloc can have, by number and bytes; the largest first.

    Parameters
    ----------
    found : list of tuple of int
        Address and bytes of memory that looks like a block.
    """
    chosen: list[tuple[int, int]] = []
    room = figures.mapped
    for address, size in sorted(found, key=lambda block: -block[1]):
        if len(chosen) < figures.mapped_blocks and size <= room:
            chosen.append((address, size))
            room -= size
    return chosen
