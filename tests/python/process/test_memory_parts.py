"""Recognition of the parts of a process's memory, without a program."""

from __future__ import annotations

import dataclasses
import errno
import os
import struct
import subprocess
import sys

import memrt
import numpy as np
import pytest
from gil import CAN_LACK_GIL
from memrt._process import account as accounts
from memrt._process import kinds, malloc, pieces, python_heap, smaps, stacks
from memrt._process.malloc import MallocFigures
from memrt._process.pieces import Kind, Pieces
from memrt._process.smaps import PAGE, Mapping, Memory
from memrt._stats.memory import memory_stats

FIGURES = MallocFigures(arenas=0, used=0, free=0, mapped_blocks=2, mapped=12 * PAGE)
MAP = """\
7f0000000000-7f0000004000 r-xp 00000000 fe:00 77                         /lib/a name.so
Size:                 16 kB
Rss:                  12 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
7f0000004000-7f0000008000 rw-p 00000000 00:00 0
Size:                 16 kB
Rss:                   8 kB
Swap:                  4 kB
"""


class FakeMemory(Memory):
    """Memory with contents by address; all pages are in memory, unless `pages` is False."""

    def __init__(self, contents=None, pages=True):
        self.contents, self.pages = contents or {}, pages

    def __exit__(self, *unused):
        pass

    def read(self, address, size):
        return self.contents.get(address, b"").ljust(size, b"\0")

    def present(self, start, end):
        return smaps.np.ones((end - start) // PAGE, bool) if self.pages else None


def anonymous(start, end, access="rw-p", name="", resident=None):
    size = end - start
    return Mapping(start, end, access, 0, name, size if resident is None else resident, 0)


def unknown(*mappings):
    return Pieces([(each, Kind.UNKNOWN) for each in mappings])


def found(divided, memory=None):
    kinds = divided.residents(memory or FakeMemory())
    return {kind: size for kind, size in kinds.items() if size}


def test_map_is_read_with_names_and_swap(tmp_path):
    path = tmp_path / "smaps"
    path.write_text(MAP)
    code, data = smaps.read_mappings(str(path))
    assert code == (0x7F0000000000, 0x7F0000004000, "r-xp", 77, "/lib/a name.so", 12288, 0)
    assert (data.name, data.resident, data.swapped, data.is_private) == ("", 8192, 4096, True)
    path.write_text("")
    assert smaps.read_mappings(str(path)) == []


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EACCES])
def test_unreadable_map_raises_an_error_with_its_name(monkeypatch, code):
    def refuse(path, *unused, **options):
        raise OSError(code, os.strerror(code), path)

    monkeypatch.setattr(smaps, "open", refuse, raising=False)
    with pytest.raises(OSError, match="/proc/self/smaps") as caught:
        memrt.debug.process_memory()
    assert caught.value.errno == code
    assert caught.value.filename == "/proc/self/smaps"


def test_page_in_swap_space_is_used_and_not_present(monkeypatch):
    present, swapped = 1 << 63, 1 << 62
    entries = struct.pack("=4Q", present | 5, swapped | 5, 0, 1 << 55)
    monkeypatch.setattr(smaps.os, "pread", lambda *unused: entries)
    with Memory() as memory:
        assert memory.present(0, 4 * PAGE).tolist() == [True, False, False, False]
        assert memory.used(0, 4 * PAGE).tolist() == [True, True, False, False]


def test_memory_that_cannot_be_read_gives_nothing(monkeypatch):
    with Memory() as memory:
        assert memory.read(0, 8) == b""
        assert memory.read(1 << 70, 8) == b""
        assert memory.present(1 << 60, (1 << 60) + PAGE) is None
    monkeypatch.setattr(smaps.os, "open", lambda *unused: (_ for _ in ()).throw(OSError()))
    with Memory() as memory:
        assert memory.read(id(memory), 8) == b""
        assert memory.present(0, PAGE) is None
        assert memory.used(0, PAGE) is None
        assert memory.present_pages(0, PAGE) == []


def test_account_without_pages_divides_in_proportion(libc_malloc, monkeypatch):
    monkeypatch.setattr(smaps, "_open", lambda path: -1)
    memory = memrt.debug.process_memory()
    assert sum(part.resident for part in memory.parts().values()) == memory.resident
    divided = unknown(anonymous(0, 8 * PAGE, resident=4 * PAGE))
    divided.claim(0, 2 * PAGE, Kind.PYTHON)
    assert found(divided, FakeMemory(pages=False)) == {
        Kind.PYTHON: PAGE,
        Kind.UNKNOWN: 3 * PAGE,
    }


class VastMemory(FakeMemory):
    """Memory whose pages are known for ranges of at most 8 pages."""

    def present(self, start, end):
        return super().present(start, end) if end - start <= 8 * PAGE else None


def test_pieces_without_known_pages_have_the_rest_of_a_mapping():
    divided = unknown(anonymous(0, 40 * PAGE, resident=10 * PAGE))
    divided.claim(18 * PAGE, 22 * PAGE, Kind.PYTHON)
    divided.claim(22 * PAGE, 40 * PAGE, Kind.STACK)
    assert found(divided, VastMemory()) == {
        Kind.PYTHON: 4 * PAGE,
        Kind.STACK: 3 * PAGE,
        Kind.UNKNOWN: 3 * PAGE,
    }


RESERVED = """
import ctypes, resource, memrt
TIB = 1 << 40
library = ctypes.CDLL(None)
library.mmap.restype = ctypes.c_void_p
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
PRIVATE, NOTHING, READ_AND_WRITE = 0x4022, 0, 3  # anonymous memory that needs no commitment
reserved = library.mmap(None, 8 * TIB, NOTHING, PRIVATE, -1, 0)
used = library.mmap(None, 8 * TIB, READ_AND_WRITE, PRIVATE, -1, 0)
assert None not in (reserved, used) and 2**64 - 1 not in (reserved, used)
ctypes.memset(used, 1, 1 << 20)
memory = memrt.debug.process_memory()
assert sum(part.resident for part in memory.parts().values()) == memory.resident
assert memory.rest.resident >= 1 << 20
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - memory.resident)
"""


def test_reserved_address_space_costs_no_memory(libc_malloc, run_python):
    most = 400 if CAN_LACK_GIL else 200  # mimalloc, Python's allocator there, keeps freed pages
    assert int(run_python(RESERVED).stdout) < most << 20  # all entries of the pages: 32 GiB


def test_claim_splits_pieces_and_keeps_known_kinds():
    divided = unknown(anonymous(0, 4 * PAGE), anonymous(4 * PAGE, 8 * PAGE))
    divided.claim(PAGE, 6 * PAGE + 1, Kind.PYTHON)
    divided.claim(0, 8 * PAGE, Kind.STACK)
    divided.claim(9 * PAGE, 10 * PAGE, Kind.STACK)
    assert found(divided) == {Kind.PYTHON: 6 * PAGE, Kind.STACK: 2 * PAGE}
    assert divided.unknown() == []
    assert divided.find_unknown(0) is None


def test_shares_add_up_to_the_resident_bytes():
    assert pieces._scaled([1, 1, 1], 100) == [34, 33, 33]
    assert pieces._scaled([0, 0], 5) == [5, 0]
    assert pieces._scaled([3, 5], 16) == [6, 10]


def block_head(size, flags=2, before=0):
    return struct.pack("=2Q", before, size | flags).ljust(48, b"\0")


def test_large_block_is_found_across_two_mappings():
    start = 1 << 40
    mappings = [anonymous(start, start + PAGE), anonymous(start + PAGE, start + 8 * PAGE)]
    divided = unknown(*mappings)
    memory = FakeMemory({start: block_head(8 * PAGE)})
    kinds._claim_blocks_and_pools(divided, FIGURES, memory)
    assert found(divided) == {Kind.MALLOC_BLOCK: 8 * PAGE}
    divided = unknown(*mappings)
    kinds._claim_blocks_and_pools(divided, "no figures", memory)
    assert found(divided) == {Kind.UNKNOWN: 8 * PAGE}


def test_head_of_a_block_needs_flag_and_whole_pages():
    assert malloc.block_size(block_head(8 * PAGE)) == 8 * PAGE
    assert malloc.block_size(block_head(8 * PAGE - 16)) == 8 * PAGE  # glibc 2.43
    assert malloc.block_size(block_head(8 * PAGE, flags=0)) == 0
    assert malloc.block_size(block_head(8 * PAGE + 16)) == 0
    assert malloc.block_size(block_head(8 * PAGE, before=1)) == 0


def test_blocks_beyond_the_figures_are_not_taken():
    found = [(1, 8 * PAGE), (2, 4 * PAGE), (3, 16 * PAGE), (4, PAGE)]
    assert malloc.choose_blocks(found, FIGURES) == [(1, 8 * PAGE), (2, 4 * PAGE)]


def test_heaps_of_an_arena_are_found_by_their_heads():
    first, second = 1 << 40, (1 << 40) + malloc._HEAP
    size = 33 * PAGE
    memory = FakeMemory(
        {
            first: struct.pack("=4Q", first + 48, 0, size, size),
            second: struct.pack("=4Q", first + 48, first, PAGE, 2 * PAGE),
        }
    )
    divided = unknown(anonymous(first, first + size), anonymous(second, second + 4 * PAGE))
    malloc.claim_arenas(divided, memory)
    assert found(divided) == {Kind.MALLOC_ARENA: size + 2 * PAGE, Kind.UNKNOWN: 2 * PAGE}


@pytest.mark.parametrize(
    "words",
    [
        (0, 0, PAGE, PAGE),  # no arena
        ((1 << 40) + 4096, 0, PAGE, PAGE),  # arena not behind the head
        ((1 << 40) + 48, 0, PAGE, PAGE + 1),  # not whole pages
        ((1 << 40) + 48, 0, 2 * PAGE, PAGE),  # larger than its memory
        ((1 << 40) + 48, 8, PAGE, PAGE),  # no heap before
    ],
)
def test_other_memory_at_64_mib_is_no_heap(words):
    memory = FakeMemory({1 << 40: struct.pack("=4Q", *words)})
    assert malloc._heap_size(1 << 40, memory) == 0


def pool_head(step, used, offset, last):
    return struct.pack("=4Q4I", used, 0, 0, 0, 7, step, offset, last)


def test_pool_is_recognised_by_its_offsets():
    head = python_heap.POOL_HEAD_BYTES
    assert python_heap.is_pool(pool_head(1, 3, head + 64, python_heap.POOL - 32))
    assert not python_heap.is_pool(pool_head(1, 3, head + 60, python_heap.POOL - 32))
    assert not python_heap.is_pool(pool_head(1, 3, head + 64, python_heap.POOL - 16))
    assert not python_heap.is_pool(pool_head(1, 9999, head + 64, python_heap.POOL - 32))
    assert not python_heap.is_pool(bytes(head))


def test_pools_of_one_arena_make_one_range():
    pool, arena = python_heap.POOL, python_heap.ARENA
    assert python_heap.join_pools([0, 4 * pool, 5 * pool + arena]) == [
        (0, 5 * pool),
        (5 * pool + arena, 6 * pool + arena),
    ]


def test_memory_with_objects_belongs_to_mimalloc(monkeypatch):
    kept = object()
    start = id(kept) // PAGE * PAGE
    monkeypatch.setattr(python_heap.gc, "get_objects", lambda: [kept])
    divided = unknown(anonymous(PAGE, 2 * PAGE), anonymous(start, start + 4 * PAGE))
    python_heap.claim_mimalloc(divided)
    assert found(divided) == {Kind.PYTHON: 4 * PAGE, Kind.UNKNOWN: PAGE}


def thread_record(top):
    """Return the last page of a stack by its address, with the record of the thread."""
    record = top - 2304
    contents = bytearray(PAGE)
    at = record % PAGE
    contents[at : at + 24] = struct.pack("=3Q", record, 5, record)
    return {record - at: bytes(contents)}


def test_stack_ends_with_the_record_of_its_thread(monkeypatch):
    guard, top = 1 << 40, (1 << 40) + 9 * PAGE
    memory = FakeMemory(thread_record(top))
    monkeypatch.setattr(stacks, "_stack_addresses", lambda: iter(()))
    divided = unknown(anonymous(guard, guard + PAGE, "---p", resident=0),
                      anonymous(guard + PAGE, top + 5 * PAGE))  # fmt: skip
    stacks.claim_stacks(divided, memory)
    assert found(divided) == {Kind.STACK: 8 * PAGE, Kind.UNKNOWN: 5 * PAGE}


def test_stacks_of_several_threads_in_one_mapping_are_found(monkeypatch):
    start = 1 << 40
    tops = [start + pages * PAGE for pages in (8, 16, 24)]
    pointers = [top - 3 * PAGE for top in tops]
    monkeypatch.setattr(stacks, "_stack_addresses", lambda: reversed(pointers))
    memory = FakeMemory({page: text for top in tops for page, text in thread_record(top).items()})
    divided = unknown(anonymous(start, tops[-1] + 5 * PAGE))
    stacks.claim_stacks(divided, memory)
    assert found(divided) == {Kind.STACK: 24 * PAGE, Kind.UNKNOWN: 5 * PAGE}


def test_memory_above_a_gap_is_no_stack_without_a_record(monkeypatch):
    guard = 1 << 40
    monkeypatch.setattr(stacks, "_stack_addresses", lambda: iter(()))
    mappings = (anonymous(guard, guard + PAGE, "---p", resident=0),
                anonymous(guard + PAGE, guard + 9 * PAGE))  # fmt: skip
    divided = unknown(*mappings)
    stacks.claim_stacks(divided, FakeMemory())
    assert found(divided) == {Kind.UNKNOWN: 8 * PAGE}
    monkeypatch.setattr(stacks, "_default_size", lambda: 9 * PAGE)
    stacks.claim_stacks(divided, FakeMemory())
    assert found(divided) == {Kind.STACK: 8 * PAGE}


def test_memory_with_a_stack_pointer_is_a_stack(monkeypatch):
    start = 1 << 40
    monkeypatch.setattr(stacks, "_stack_addresses", lambda: iter((start + PAGE,)))
    divided = unknown(anonymous(start, start + 9 * PAGE))
    stacks.claim_stacks(divided, FakeMemory())
    assert found(divided) == {Kind.STACK: 9 * PAGE}


@pytest.mark.parametrize(
    ("name", "access", "inode", "kind"),
    [
        ("/dev/shm/block", "rw-s", 9, Kind.SHARED),
        ("/memfd:block (deleted)", "rw-s", 9, Kind.SHARED),
        ("/SYSV00000000 (deleted)", "rw-s", 9, Kind.SHARED),
        ("/dev/zero (deleted)", "rw-s", 9, Kind.SHARED),
        ("/data/table", "r--p", 9, Kind.FILE),
        ("/lib/library.so", "r--p", 5, Kind.CODE),
        ("", "r-xp", 0, Kind.CODE),
        ("[vdso]", "r-xp", 0, Kind.CODE),
        ("[vvar]", "r--p", 0, Kind.CODE),
        ("[stack]", "rw-p", 0, Kind.STACK),
        ("[heap]", "rw-p", 0, Kind.MALLOC_ARENA),
        ("[anon: glibc: malloc arena]", "rw-p", 0, Kind.MALLOC_ARENA),
        ("[anon: glibc: malloc]", "rw-p", 0, Kind.MALLOC_BLOCK),
        ("[anon: glibc: pthread stack: 7]", "rw-p", 0, Kind.STACK),
        ("[anon:cpython:pymalloc]", "rw-p", 0, Kind.PYTHON),
        ("[anon:other]", "rw-p", 0, Kind.UNKNOWN),
        ("", "rw-p", 0, Kind.UNKNOWN),
    ],
)
def test_name_and_access_give_the_kind(name, access, inode, kind):
    mapping = Mapping(0, PAGE, access, inode, name, PAGE, 0)
    assert kinds.kind_of(mapping, {5}, FIGURES) is kind


def test_account_without_figures_of_malloc_gives_the_reason(monkeypatch):
    monkeypatch.setattr(accounts, "read_malloc", lambda: "the C library is not glibc")
    memory = memrt.debug.process_memory()
    assert memory.malloc_used.resident is memory.malloc_free.mapped is None
    assert memory.malloc_used.reason == "the C library is not glibc"
    assert sum(part.resident or 0 for part in memory.parts().values()) == memory.resident
    assert memory.to_dict()["parts"]["malloc_free"] == {
        "resident": None,
        "mapped": None,
        "reason": "the C library is not glibc",
    }
    assert "malloc_used            ?                 the C library is not glibc" in repr(memory)


def test_account_shows_swapped_bytes(monkeypatch):
    swapped = Mapping(0, PAGE, "rw-p", 0, "[heap]", 0, 3 * 1024 * 1024)
    monkeypatch.setattr(accounts, "read_mappings", lambda: [swapped])
    memory = memrt.debug.process_memory()
    assert memory.swapped == 3 * 1024 * 1024
    assert repr(memory).endswith(", 3.0 MiB in swap space")


@pytest.mark.parametrize(("got", "shown"), [(6 << 20, "6.0 MiB"), (None, "?")])
def test_account_shows_huge_pages_if_memrt_asks_for_any(monkeypatch, got, shown):
    figures = dataclasses.replace(memory_stats(), huge_asked=8 << 20, huge_got=got)
    monkeypatch.setattr(accounts, "memory_stats", lambda: figures)
    memory = memrt.debug.process_memory()
    assert (memory.huge_asked, memory.huge_got) == (8 << 20, got)
    assert f", huge pages {shown} of 8.0 MiB" in repr(memory).splitlines()[-1]
    assert f", huge pages {shown} of 8.0 MiB" in memory._repr_html_()
    monkeypatch.setattr(
        accounts, "memory_stats", lambda: dataclasses.replace(figures, huge_asked=0, huge_got=0)
    )
    none = memrt.debug.process_memory()
    assert "huge" not in repr(none)
    assert (none.to_dict()["huge_asked"], none.to_dict()["huge_got"]) == (0, 0)


def test_account_has_the_huge_pages_of_an_array():
    before = memrt.debug.process_memory()
    with memrt.Policy(pages="thp"):
        array = np.ones(8 << 20, "u1")
    memory, figures = memrt.debug.process_memory(), memory_stats()
    assert memory.huge_asked - before.huge_asked >= array.nbytes
    assert (memory.huge_asked, memory.huge_got) == (figures.huge_asked, figures.huge_got)


PRELOADED = """
#include <stddef.h>
void *__libc_malloc(size_t);
void *malloc(size_t size) { return __libc_malloc(size); }
"""


def test_malloc_of_a_program_with_a_fixed_address_is_known(libc_malloc, run_program, fixed_program):
    code = "import memrt; print(memrt.debug.process_memory().malloc_used.reason)"
    packages = [path for path in sys.path if path.endswith("-packages")]
    paths = {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": os.pathsep.join(packages)}
    assert run_program(fixed_program, "-c", code, env=paths).stdout == "\n"


def test_another_malloc_is_named(libc_malloc, run_python, tmp_path):
    (tmp_path / "other.c").write_text(PRELOADED)
    library = str(tmp_path / "other.so")
    command = ["cc", "-shared", "-fPIC", str(tmp_path / "other.c"), "-o", library]
    subprocess.run(command, check=True)
    code = "import memrt; print(memrt.debug.process_memory().malloc_used.reason)"
    assert run_python(code).stdout == "\n"
    preloaded = run_python(code, env={"LD_PRELOAD": library})
    assert preloaded.stdout == f"malloc is replaced by {library}\n"
