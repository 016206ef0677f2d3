"""Threads that allocate, share, view and release buffers at the same time."""

import gc
import random

import memrt
import numpy as np
import pytest
from atonce import on_threads
from memrt import _memrt

ROUNDS = 200


def test_threads_share_view_and_release_meminfos():
    shared = [memrt.alloc(1000, zero=True) for _ in range(8)]

    def work(number):
        choose = random.Random(number)
        for _ in range(ROUNDS):
            shared[choose.randrange(8)] = memrt.alloc(1000 + number, zero=True)
            mi = shared[choose.randrange(8)]
            assert mi.refcount >= 1
            assert memrt.as_array(mi)[:1000].sum() == 0
            assert bytes(memoryview(mi)[:8]) == bytes(8)
            assert memrt.meminfo(memrt.as_array(mi)) is mi

    on_threads(work)
    assert all(mi.refcount == 1 for mi in shared)


def test_threads_share_arrays_under_enable():
    memrt.enable()
    try:
        shared = [np.zeros(100) for _ in range(8)]

        def work(number):
            choose = random.Random(number)
            for _ in range(ROUNDS):
                shared[choose.randrange(8)] = np.full(100, number, float)
                part = shared[choose.randrange(8)][10:20]
                assert part.min() == part.max()
                assert memrt.is_managed(part)
                assert memrt.meminfo(part).nbytes == 800

        on_threads(work)
        shared.clear()
    finally:
        memrt.disable()


def test_views_on_threads_leave_a_cycle_collectable():
    """A view that was counted but not released would keep the collector from the cycle."""
    memory, freed = np.zeros(100, "u1"), []

    def make():
        cycle = []
        cycle.append(memrt.wrap(memory.ctypes.data, 100, lambda *_: freed.append(len(cycle))))
        return cycle[0]

    shared = [make()]

    def work(_):
        for _ in range(10 * ROUNDS):
            memoryview(shared[0]).release()

    on_threads(work)
    shared.clear()
    gc.collect()
    assert freed == [1]


def test_one_of_many_threads_adopts_an_array():
    for _ in range(50):
        array = np.ones(1000)
        adopted = on_threads(lambda _, array=array: memrt.adopt(array))
        assert all(each is array for each in adopted)
        assert memrt.meminfo(array).kind == "adopted"
        assert array.sum() == 1000


def test_one_of_many_threads_takes_a_capsule():
    def take(capsule):
        try:
            return _memrt.take_capsule(capsule, None)
        except ValueError:
            return None

    for _ in range(50):
        capsule = np.arange(10.0).__dlpack__()
        taken = on_threads(lambda _, capsule=capsule: take(capsule))
        assert [array.sum() for array in taken if array is not None] == [45]


def test_one_of_many_threads_takes_an_arrow_array():
    def take(capsules):
        try:
            return _memrt.take_arrow(*capsules, None)[0]
        except (BufferError, ValueError):
            return None

    for _ in range(50):
        capsules = memrt.alloc(100).__arrow_c_array__()
        taken = on_threads(lambda _, capsules=capsules: take(capsules))
        assert [mi.nbytes for mi in taken if mi is not None] == [100]


def test_each_thread_gets_its_own_out_of_memory_error():
    def work(number):
        errors = []
        for _ in range(50):
            with pytest.raises(memrt.OutOfMemoryError) as caught:
                memrt.alloc(2**60 + number)
            errors.append(caught.value)
        assert {error.nbytes for error in errors} == {2**60 + number}
        assert all(str(2**60 + number) in str(error) for error in errors)
        return {id(error) for error in errors}

    on_threads(work)


def test_owners_that_end_on_threads_are_all_counted():
    memory, freed = np.zeros(100, "u1"), [0] * 8
    before = _memrt.owners()["run"]

    def work(number):
        def count(address, nbytes):
            freed[number] += 1

        for _ in range(ROUNDS):
            memrt.wrap(memory.ctypes.data, 100, count)
            memrt.wrap(memory.ctypes.data, 100, owner=memory)

    on_threads(work)
    assert freed == [ROUNDS] * 8
    assert _memrt.owners()["run"] - before == 2 * 8 * ROUNDS
