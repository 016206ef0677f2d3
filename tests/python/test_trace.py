"""tracemalloc sees each buffer once: NumPy's in NumPy's domain, all others in memrt's."""

import ctypes
import mmap
import threading
import tracemalloc

import memrt
import numpy as np
import pytest

NUMPYS = np.lib.tracemalloc_domain
OURS = memrt.tracemalloc_domain
SIZE = 10_000_000


@pytest.fixture
def tracing():
    tracemalloc.start()
    yield
    tracemalloc.stop()


def traced():
    """Traces of SIZE or more bytes, as (domain, size)."""
    return [(t.domain, t.size) for t in tracemalloc.take_snapshot().traces if t.size >= SIZE // 2]


def by_handler(n):
    with memrt.Policy():
        return np.empty(n, "u1")


MAKERS = {
    "empty": (OURS, lambda n: memrt.empty(n, "u1")),
    "zeros": (OURS, lambda n: memrt.zeros(n, "u1")),
    "full": (OURS, lambda n: memrt.full(n, 1, "u1")),
    "alloc": (OURS, memrt.alloc),
    "as_array": (OURS, lambda n: memrt.as_array(memrt.alloc(n))[1:]),
    "objects": (NUMPYS, lambda n: memrt.empty(n // 8, object)),
    "handler": (NUMPYS, by_handler),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_buffer_shows_once_in_its_makers_domain_until_it_dies(name, tracing):
    domain, make = MAKERS[name]
    made = make(SIZE)
    assert traced() == [(domain, SIZE)]
    assert memrt.meminfo(made).size == SIZE
    assert memrt.meminfo(made).__memrt_meminfo__() is not None
    assert traced() == [(domain, SIZE)]
    del made
    assert traced() == []


def test_the_domain_is_memrts_alone():
    assert OURS not in (0, NUMPYS)


@pytest.mark.parametrize("make", ["make_array", "make_capsule", "make_resizable"])
def test_what_c_code_made_shows_once_it_reaches_python(make, tracing, probe):
    made = getattr(probe, make)(SIZE)
    assert traced() == [(OURS, SIZE)]
    array = memrt.as_array(made) if make != "make_array" else made[1:]
    assert traced() == [(OURS, SIZE)]
    del made, array
    assert traced() == []


def test_c_code_may_have_adopted_memory_shown_which_only_it_can_know_about(tracing, probe):
    owner = ctypes.create_string_buffer(SIZE)
    adopted = memrt.wrap(ctypes.addressof(owner), SIZE, owner=owner)
    seen = traced()
    assert (OURS, SIZE) not in seen
    probe.trace(adopted)
    probe.trace(adopted)
    assert sorted(traced()) == sorted([*seen, (OURS, SIZE)])
    del adopted
    assert traced() == seen


def test_c_code_cannot_have_numpys_memory_shown_again(tracing, probe):
    array = by_handler(SIZE)
    probe.trace(array)
    assert traced() == [(NUMPYS, SIZE)]


def test_a_resized_buffer_shows_with_its_new_size(tracing, probe):
    made = probe.make_resizable(SIZE)
    for size in (3 * SIZE, SIZE // 2):
        probe.resize(made, size, True)
        assert traced() == [(OURS, size)]
    del made
    assert traced() == []


def test_a_buffer_resized_without_the_gil_is_not_shown_any_more(tracing, probe):
    made = probe.make_resizable(SIZE)
    probe.resize(made, 3 * SIZE, False)
    assert traced() == []
    probe.resize(made, 2 * SIZE, True)
    assert traced() == [(OURS, 2 * SIZE)]
    del made
    assert traced() == []


def test_memory_handed_over_with_a_destructor_alone_shows_and_an_owners_does_not(tracing):
    memory = mmap.mmap(-1, SIZE)  # which tracemalloc knows nothing of
    address = np.frombuffer(memory, "u1").ctypes.data
    handed_over = memrt.wrap(address, SIZE, lambda address, nbytes: None)
    assert traced() == [(OURS, SIZE)]
    del handed_over
    owned = memrt.wrap(address, SIZE, lambda address, nbytes: None, owner=memory)
    lent = memrt.wrap(address, SIZE)
    assert traced() == []
    del owned, lent


def test_the_trace_points_at_the_line_that_asked(tracing):
    made = memrt.empty(SIZE, "u1")
    (trace,) = [t for t in tracemalloc.take_snapshot().traces if t.size == SIZE]
    assert trace.traceback[0].filename == __file__
    assert made.nbytes == SIZE


def test_arrays_adopted_or_wrapped_are_not_counted_again(tracing):
    a = memrt.adopt(np.empty(SIZE, "u1"))
    assert traced() == [(NUMPYS, SIZE)]
    view = memrt.as_array(memrt.wrap(a.ctypes.data, SIZE, owner=a))
    assert traced() == [(NUMPYS, SIZE)]
    del a, view
    assert traced() == []


def test_a_resized_array_shows_with_its_new_size(tracing):
    a = by_handler(SIZE)
    a.resize(2 * SIZE, refcheck=False)
    assert traced() == [(NUMPYS, 2 * SIZE)]
    del a
    assert traced() == []


def resize(a, n):
    a.resize(n, refcheck=False)


def test_an_array_from_before_tracing_shows_once_it_is_resized():
    a = by_handler(SIZE)
    tracemalloc.start()
    try:
        assert traced() == []
        resize(a, 2 * SIZE)
        assert traced() == [(NUMPYS, 2 * SIZE)]
        del a
        assert traced() == []
    finally:
        tracemalloc.stop()


def test_an_array_resized_while_tracing_was_off_leaves_no_trace_behind(tracing):
    a = by_handler(SIZE)
    tracemalloc.stop()
    resize(a, 2 * SIZE)
    tracemalloc.start()
    assert traced() == []
    resize(a, 3 * SIZE)
    assert traced() == [(NUMPYS, 3 * SIZE)]
    del a
    assert traced() == []


def test_a_buffer_that_others_hold_when_its_array_is_resized_is_not_counted_with_the_copy(tracing):
    a = by_handler(SIZE)
    held = memrt.meminfo(a)
    resize(a, 2 * SIZE)
    assert traced() == [(NUMPYS, 2 * SIZE)]
    del held
    assert traced() == [(NUMPYS, 2 * SIZE)]
    del a
    assert traced() == []


@pytest.mark.parametrize("name", MAKERS)
def test_tracing_may_stop_and_start_during_the_life_of_a_buffer(name):
    domain, make = MAKERS[name]
    before = make(SIZE)
    tracemalloc.start()
    try:
        inside = make(SIZE)
        assert traced() == [(domain, SIZE)]
        del before
        assert traced() == [(domain, SIZE)]
        tracemalloc.stop()
        tracemalloc.start()
        del inside
        assert traced() == []
        again = make(SIZE)
        tracemalloc.stop()
        del again
    finally:
        tracemalloc.stop()


def test_a_buffer_released_without_the_gil_leaves_the_trace(tracing, probe):
    held = probe.hold(memrt.empty(SIZE, "u1"))
    assert traced() == [(OURS, SIZE)]
    probe.release_without_gil(held, True)
    assert traced() == []


def test_one_thread_inside_the_allocator_and_one_with_the_gil_do_not_wait_for_each_other(
    run_python, probe
):
    """The subprocess has a time limit; with a deadlock it would be met."""
    run_python(
        "import threading, tracemalloc, memrt, numpy as np, probe\n"
        "tracemalloc.start(); probe.churn(); memrt.enable()\n"
        "def work():\n"
        "    for i in range(2000):\n"
        "        memrt.alloc(1000 + i); np.fromstring('1 2 3 ' * 20, sep=' ')\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
    )


def test_traces_from_many_threads_are_all_taken_off(tracing):
    def work():
        for _ in range(200):
            memrt.empty(SIZE // 100, "u1")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sizes = [t.size for t in tracemalloc.take_snapshot().traces if t.domain == OURS]
    assert SIZE // 100 not in sizes


def test_a_filter_of_the_domain_tells_memrts_memory_from_numpys(tracing):
    kept = [memrt.empty(SIZE, "u1"), by_handler(SIZE)]
    snapshot = tracemalloc.take_snapshot()
    for domain in (OURS, NUMPYS):
        only = snapshot.filter_traces([tracemalloc.DomainFilter(True, domain)])
        assert [trace.size for trace in only.traces if trace.size >= SIZE] == [SIZE]
    assert len(kept) == 2


UNTRACEABLE = """
import sys, tracemalloc, memrt, numpy as np
try:
    import _testcapi
    _testcapi.set_nomemory
except (ImportError, AttributeError):
    print("no _testcapi"); sys.exit()

policy = memrt.Policy()
never = 10**9
_testcapi.set_nomemory(never)  # comes before tracemalloc, which then asks it for memory
tracemalloc.start()
np.zeros(100)  # what NumPy makes at its first use
refused = 0
with policy:
    for nth in range(1, 50):
        before, a = policy.stats(), None
        _testcapi.set_nomemory(nth - 1, nth)  # the nth request of Python fails
        try:
            a = np.zeros(100)
        except MemoryError:
            pass
        _testcapi.set_nomemory(never)
        change = policy.stats() - before
        if a is None:
            assert change.live == 0 and change.alloc == change.free, nth
            refused += change.alloc
print("refused with a block:", refused)
"""


def test_a_block_that_tracemalloc_cannot_record_comes_back_with_whatever_size(run_python):
    """NumPy frees it with the size of one element, or in its older versions does not notice."""
    result = run_python(UNTRACEABLE)
    if "no _testcapi" in result.stdout:
        pytest.skip("this Python has no _testcapi")
    notices = np.lib.NumpyVersion(np.__version__) >= "2.1.3"
    assert (int(result.stdout.split(":")[1]) > 0) == notices
