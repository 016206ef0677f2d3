"""Find the stacks of threads, also of ended threads whose stacks the C library keeps."""

from __future__ import annotations

import os
import resource
import struct
import threading
from collections.abc import Iterator

from memrt._process.pieces import Kind, Piece, Pieces
from memrt._process.smaps import PAGE, Memory

_DEFAULT = 8 << 20  # bytes of a stack without a limit of the system
_LINE = 64  # alignment of the record of a thread at the end of its stack
_WORDS = struct.Struct(f"={PAGE // 8}Q")


def claim_stacks(pieces: Pieces, memory: Memory) -> None:
    """Find the stacks above inaccessible memory, and the stacks of waiting threads.

    Since glibc 2.42, the inaccessible memory of a stack may be a part of the mapping, so that one
    mapping has several stacks.
    """
    addresses = sorted(_stack_addresses())
    for piece in pieces.unknown():
        end = piece.start
        for address in addresses:
            if end <= address < piece.end:
                end = _end_of_stack(end, piece.end, address, memory)
        if end == piece.start and _is_above_guard(pieces, piece):
            end = _end_of_stack(piece.start, piece.end, None, memory)
        pieces.claim(piece.start, end, Kind.STACK)


def _is_above_guard(pieces: Pieces, piece: Piece) -> bool:
    below = pieces.before(piece)
    return below is not None and below.mapping.access == "---p" and below.mapping.is_private


def _stack_addresses() -> Iterator[int]:
    """Return the stack pointers of all threads that wait in a system call."""
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/syscall", "rb", buffering=0) as file:
                words = file.readall().split()
        except OSError:  # the thread has ended, or the system does not tell
            continue
        if len(words) > 2:  # otherwise the thread runs
            yield int(words[-2], 16)


def _end_of_stack(start: int, end: int, pointer: int | None, memory: Memory) -> int:
    """Return the end of a stack, which may be in the middle of a range.

    The C library puts the record of the thread at the end of the stack. On x86-64, the record has
    its own address as its first and its third word. Elsewhere the size decides.

    Parameters
    ----------
    start, end : int
        The range.
    pointer : int or None
        Stack pointer of a thread in the range, if any.
    """
    size = _default_size()
    last = min(end, start + size) if pointer is None else end
    for page in memory.present_pages((pointer or start) // PAGE * PAGE, last):
        if _has_thread_record(memory.read(page, PAGE), page):
            return page + PAGE
    if pointer is not None or end - start in (size, size - PAGE):
        return min(end, start + size)
    return start  # no stack


def _has_thread_record(contents: bytes, page: int) -> bool:
    if len(contents) < PAGE:
        return False
    words = _WORDS.unpack(contents)
    return any(
        words[at] == page + at * 8 == words[at + 2] for at in range(0, len(words), _LINE // 8)
    )


def _default_size() -> int:
    """Return the bytes of a stack, with the inaccessible memory below."""
    chosen = threading.stack_size()
    limit, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return chosen or (_DEFAULT if limit == resource.RLIM_INFINITY else limit)
