"""tracemalloc sees each array once, in NumPy's domain."""

import threading
import tracemalloc

import memrt
import numpy as np
import pytest

DOMAIN = np.lib.tracemalloc_domain
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
    "empty": lambda n: memrt.empty(n, "u1"),
    "zeros": lambda n: memrt.zeros(n, "u1"),
    "full": lambda n: memrt.full(n, 1, "u1"),
    "alloc": memrt.alloc,
    "as_array": lambda n: memrt.as_array(memrt.alloc(n))[1:],
    "handler": by_handler,
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_buffer_shows_once_in_numpys_domain_until_it_dies(name, tracing):
    made = MAKERS[name](SIZE)
    assert traced() == [(DOMAIN, SIZE)]
    assert memrt.meminfo(made).size == SIZE
    assert traced() == [(DOMAIN, SIZE)]
    del made
    assert traced() == []


def test_the_trace_points_at_the_line_that_asked(tracing):
    made = memrt.empty(SIZE, "u1")
    (trace,) = [t for t in tracemalloc.take_snapshot().traces if t.size == SIZE]
    assert trace.traceback[0].filename == __file__
    assert made.nbytes == SIZE


def test_arrays_adopted_or_wrapped_are_not_counted_again(tracing):
    a = memrt.adopt(np.empty(SIZE, "u1"))
    assert traced() == [(DOMAIN, SIZE)]
    view = memrt.as_array(memrt.wrap(a.ctypes.data, SIZE, owner=a))
    assert traced() == [(DOMAIN, SIZE)]
    del a, view
    assert traced() == []


def test_a_resized_array_shows_with_its_new_size(tracing):
    a = by_handler(SIZE)
    a.resize(2 * SIZE, refcheck=False)
    assert traced() == [(DOMAIN, 2 * SIZE)]
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
        assert traced() == [(DOMAIN, 2 * SIZE)]
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
    assert traced() == [(DOMAIN, 3 * SIZE)]
    del a
    assert traced() == []


def test_a_buffer_that_others_hold_when_its_array_is_resized_is_not_counted_with_the_copy(tracing):
    a = by_handler(SIZE)
    held = memrt.meminfo(a)
    resize(a, 2 * SIZE)
    assert traced() == [(DOMAIN, 2 * SIZE)]
    del held
    assert traced() == [(DOMAIN, 2 * SIZE)]
    del a
    assert traced() == []


@pytest.mark.parametrize("name", MAKERS)
def test_tracing_may_stop_and_start_during_the_life_of_a_buffer(name):
    before = MAKERS[name](SIZE)
    tracemalloc.start()
    try:
        inside = MAKERS[name](SIZE)
        assert traced() == [(DOMAIN, SIZE)]
        del before
        assert traced() == [(DOMAIN, SIZE)]
        tracemalloc.stop()
        tracemalloc.start()
        del inside
        assert traced() == []
        again = MAKERS[name](SIZE)
        tracemalloc.stop()
        del again
    finally:
        tracemalloc.stop()


def test_a_buffer_released_without_the_gil_leaves_the_trace(tracing, probe):
    held = probe.hold(memrt.empty(SIZE, "u1"))
    assert traced() == [(DOMAIN, SIZE)]
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
    sizes = [t.size for t in tracemalloc.take_snapshot().traces if t.domain == DOMAIN]
    assert SIZE // 100 not in sizes


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
