"""Find the kind of content of all memory of this process."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from memrt import _memrt
from memrt._process.malloc import MallocFigures, block_size, choose_blocks, claim_arenas
from memrt._process.pieces import Kind, Pieces
from memrt._process.python_heap import (
    POOL,
    POOL_HEAD_BYTES,
    claim_mimalloc,
    is_pool,
    join_pools,
    uses_mimalloc,
)
from memrt._process.smaps import Mapping, Memory
from memrt._process.stacks import claim_stacks

_USES = {1: Kind.BLOCKS, 2: Kind.SPANS, 3: Kind.CACHED, 4: Kind.RECORDS}  # memrt_mapping_use_t

# Beginnings of names of mappings. Newer versions of glibc and Python name their mappings.
_NAMES = {
    "/dev/shm/": Kind.SHARED,
    "/dev/zero": Kind.SHARED,
    "/memfd:": Kind.SHARED,
    "/SYSV": Kind.SHARED,
    "[anon_shmem:": Kind.SHARED,
    "/": Kind.FILE,
    "[heap]": Kind.MALLOC_ARENA,
    "[anon: glibc: malloc arena]": Kind.MALLOC_ARENA,
    "[anon: glibc: malloc]": Kind.MALLOC_BLOCK,
    "[anon: glibc: pthread stack": Kind.STACK,
    "[anon:cpython:": Kind.PYTHON,
    "[stack": Kind.STACK,
    "[v": Kind.CODE,  # [vdso] and [vvar]: code of the kernel, with data
}


def divide_by_kind(mappings: list[Mapping], malloc: MallocFigures | str, memory: Memory) -> Pieces:
    """Return the memory of this process in pieces with one kind of content each."""
    code = code_inodes(mappings)
    pieces = Pieces([(each, kind_of(each, code, malloc)) for each in mappings])
    for address, size, use in _memrt.mappings():
        pieces.claim(address, address + size, _USES[use])
    for start, end in _memrt.segments():
        pieces.claim(start, end, Kind.CODE)
    if isinstance(malloc, MallocFigures):
        claim_arenas(pieces, memory)
    claim_stacks(pieces, memory)
    _claim_blocks_and_pools(pieces, malloc, memory)
    if uses_mimalloc():
        claim_mimalloc(pieces)
    return pieces


def code_inodes(mappings: list[Mapping]) -> set[int]:
    """Return the inodes of programs and libraries: of files with an executable mapping."""
    return {each.inode for each in mappings if each.inode != 0 and "x" in each.access}


def kind_of(mapping: Mapping, code: set[int], malloc: MallocFigures | str) -> Kind:
    """Return the kind of a mapping by its access and name.

    Parameters
    ----------
    code : set of int
        Inodes of programs and libraries.
    malloc : MallocFigures or str
        Figures of malloc. Without figures, the kind of memory that malloc maps is not known.
    """
    if "x" in mapping.access or mapping.inode in code:
        return Kind.CODE
    kinds = (kind for name, kind in _NAMES.items() if mapping.name.startswith(name))
    kind = next(kinds, Kind.UNKNOWN)
    is_of_malloc = kind in (Kind.MALLOC_ARENA, Kind.MALLOC_BLOCK)
    return Kind.UNKNOWN if is_of_malloc and isinstance(malloc, str) else kind


def _claim_blocks_and_pools(pieces: Pieces, malloc: MallocFigures | str, memory: Memory) -> None:
    """Find large blocks of malloc and pools of Python, which begin with heads."""
    blocks: list[tuple[int, int]] = []
    pools: list[int] = []
    for start, end in pieces.unknown_ranges():
        for address, size in _heads(start, end, memory):
            if size == POOL and address % POOL == 0:
                pools.append(address)
            else:
                blocks.append((address, size))
    if isinstance(malloc, MallocFigures):
        for address, size in choose_blocks(blocks, malloc):
            pieces.claim(address, address + size, Kind.MALLOC_BLOCK)
    for start, end in join_pools(pools):
        pieces.claim(start, end, Kind.PYTHON)


def _heads(start: int, end: int, memory: Memory) -> Iterator[tuple[int, int]]:
    """Return address and bytes of the blocks and pools in a range."""
    pages = memory.present_pages(start, end)
    at = 0
    while at < len(pages):
        page = pages[at]
        head = memory.read(page, POOL_HEAD_BYTES)
        size = _size_by_head(page, head) if len(head) == POOL_HEAD_BYTES else 0
        if 0 < size <= end - page:
            yield page, size
            at = bisect_left(pages, page + size, at + 1)  # behind the block or pool
        else:
            at += 1


def _size_by_head(page: int, head: bytes) -> int:
    return POOL if page % POOL == 0 and is_pool(head) else block_size(head)
