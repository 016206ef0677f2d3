"""memrt as NumPy's allocator: NumPy's requests to a handler, and the handler's results."""

import contextlib
import ctypes
import gc
import itertools
import sys
import threading

import memrt
import numpy as np
import pytest
from atonce import on_threads
from elsewhere import elsewhere
from memrt import _memrt

ALIGNMENTS = [64, 256, 4096]


class Recording:
    """Run NumPy on a recorder over a policy's handler; `events` holds the requests afterwards."""

    def __init__(self, recorder, policy, name="recorded"):
        self.recorder = recorder
        self.handler = recorder.new(None if policy is None else policy.handler, name)
        self.events = []

    def __enter__(self):
        self.before = _memrt.set_handler(self.handler)
        return self

    def __exit__(self, *exc):
        _memrt.set_handler(self.before)
        self.drain()

    def drain(self):
        self.events += self.recorder.events(self.handler)
        return self.events

    def ops(self, op):
        return [event for event in self.drain() if event[0] == op]


@pytest.fixture
def policy():
    return memrt.Policy(name="handled")


@pytest.fixture
def recording(recorder, policy):
    return Recording(recorder, policy)


def number_text(count):
    return " ".join(str(i) for i in range(count))


def grown_by_fromstring(tmp_path):
    return np.fromstring(number_text(5000), sep=" "), np.arange(5000.0)


def grown_by_fromiter(tmp_path):
    return np.fromiter((i for i in range(5000)), "f8"), np.arange(5000.0)


def grown_by_fromfile(tmp_path):
    (tmp_path / "n.txt").write_text(number_text(5000))
    return np.fromfile(tmp_path / "n.txt", sep=" "), np.arange(5000.0)


def grown_by_loadtxt(tmp_path):
    (tmp_path / "n.txt").write_text(number_text(2000).replace(" ", "\n"))
    return np.loadtxt(tmp_path / "n.txt"), np.arange(2000.0)


def grown_by_resize(tmp_path):
    a = np.zeros(1, "u1")
    for size in (3, 100, 5000, 100_000, 10):
        before = min(a.size, size)
        a[:before] = np.arange(before)
        a.resize(size, refcheck=False)
        assert a.ctypes.data % 64 == 0
    return a, np.arange(10, dtype="u1")


GROWERS = [grown_by_fromstring, grown_by_fromiter, grown_by_fromfile, grown_by_loadtxt]
GROWERS += [grown_by_resize]


@pytest.mark.thread_unsafe(reason="threads share the recorder")
def test_text_parsing_reallocates_without_the_gil(recording):
    with recording:
        a = np.fromstring(number_text(5000), sep=" ")
    reallocs = recording.ops("realloc")
    assert any(not gil for *_, gil in reallocs)
    assert np.array_equal(a, np.arange(5000.0))
    assert memrt.stats().realloc >= len(reallocs)


@pytest.mark.thread_unsafe(reason="threads share the recorder")
@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("grow", GROWERS)
def test_realloc_keeps_alignment_and_contents(grow, alignment, recorder, tmp_path):
    recording = Recording(recorder, memrt.Policy(alignment=alignment))
    with recording:
        a, expected = grow(tmp_path)
    moves = recording.ops("realloc")
    assert moves
    assert all(after % alignment == 0 for _, _, after, *_ in moves)
    assert np.array_equal(a, expected)


def empty_text(tmp_path):
    np.fromstring("", sep=" ")


def empty_text_file(tmp_path):
    (tmp_path / "e").write_text("")
    np.fromfile(tmp_path / "e", sep=" ")
    np.loadtxt(tmp_path / "e")


def empty_binary_file(tmp_path):
    (tmp_path / "e").write_bytes(b"")
    np.fromfile(tmp_path / "e", "f8")


def resized_to_nothing(tmp_path):
    a = np.ones(100)
    a.resize(0, refcheck=False)


def zero_sizes(tmp_path):
    np.empty(0), np.empty((2, 0, 2)), np.zeros((0, 5)), np.empty(0, "S"), np.array([])


@pytest.mark.thread_unsafe(reason="threads share the policy that the test counts")
@pytest.mark.filterwarnings("ignore:string or file could not be read:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:loadtxt. input contained no data:UserWarning")
@pytest.mark.parametrize(
    "action", [empty_text, empty_text_file, empty_binary_file, resized_to_nothing, zero_sizes]
)
def test_size_passed_to_free_by_numpy_is_ignored(action, policy, tmp_path):
    with policy:
        action(tmp_path)
    gc.collect()
    stats = policy.stats()
    assert stats.alloc > 0
    assert (stats.live, stats.alloc) == (0, stats.free)


@pytest.mark.thread_unsafe(reason="threads share the recorder")
@pytest.mark.filterwarnings("ignore:string or file could not be read:DeprecationWarning")
def test_numpy_frees_empty_text_with_a_different_size(recording):
    """NumPy frees with a different size up to version 2.4 at least."""
    with recording:
        np.fromstring("", sep=" ")
    assert [size for _, _, _, size, *_ in recording.ops("free")] != [
        size for _, _, _, size, *_ in recording.ops("malloc")
    ]


@pytest.mark.thread_unsafe(reason="threads share the policy that the test counts")
@pytest.mark.parametrize("size", [0, 1, 5, 10**9, 2**64 - 1])
def test_free_with_a_wrong_size_frees_the_right_block(size, recorder, policy):
    data = recorder.call(policy.handler, "malloc", 1000)
    assert policy.stats().live == 1000
    recorder.call(policy.handler, "free", data, size)
    assert policy.stats().live == 0


@pytest.mark.thread_unsafe(reason="threads share the policy that the test counts")
def test_free_of_null_does_nothing(recorder, policy):
    for size in (0, 1, 1000):
        recorder.call(policy.handler, "free", 0, size)
    assert policy.stats().free == 0


@pytest.mark.thread_unsafe(reason="threads share the policy that the test counts")
def test_calloc_zeroes_memory_and_overflowing_sizes_fail(recorder, policy):
    data = recorder.call(policy.handler, "calloc", 3, 7)
    assert ctypes.string_at(data, 21) == bytes(21)
    assert policy.stats().live == 21
    recorder.call(policy.handler, "free", data, 21)
    for count, size in ((2**63 - 1, 4), (4, 2**63 - 1), (2**64 - 1, 2**64 - 1), (2**64 - 1, 1)):
        assert recorder.call(policy.handler, "calloc", count, size) == 0
    for size in (2**64 - 1, 2**64 - 64, 2**63):
        assert recorder.call(policy.handler, "malloc", size) == 0
    assert policy.stats().failed == 7


@pytest.mark.thread_unsafe(reason="threads share the policy that the test counts")
def test_realloc_of_null_allocates_and_to_0_keeps_an_address(recorder, policy):
    data = recorder.call(policy.handler, "realloc", 0, 10)
    assert data % 64 == 0
    data = recorder.call(policy.handler, "realloc", data, 0)
    assert data != 0
    assert policy.stats().live == 0
    recorder.call(policy.handler, "free", data, 0)
    assert policy.stats().alloc == policy.stats().free


@pytest.mark.thread_unsafe(reason="threads share the policy that the test counts")
def test_realloc_failure_keeps_old_block(policy):
    with policy:
        a = np.arange(1000.0)
    before, address = policy.stats(), a.ctypes.data
    with memrt.testing.fail_allocations(), pytest.raises(MemoryError):
        a.resize(10**6, refcheck=False)
    change = policy.stats() - before
    assert (change.live, change.alloc, change.free, change.failed) == (0, 0, 0, 1)
    assert a.ctypes.data == address
    assert np.array_equal(a, np.arange(1000.0))


@pytest.mark.thread_unsafe(reason="threads share the policy that the test counts")
@pytest.mark.parametrize("grow", GROWERS)
def test_failed_numpy_allocations_leak_nothing(grow, policy, tmp_path):
    gc.collect()
    for nth in range(1, 200):
        with policy, memrt.testing.fail_allocations(nth) as plan:
            try:
                a, expected = grow(tmp_path)
            except MemoryError:
                a = None
        if a is not None and plan.points < nth:
            break
        a = None
        assert policy.stats().live == 0
    assert np.array_equal(a, expected)
    assert nth > 2


def test_resize_of_a_shared_block_leaves_old_block_to_views():
    with memrt.Policy(alignment=65536):
        a = np.arange(10.0)
    held = memrt.meminfo(a)
    view = memrt.as_array(held, dtype="f8")
    a.resize(10_000, refcheck=False)
    a[:10] = -1
    assert np.array_equal(view, np.arange(10.0))
    assert held.refcount == 1
    assert memrt.meminfo(a) != held
    assert a.ctypes.data % 65536 == 0


@pytest.mark.thread_unsafe(reason="threads share the recorder")
def test_numpy_scratch_memory_comes_from_the_handler(recording):
    with recording:
        np.ones(4).sum()
    assert len(recording.ops("malloc")) >= 1
    recording.events.clear()
    matrix = np.arange(10_000.0).reshape(100, 100)
    with recording:
        np.sort(matrix[:, 3][::-1])
    assert len(recording.ops("malloc") + recording.ops("calloc")) >= 1


@pytest.mark.thread_unsafe(reason="threads share the recorder")
def test_scalars_views_and_buffers_bypass_the_handler(recording):
    base, raw = np.ones(100), bytes(80)
    with recording:
        np.float64(3)
        np.frombuffer(raw)
        base[3:], base.reshape(10, 10), np.broadcast_to(base, (3, 100)), base.T
    assert recording.events == []


@pytest.mark.thread_unsafe(reason="threads share the recorder")
def test_zeros_make_a_single_calloc_of_all_bytes(recording):
    with recording:
        a = np.zeros((10, 10))
    assert [size for _, _, _, size, *_ in recording.ops("calloc")] == [a.nbytes]


def test_object_arrays_get_zeroed_memory_from_dirty_blocks(policy):
    with policy:
        for size in (10, 1000):
            dirty = np.full(size, -1, "i8")
            del dirty
            objects = np.empty(size, object)
            structured = np.zeros(size, [("o", object), ("n", "i8")])
            assert all(item is None for item in objects)
            assert set(structured["o"].tolist()) == {0}


def references_left(dtype, policy):
    """Return how many references to an object remain after its arrays were resized, copied and
    freed.
    """
    thing = object()
    before = sys.getrefcount(thing)
    with policy:
        a = np.empty(50, dtype)
        a.fill(thing) if dtype is object else a.__setitem__("o", thing)
        b = np.concatenate([a, a[:10].copy()])
        del a
        b.resize(20, refcheck=False)
        b.resize(200, refcheck=False)
        del b
    gc.collect()
    return sys.getrefcount(thing) - before


@pytest.mark.parametrize("dtype", [object, [("o", object), ("n", "i8")]], ids=["plain", "field"])
def test_object_arrays_drop_references_as_without_memrt(dtype, policy):
    """Some versions of NumPy lose references of structured arrays without memrt, too."""
    assert references_left(dtype, policy) == references_left(dtype, contextlib.nullcontext())


@pytest.mark.parametrize("dtype", ["StringDType", "StrDType"])
def test_string_arrays_get_zeroed_memory_from_dirty_blocks(policy, dtype):
    variable = getattr(np.dtypes, dtype, None)  # NumPy 1 has only the fixed-width dtype
    dtype = variable() if dtype == "StringDType" and variable else np.dtype("U60")
    text = "a string that is too long to stand in the array itself"
    with policy:
        for size in (10, 1000):
            np.full(size, -1, "i8")
            strings = np.zeros(size, dtype)
            assert set(strings.tolist()) == {""}
            strings[:] = text
            assert set(strings.tolist()) == {text}


@pytest.mark.thread_unsafe(reason="threads share the recorder")
def test_array_keeps_its_handler_after_policy_is_deleted(recorder):
    policy = memrt.Policy(name="short-lived")
    with policy:
        a = np.ones(1000)
    del policy
    gc.collect()
    assert memrt.handler_name(a) == "memrt:short-lived"
    box = [a]
    del a
    elsewhere(box.clear)
    assert "short-lived" not in [policy.name for policy in memrt.debug.policies()]


def test_copies_use_the_policy_in_force_not_of_the_source(policy):
    import copy

    other = memrt.Policy(name="other")
    with policy:
        a = np.ones((10, 10))
    made = {
        "copy": a.copy,
        "astype": lambda: a.astype("f4"),
        "deepcopy": lambda: copy.deepcopy(a),
        "sum": lambda: a + 1,
        "fancy": lambda: a[[1, 2]],
    }
    for make in made.values():
        assert memrt.handler_name(make()) == "default_allocator"
        with other:
            assert memrt.handler_name(make()) == "memrt:other"


@pytest.mark.thread_unsafe(reason="threads share the policy that the test counts")
def test_blocks_are_freed_by_their_own_handler_after_swaps(recorder, policy):
    foreign = recorder.new(None, "foreign")
    before = _memrt.get_handler()
    policy.__enter__()
    ours = np.ones(100)
    inside = _memrt.set_handler(foreign)
    theirs = np.ones(200)
    with pytest.warns(RuntimeWarning, match="'foreign' of another library stays"):
        policy.__exit__()
    assert _memrt.get_handler() is foreign
    _memrt.set_handler(inside)  # the foreign library restores an outdated handler
    late = np.ones(300)
    _memrt.set_handler(before)
    assert memrt.handler_name(ours) == memrt.handler_name(late) == "memrt:handled"
    assert memrt.handler_name(theirs) == "foreign"
    del ours, theirs, late
    freed = [size for op, _, _, size, *_ in recorder.events(foreign) if op == "free"]
    assert (freed.count(1600), freed.count(800), freed.count(2400)) == (1, 0, 0)
    assert policy.stats().live == 0


def test_alignment_holds_for_every_size_and_way_of_allocating():
    sizes = [0, 1, 7, 63, 64, 65, 1000, 4095, 4096, 4097, 100_000, 2**20 + 1, 10 * 2**20]
    for align in (16, 32, 64, 128, 512, 4096):
        policy = memrt.Policy(alignment=align)
        floor = max(align, 64)
        for size in sizes:
            with policy:
                made = [np.empty(size, "u1"), np.zeros(size, "u1"), np.ones(3, "u1")]
                made[2].resize(size, refcheck=False)
            for a in made:
                assert a.ctypes.data % floor == (16 if align == 16 else 0), (align, size)
            made.append(memrt.empty(size, "u1", policy=policy))
            made.append(memrt.as_array(memrt.alloc(size, alignment=align)))
            for a in made[3:]:
                assert a.ctypes.data % floor == 0, (align, size)


@pytest.mark.thread_unsafe(reason="threads share the policy that the test counts")
def test_threads_may_free_arrays_of_other_threads(policy):
    rounds, barrier, bins = 300, threading.Barrier(4), [[] for _ in range(4)]

    def work(i):
        barrier.wait()
        with policy:
            for n in range(rounds):
                bins[i].append(np.full(n % 50 * 100, i, "i4"))
        barrier.wait()
        taken = bins[(i + 1) % 4]
        for a in taken:
            assert (a == (i + 1) % 4).all()
        taken.clear()

    on_threads(work, 4)
    stats = policy.stats()
    assert stats.alloc >= 4 * rounds
    assert (stats.live, stats.alloc) == (0, stats.free)


def test_longest_policy_name_fits_the_numpy_handler_name():
    assert memrt.handler_name(memrt.zeros(1)) == "memrt"
    longest = memrt.Policy(name="x" * 63)
    with longest:
        assert memrt.handler_name() == "memrt:" + "x" * 63
        assert memrt.handler_name(np.ones(3)) == "memrt:" + "x" * 63


def test_set_handler_refuses_invalid_handlers(probe):
    for nonsense in (None, 5, probe.foreign_capsule("mem_handlers")):
        with pytest.raises(TypeError, match="mem_handler"):
            _memrt.set_handler(nonsense)


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_importing_memrt_leaves_numpy_unchanged(run_python):
    run_python(
        "import numpy as np, threading\n"
        "from numpy.core.multiarray import get_handler_name\n"
        "start = threading.Thread.start\n"
        "import memrt\n"
        "assert get_handler_name() == 'default_allocator'\n"
        "assert get_handler_name(np.ones(3)) == 'default_allocator'\n"
        "assert threading.Thread.start is start\n"
        "assert memrt.stats().alloc == 0\n",
        flags=("-W", "ignore::DeprecationWarning"),
    )


@pytest.mark.parametrize("tracked", [False, True])
def test_resize_copies_only_where_the_array_has_no_room(tracked, libc_malloc):
    tracking = memrt.debug.tracking() if tracked else contextlib.nullcontext()
    with tracking, memrt.Policy(name="growing") as policy:
        array = np.ones(1000, np.uint8)
        addresses = [array.ctypes.data]
        before = policy.stats()
        for size in range(1001, 4001):
            array.resize(size, refcheck=False)
            addresses.append(array.ctypes.data)
        after = policy.stats()
    moves = sum(a != b for a, b in itertools.pairwise(addresses))
    assert array[:1000].all()
    assert not array[1000:].any()
    assert after.live == before.live + 3000
    assert after.realloc == before.realloc + 3000
    assert moves <= 20  # size classes from 1000 to 4000 bytes
