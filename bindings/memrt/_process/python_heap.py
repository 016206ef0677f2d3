"""Find the memory of Python's own allocator: pools of pymalloc, or the arenas of mimalloc."""

from __future__ import annotations

import gc
import itertools
import struct
import sys

from memrt._process.pieces import Kind, Pieces

POOL = 16 << 10  # bytes, and alignment, of a pool
ARENA = 1 << 20
_POOL_HEAD = struct.Struct("=4Q4I")
POOL_HEAD_BYTES = _POOL_HEAD.size
_STEP = 16  # bytes between two sizes of blocks
_SIZES = 32
_OBJECTS = 10_000  # objects by which to find the arenas of mimalloc


def is_pool(head: bytes) -> bool:
    """Return whether memory begins like a pool of pymalloc.

    The head has the number of blocks in use, the first free block, two neighbours, the arena, the
    size class, and the offsets of the next and the last block. The last offset follows from the
    class.
    """
    words: tuple[int, ...] = _POOL_HEAD.unpack(head)
    used, _, _, _, _, step, offset, last = words
    size = (step + 1) * _STEP
    room = POOL - _POOL_HEAD.size
    is_class = step < _SIZES and last == POOL - size
    is_offset = size <= offset - _POOL_HEAD.size <= room and (offset - _POOL_HEAD.size) % size == 0
    return is_class and is_offset and used <= room // size


def join_pools(pools: list[int]) -> list[tuple[int, int]]:
    """Return ranges with all pools at the given addresses, in order.

    Pools less than an arena apart make one range: between them lie pools that were never used. Such
    pools are in memory only within huge pages.
    """
    ranges: list[tuple[int, int]] = []
    for pool in pools:
        if ranges and pool - ranges[-1][1] < ARENA:
            ranges[-1] = (ranges[-1][0], pool + POOL)
        else:
            ranges.append((pool, pool + POOL))
    return ranges


def uses_mimalloc() -> bool:
    """Return whether Python's own allocator is mimalloc, as in builds without the GIL."""
    return "t" in sys.abiflags


def claim_mimalloc(pieces: Pieces) -> None:
    """Find the arenas of mimalloc: the anonymous memory that contains Python objects.

    mimalloc reserves arenas of up to 1 GiB, so that few objects lead to all arenas.
    """
    objects = itertools.chain(sys.modules.values(), gc.get_objects()[-_OBJECTS:])
    for address in {id(each) for each in objects}:
        piece = pieces.find_unknown(address)
        if piece is not None and piece.mapping.is_private:
            pieces.claim(piece.start, piece.end, Kind.PYTHON)
