"""tracemalloc sees each buffer once: NumPy's buffers in NumPy's domain, all other buffers in
memrt's.
"""

import ctypes
import mmap
import threading
import tracemalloc

import memrt
import numpy as np
import pytest
from atonce import on_threads

NUMPYS = np.lib.tracemalloc_domain
OURS = memrt.debug.tracemalloc_domain
SIZE = 10_000_000


@pytest.fixture
def tracing():
    tracemalloc.start()
    yield
    tracemalloc.stop()


def traced():
    """Return (domain, size) of each tracemalloc trace of at least SIZE // 2 bytes."""
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
def test_buffer_is_traced_once_in_its_domain_until_freed(name, tracing):
    domain, make = MAKERS[name]
    made = make(SIZE)
    assert traced() == [(domain, SIZE)]
    assert memrt.meminfo(made).nbytes == SIZE
    assert memrt.meminfo(made).__memrt_meminfo__() is not None
    assert traced() == [(domain, SIZE)]
    del made
    assert traced() == []


def test_tracemalloc_domain_differs_from_python_and_numpy():
    assert OURS not in (0, NUMPYS)


@pytest.mark.parametrize("make", ["make_array", "make_capsule", "make_resizable"])
def test_buffer_from_c_code_is_traced_once_in_python(make, tracing, probe):
    made = getattr(probe, make)(SIZE)
    assert traced() == [(OURS, SIZE)]
    array = memrt.as_array(made) if make != "make_array" else made[1:]
    assert traced() == [(OURS, SIZE)]
    del made, array
    assert traced() == []


def test_c_code_can_trace_adopted_memory(tracing, probe):
    owner = ctypes.create_string_buffer(SIZE)
    adopted = memrt.wrap(ctypes.addressof(owner), SIZE, owner=owner)
    seen = traced()
    assert (OURS, SIZE) not in seen
    probe.register_in_tracemalloc(adopted)
    probe.register_in_tracemalloc(adopted)
    assert sorted(traced()) == sorted([*seen, (OURS, SIZE)])
    del adopted
    assert traced() == seen


def test_c_code_cannot_trace_numpy_memory_twice(tracing, probe):
    array = by_handler(SIZE)
    probe.register_in_tracemalloc(array)
    assert traced() == [(NUMPYS, SIZE)]


def test_resized_buffer_is_traced_with_its_new_size(tracing, probe):
    made = probe.make_resizable(SIZE)
    for size in (3 * SIZE, SIZE // 2):
        probe.resize(made, size, True)
        assert traced() == [(OURS, size)]
    del made
    assert traced() == []


def test_buffer_resized_without_the_gil_is_untraced(tracing, probe):
    made = probe.make_resizable(SIZE)
    probe.resize(made, 3 * SIZE, False)
    memrt.stats()
    assert traced() == []
    probe.resize(made, 2 * SIZE, True)
    assert traced() == [(OURS, 2 * SIZE)]
    del made
    assert traced() == []


def test_only_wrap_with_dtor_and_no_owner_is_traced(tracing):
    memory = mmap.mmap(-1, SIZE)  # unknown to tracemalloc
    address = np.frombuffer(memory, "u1").ctypes.data
    handed_over = memrt.wrap(address, SIZE, lambda address, nbytes: None)
    assert traced() == [(OURS, SIZE)]
    del handed_over
    owned = memrt.wrap(address, SIZE, lambda address, nbytes: None, owner=memory)
    lent = memrt.wrap(address, SIZE)
    assert traced() == []
    del owned, lent


def test_trace_points_at_the_file_of_the_caller(tracing):
    made = memrt.empty(SIZE, "u1")
    (trace,) = [t for t in tracemalloc.take_snapshot().traces if t.size == SIZE]
    assert trace.traceback[0].filename == __file__
    assert made.nbytes == SIZE


def test_adopted_or_wrapped_arrays_are_not_traced_twice(tracing):
    a = memrt.adopt(np.empty(SIZE, "u1"))
    assert traced() == [(NUMPYS, SIZE)]
    view = memrt.as_array(memrt.wrap(a.ctypes.data, SIZE, owner=a))
    assert traced() == [(NUMPYS, SIZE)]
    del a, view
    assert traced() == []


def test_resized_array_is_traced_with_its_new_size(tracing):
    a = by_handler(SIZE)
    a.resize(2 * SIZE, refcheck=False)
    assert traced() == [(NUMPYS, 2 * SIZE)]
    del a
    assert traced() == []


def resize(a, n):
    a.resize(n, refcheck=False)


def test_array_from_before_tracing_is_traced_after_a_resize():
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


def test_array_resized_while_tracing_is_off_is_not_traced(tracing):
    a = by_handler(SIZE)
    tracemalloc.stop()
    resize(a, 2 * SIZE)
    tracemalloc.start()
    assert traced() == []
    resize(a, 3 * SIZE)
    assert traced() == [(NUMPYS, 3 * SIZE)]
    del a
    assert traced() == []


def test_resize_of_a_shared_array_traces_only_the_copy(tracing):
    a = by_handler(SIZE)
    held = memrt.meminfo(a)
    resize(a, 2 * SIZE)
    assert traced() == [(NUMPYS, 2 * SIZE)]
    del held
    assert traced() == [(NUMPYS, 2 * SIZE)]
    del a
    assert traced() == []


@pytest.mark.parametrize("name", MAKERS)
def test_tracing_can_stop_and_start_while_buffers_live(name):
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


def test_buffer_released_without_the_gil_is_untraced(tracing, probe):
    """The calling thread holds the GIL while waiting for the release, so the release must not wait
    for the GIL.
    """
    held = probe.hold(memrt.empty(SIZE, "u1"))
    assert traced() == [(OURS, SIZE)]
    probe.release_without_gil(held, True)
    memrt.stats()  # each call of memrt untracks buffers released without the GIL
    assert traced() == []


def release_one_without_gil(probe):
    """Release a buffer without the GIL, and return the former address of its data."""
    capsule = probe.make_capsule(SIZE)
    address, held = memrt.meminfo(capsule).address, probe.hold(capsule)
    del capsule
    probe.release_without_gil(held, True)
    return address


def test_address_reused_before_the_untrack_stays_traced(tracing, probe):
    address = release_one_without_gil(probe)
    again = probe.make_capsule(SIZE)  # allocates and tracks, and runs nothing that is queued
    assert memrt.meminfo(again).address == address
    assert traced() == [(OURS, SIZE)]
    memrt.stats()
    assert traced() == [(OURS, SIZE)]
    del again
    assert traced() == []


def test_tracing_a_buffer_untraces_released_buffers(tracing, probe):
    held = [probe.hold(probe.make_capsule(SIZE + i)) for i in range(5)]
    assert len(traced()) == 5
    for address in held:
        probe.release_without_gil(address, True)
    made = probe.make_capsule(2 * SIZE)
    assert traced() == [(OURS, 2 * SIZE)]
    del made


def test_resize_with_the_gil_untraces_released_buffers(tracing, probe):
    made = probe.make_resizable(SIZE)
    address = release_one_without_gil(probe)
    probe.resize(made, 3 * SIZE, True)
    assert traced() == [(OURS, 3 * SIZE)]
    probe.resize(made, SIZE, True)  # the new address may be the released address
    assert traced() == [(OURS, SIZE)], address
    del made


def test_main_thread_untraces_buffer_released_without_the_gil(tracing, probe):
    held = probe.hold(probe.make_capsule(SIZE))
    probe.release_without_gil(held, False)
    assert traced() == []


def test_concurrent_releases_without_the_gil_leave_no_traces(tracing, probe):
    def work():
        for _ in range(300):
            probe.release_without_gil(probe.hold(probe.make_capsule(SIZE // 100)), False)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    kept = [probe.make_capsule(SIZE) for _ in range(20)]
    for thread in threads:
        thread.join()
    memrt.stats()
    sizes = [t.size for t in tracemalloc.take_snapshot().traces if t.domain == OURS]
    assert SIZE // 100 not in sizes
    assert sizes.count(SIZE) == len(kept)


@pytest.mark.parametrize("stop", ["pass", "tracemalloc.stop()"])
def test_release_after_interpreter_exit_prints_no_error(stop, run_python, probe):
    result = run_python(
        "import tracemalloc; tracemalloc.start()\n"
        "import memrt, probe\n"
        "mi = memrt.alloc(1000); made = probe.make_resizable(1000)\n"
        "probe.release_after_python(mi); probe.keep(made)\n"
        f"{stop}; del mi, made\n"
    )
    assert result.stderr == ""


def test_allocator_and_gil_do_not_deadlock_under_tracemalloc(run_python, probe):
    """A deadlock would exceed the time limit of the subprocess."""
    run_python(
        "import threading, tracemalloc, memrt, numpy as np, probe\n"
        "tracemalloc.start(); probe.churn(); memrt.enable()\n"
        "done = []\n"
        "def work():\n"
        "    for i in range(2000):\n"
        "        memrt.alloc(1000 + i); np.fromstring('1 2 3 ' * 20, sep=' ')\n"
        "    done.append(i)\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "assert done == [1999] * 3\n"
    )


def test_frees_on_many_threads_leave_no_traces(tracing):
    def work(_number):
        for _ in range(200):
            memrt.empty(SIZE // 100, "u1")

    on_threads(work, 3)
    sizes = [t.size for t in tracemalloc.take_snapshot().traces if t.domain == OURS]
    assert SIZE // 100 not in sizes


def test_domain_filter_separates_memrt_from_numpy(tracing):
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


def test_block_that_tracemalloc_cannot_record_is_freed(run_python):
    """NumPy frees the block with the size of 1 element. Before 2.1.3, NumPy ignores the failure."""
    result = run_python(UNTRACEABLE)
    if "no _testcapi" in result.stdout:
        pytest.skip("this Python has no _testcapi")
    notices = np.lib.NumpyVersion(np.__version__) >= "2.1.3"
    assert (int(result.stdout.split(":")[1]) > 0) == notices
