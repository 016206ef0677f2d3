"""Tracking and the list of live buffers."""

import threading
import time

import memrt
import numpy as np
from memrt import _memrt

COARSE = 6  # CLOCK_MONOTONIC_COARSE, by which births are told


def listed(**wanted):
    return [b for b in memrt.live() if all(getattr(b, k) == v for k, v in wanted.items())]


def test_buffers_born_while_tracking_are_listed_with_what_is_known_of_them():
    policy = memrt.Policy(name="tracked")
    with memrt.tracking():
        begin = time.clock_gettime(COARSE)
        mi = memrt.alloc(12345, name="mine", policy=policy)
        (buffer,) = listed(name="mine")
        elapsed = time.clock_gettime(time.CLOCK_MONOTONIC) - begin
    assert (buffer.size, buffer.address, buffer.policy) == (12345, mi.data, "tracked")
    assert (buffer.refcount, buffer.kind) == (1, "inline")
    assert 0 <= buffer.age <= elapsed
    assert buffer.thread == threading.get_native_id()


def test_numpys_arrays_are_listed_too():
    with memrt.tracking(), memrt.Policy(name="numpys"):
        a = np.ones(1000)
        (buffer,) = listed(policy="numpys")
    assert (buffer.size, buffer.address, buffer.kind) == (8000, a.ctypes.data, "block")
    assert buffer.name is None


def test_adopted_and_resizable_buffers_are_listed_with_their_kind(probe):
    with memrt.tracking():
        adopted = memrt.adopt(np.zeros(777, "u1"))
        resizable = memrt.meminfo(probe.make_resizable(333))
    assert [b.kind for b in listed(size=777)] == ["adopted"]
    assert [b.kind for b in listed(size=333)] == ["resizable"]  # its data is not listed again
    assert memrt.meminfo(adopted).size + resizable.size == 1110


def test_buffers_born_before_and_after_are_not_listed(untracked):
    before = memrt.alloc(1001)
    with memrt.tracking():
        inside = memrt.alloc(1002)
    after = memrt.alloc(1003)
    assert [len(listed(size=mi.size)) for mi in (before, inside, after)] == [0, 1, 0]


def test_a_buffer_leaves_the_list_when_it_dies_also_after_the_block():
    with memrt.tracking():
        mi = memrt.alloc(1004)
    assert listed(size=1004)
    del mi
    assert not listed(size=1004)


def test_a_resized_array_is_listed_with_its_new_size_and_address():
    with memrt.tracking(), memrt.Policy(name="growing"):
        a = np.zeros(10, "u1")
        a.resize(1_000_000, refcheck=False)
        (buffer,) = listed(policy="growing")
    assert (buffer.size, buffer.address) == (1_000_000, a.ctypes.data)


def test_the_list_is_in_the_order_of_birth():
    with memrt.tracking():
        kept = [memrt.alloc(2000 + i) for i in range(20)]
    sizes = [b.size for b in memrt.live() if 2000 <= b.size < 2020]
    assert sizes == [mi.size for mi in kept]
    ids = [b.id for b in memrt.live()]
    assert ids == sorted(ids)


def test_blocks_of_tracking_nest(untracked):
    outer = memrt.tracking()
    assert not _memrt.tracking_enabled()
    with outer:
        with outer, memrt.tracking():
            assert _memrt.tracking_enabled()
        assert _memrt.tracking_enabled()
    assert not _memrt.tracking_enabled()


def test_the_list_shows_references_and_names_as_they_are_when_asked(probe):
    with memrt.tracking():
        mi = memrt.alloc(1005)
    capsules = [mi.__memrt_meminfo__() for _ in range(3)]
    mi.name = "renamed"
    (buffer,) = listed(size=1005)
    assert (buffer.refcount, buffer.name) == (1 + len(capsules), "renamed")


def test_listing_while_others_allocate_is_safe():
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            memrt.alloc(100)

    with memrt.tracking():
        threads = [threading.Thread(target=churn) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(200):
            assert all(b.size == 100 for b in memrt.live())
        stop.set()
        for thread in threads:
            thread.join()
    assert memrt.live() == []
