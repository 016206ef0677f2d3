"""Tracking and the list of live buffers."""

import threading
import time

import memrt
import numpy as np
import pytest
from atonce import threads_repeat
from memrt import _memrt

COARSE = 6  # CLOCK_MONOTONIC_COARSE, the clock of allocation times


def listed(**wanted):
    return [b for b in memrt.debug.live() if all(getattr(b, k) == v for k, v in wanted.items())]


def test_live_lists_tracked_buffers_with_their_details():
    policy = memrt.Policy(name="tracked")
    with memrt.debug.tracking():
        begin = time.clock_gettime(COARSE)
        mi = memrt.alloc(12345, name="mine", policy=policy)
        (buffer,) = listed(name="mine")
        elapsed = time.clock_gettime(time.CLOCK_MONOTONIC) - begin
    assert (buffer.nbytes, buffer.address, buffer.policy) == (12345, mi.address, "tracked")
    assert (buffer.refcount, buffer.kind) == (1, "inline")
    assert 0 <= buffer.age <= elapsed
    assert buffer.thread == threading.get_native_id()


def test_live_lists_numpy_arrays():
    with memrt.debug.tracking(), memrt.Policy(name="numpys"):
        a = np.ones(1000)
        (buffer,) = listed(policy="numpys")
    assert (buffer.nbytes, buffer.address, buffer.kind) == (8000, a.ctypes.data, "block")
    assert buffer.name is None


def test_live_shows_kind_of_adopted_and_resizable_buffers(probe):
    with memrt.debug.tracking():
        adopted = memrt.adopt(np.zeros(777, "u1"))
        resizable = memrt.meminfo(probe.make_resizable(333))
    assert [b.kind for b in listed(nbytes=777)] == ["adopted"]
    assert [b.kind for b in listed(nbytes=333)] == ["resizable"]  # without a row for the data
    assert memrt.meminfo(adopted).nbytes + resizable.nbytes == 1110


def test_live_omits_buffers_allocated_outside_tracking(untracked):
    before = memrt.alloc(1001)
    with memrt.debug.tracking():
        inside = memrt.alloc(1002)
    after = memrt.alloc(1003)
    assert [len(listed(nbytes=mi.nbytes)) for mi in (before, inside, after)] == [0, 1, 0]


def test_live_drops_a_buffer_freed_after_tracking():
    with memrt.debug.tracking():
        mi = memrt.alloc(1004)
    assert listed(nbytes=1004)
    del mi
    assert not listed(nbytes=1004)


def test_live_shows_new_size_and_address_after_resize():
    with memrt.debug.tracking(), memrt.Policy(name="growing"):
        a = np.zeros(10, "u1")
        a.resize(1_000_000, refcheck=False)
        (buffer,) = listed(policy="growing")
    assert (buffer.nbytes, buffer.address) == (1_000_000, a.ctypes.data)


def test_live_is_in_allocation_order():
    with memrt.debug.tracking():
        kept = [memrt.alloc(2000 + i) for i in range(20)]
    sizes = [b.nbytes for b in memrt.debug.live() if 2000 <= b.nbytes < 2020]
    assert sizes == [mi.nbytes for mi in kept]
    ids = [b.id for b in memrt.debug.live()]
    assert ids == sorted(ids)


def test_tracking_blocks_nest(untracked):
    outer = memrt.debug.tracking()
    assert not _memrt.tracking_enabled()
    with outer:
        with outer, memrt.debug.tracking():
            assert _memrt.tracking_enabled()
        assert _memrt.tracking_enabled()
    assert not _memrt.tracking_enabled()


def test_live_shows_current_refcount_and_name(probe):
    with memrt.debug.tracking():
        mi = memrt.alloc(1005)
    capsules = [mi.__memrt_meminfo__() for _ in range(3)]
    mi.name = "renamed"
    (buffer,) = listed(nbytes=1005)
    assert (buffer.refcount, buffer.name) == (1 + len(capsules), "renamed")


def test_live_is_safe_while_other_threads_allocate():
    with memrt.debug.tracking(), threads_repeat(lambda: memrt.alloc(100), 2):
        for _ in range(200):
            assert all(b.nbytes == 100 for b in memrt.debug.live())
    assert memrt.debug.live() == []


LISTS = """
import mmap, memrt
memrt.debug.tracking().__enter__()
kept = [memrt.alloc(8) for _ in range(2000)]
def resident_after(times):
    for _ in range(times):
        memrt.debug.live()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE
before = resident_after(5)
print(resident_after(40) - before)
"""


def test_lists_of_live_buffers_leave_resident_memory_flat(libc_malloc, run_python):
    grown = int(run_python(LISTS).stdout)
    assert grown < 2**22  # 40 lists of 2,000 rows in C take more than 10 MiB


@pytest.mark.parametrize("nbytes", [1, 40, 1000, 100_000, 5_000_000])
def test_find_leads_from_inner_addresses_to_the_buffer(libc_malloc, nbytes):
    policy = memrt.Policy(name="found")
    with memrt.scope("outer"), memrt.scope("inner"):
        array = memrt.empty(nbytes, "u1", policy=policy)
    start = array.ctypes.data
    for offset in (0, nbytes // 2, nbytes - 1):
        found = memrt.debug.find(start + offset)
        assert found == memrt.types.Location(
            start, nbytes, offset, found.id, "found", "outer/inner"
        )
    outside = memrt.debug.find(start + nbytes)
    assert outside is None or outside.address != start


def test_find_shows_the_serial_number_of_the_live_list():
    array = np.zeros(10)
    mi = memrt.wrap(array.ctypes.data, 80, owner=array, name="foreign")
    (row,) = listed(name="foreign")
    found = memrt.debug.find(np.int64(mi.address + 79))
    assert (found.id, found.offset, found.policy, found.scope) == (row.id, 79, "default", None)
    del mi, row


def test_find_refuses_other_arguments_and_foreign_memory():
    array = np.zeros(10)
    assert memrt.debug.find(array.ctypes.data) is None
    assert memrt.debug.find(2**64 - 1) is None
    with pytest.raises(TypeError, match="integer"):
        memrt.debug.find("0x10")
    with pytest.raises(ValueError, match="address must"):
        memrt.debug.find(-1)
    with pytest.raises(ValueError, match="address must fit the address space"):
        memrt.debug.find(2**64)
