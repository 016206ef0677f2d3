"""Threads that track, list and measure buffers at the same time."""

import tracemalloc

import memrt
import numpy as np
from atonce import on_threads
from memrt import _memrt

ROUNDS = 100


def test_tracking_blocks_on_threads_restore_the_settings(untracked):
    def work(number):
        for _ in range(ROUNDS):
            with memrt.debug.tracking(frames=number + 1):
                arrays = [memrt.empty(10) for _ in range(10)]
                assert _memrt.tracking_enabled()
                found = {buffer.address for buffer in memrt.debug.live()}
                assert {array.ctypes.data for array in arrays} <= found

    on_threads(work)
    assert not _memrt.tracking_enabled()


def test_tracked_buffers_of_threads_have_their_own_sites():
    """Each thread allocates in many new functions, so the cache of frames grows on all threads."""

    def make(name):
        scope = {"memrt": memrt}
        exec(f"def {name}():\n    return memrt.alloc(100)", scope)
        return scope[name]

    def work(number):
        names = [f"thread_{number}_{i}" for i in range(ROUNDS)]
        made = [make(name)() for name in names]
        places = {buffer.address: buffer.site.place for buffer in memrt.debug.live()}
        assert [places[mi.address].function for mi in made] == names

    with memrt.debug.tracking(frames=4):
        on_threads(work)


def test_cache_of_frames_is_dropped_while_threads_fill_it(untracked):
    source = "def make():\n    return [" + "memrt.alloc(100),\n" * 50 + "]"

    def work(_):
        for _ in range(ROUNDS):
            scope = {"memrt": memrt}
            exec(source, scope)
            with memrt.debug.tracking(frames=8):
                assert len(scope["make"]()) == 50

    on_threads(work)
    assert not _memrt.tracking_enabled()


def test_exact_peak_blocks_on_threads_restore_the_option():
    def options():
        return {option.name: option.value for option in memrt.debug.options()}

    before = options()["MEMRT_PEAK"]

    def work(_):
        for _ in range(ROUNDS):
            with memrt.debug.exact_peak():
                assert options()["MEMRT_PEAK"] == "exact"

    on_threads(work)
    assert options()["MEMRT_PEAK"] == before


def test_statistics_are_read_while_threads_allocate():
    def work(number):
        for _ in range(ROUNDS):
            if number % 2 == 0:
                arrays = [memrt.zeros(number * 100 + i) for i in range(10)]
                assert sum(array.sum() for array in arrays) == 0
            else:
                stats = memrt.stats()
                assert stats.alloc >= stats.free
                assert memrt.debug.policies()
                assert all(thread.alloc >= 0 for thread in memrt.debug.threads())
                assert len(memrt.debug.sizes()) > 0
                assert all(buffer.nbytes >= 0 for buffer in memrt.debug.live())
                memrt.release_unused()

    with memrt.debug.tracking(frames=2):
        kept = memrt.zeros(10)  # so that sizes() is never empty
        on_threads(work)
    assert kept.sum() == 0


def test_buffers_freed_on_threads_leave_tracemalloc():
    domain = memrt.debug.tracemalloc_domain

    def work(number):
        for i in range(ROUNDS):
            kept = [memrt.alloc(1000 + number) for _ in range(10)]
            assert np.asarray(memrt.as_array(kept[i % 10])).nbytes == 1000 + number

    tracemalloc.start()
    try:
        on_threads(work)
        traces = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, domain)])
    finally:
        tracemalloc.stop()
    assert len(traces.traces) == 0
