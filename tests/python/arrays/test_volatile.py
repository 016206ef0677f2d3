"""Volatile arrays: content that may be dropped is made again on use."""

import copy
import ctypes
import gc
import mmap
import subprocess
import sys
import threading
import time
import weakref
from random import Random

import memrt
import numpy as np
import pytest
from atonce import on_threads
from memory_group import limited_group
from memrt import _memrt

MIB = 1 << 20
PAGE = mmap.PAGESIZE
LIBC = ctypes.CDLL(None, use_errno=True)


def fill(out):
    out[...] = np.arange(out.size, dtype=out.dtype).reshape(out.shape)


def clear(out):
    """Fill an array without a temporary array, which would count under a limit."""
    out.fill(0)


def lose_page(array, page):
    """Drop a page of a content that is not pinned, as the kernel does after MADV_FREE."""
    address, nbytes, pins = _memrt.volatile_read(array._content)
    assert pins == 0
    assert (page + 1) * PAGE <= nbytes
    start = ctypes.c_void_p(address + page * PAGE)
    assert LIBC.madvise(start, ctypes.c_size_t(PAGE), mmap.MADV_DONTNEED) == 0


@pytest.mark.parametrize("nbytes", [1, 8, PAGE - 1, PAGE, 5 * PAGE + 3, 3 * MIB])
def test_content_is_made_once_and_kept(nbytes):
    values = np.random.default_rng(nbytes).integers(0, 256, nbytes, "u1")
    array = memrt.volatile(lambda out: np.copyto(out, values), nbytes, "u1")
    for _ in range(4):
        assert np.array_equal(array.use(), values)
        assert array.state == "kept"
    assert array.makes == 1


def test_each_single_dropped_page_is_found():
    shape = (16 * PAGE - 100) // 8
    array = memrt.volatile(fill, shape)
    expected = np.arange(shape, dtype=float)
    for page in range(16):
        assert array.makes == page
        assert np.array_equal(array.use(), expected)
        assert np.array_equal(array.use(), expected)
        lose_page(array, page)
    assert np.array_equal(array.use(), expected)
    assert array.makes == 17


def test_zeros_are_not_mistaken_for_dropped_pages():
    array = memrt.volatile(lambda out: out.fill(0), 4 * PAGE, "u1")
    assert not array.use().any()
    assert not array.use().any()
    assert array.makes == 1


@pytest.mark.parametrize("shape", [(), 0, (3, 0), (2, 3), [4], (70, 80)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_array_has_shape_dtype_and_order(shape, order):
    kind = np.dtype([("x", "i4"), ("y", "f8")])
    array = memrt.volatile(lambda out: out.fill(0), shape, kind, order)
    expected = np.zeros(shape, kind, order)
    used = array.use()
    assert (used.shape, used.dtype) == (expected.shape, kind)
    assert used.strides == expected.strides or expected.size == 0
    assert (array.shape, array.dtype, array.nbytes) == (expected.shape, kind, expected.nbytes)
    assert not used.flags.writeable
    assert memrt.is_managed(used)


def test_views_keep_the_content_pinned():
    array = memrt.volatile(fill, MIB // 8)
    with array as used:
        tail = used[-3:]
        del used
        assert array.state == "pinned"
    assert array.state == "pinned"
    assert not array.drop()
    memory = memoryview(tail)
    del tail
    assert array.state == "pinned"
    assert memory[0] == MIB // 8 - 3
    del memory
    assert array.state == "kept"
    with array:  # without a name
        assert array.state == "pinned"
        with array:
            pass
        assert array.state == "pinned"
    assert array.drop()
    assert not array.drop()
    assert array.state == "empty"


def test_array_outlives_the_volatile_object():
    array = memrt.volatile(fill, 1000)
    used, seen = array.use(), weakref.ref(array)
    del array
    assert seen() is None
    assert used.sum() == 499500.0


def test_arrays_larger_than_the_limit_keep_running():
    policy = memrt.Policy(name="small", limit=16 * MIB)
    with policy:
        arrays = [memrt.volatile(fill, MIB // 4) for _ in range(20)]  # 40 MiB
        for _ in range(3):
            for array in arrays:
                with array as used:
                    assert used[-1] == MIB // 4 - 1
                del used
        assert policy.stats().live <= 16 * MIB
        assert policy.stats().peak > 12 * MIB
        assert policy.stats().failed == 0


@pytest.mark.thread_unsafe(reason="a limit drops contents of all threads")
def test_least_recently_used_content_goes_first():
    policy = memrt.Policy(name="few", limit=7 * MIB // 2)
    with policy:
        first, second, third = (memrt.volatile(clear, MIB // 8) for _ in range(3))
        for array in (first, second, third, first):
            array.use()
        table = memrt.empty(MIB, "u1")
    assert [each.state for each in (first, second, third)] == ["kept", "empty", "kept"]
    assert first.makes == 1
    del table


def test_one_request_drops_as_many_contents_as_needed():
    policy = memrt.Policy(name="both", limit=7 * MIB // 2)
    with policy:
        arrays = [memrt.volatile(clear, MIB // 8) for _ in range(2)]
        for array in arrays:
            array.use()
        table = memrt.empty(3 * MIB, "u1")
    assert [each.state for each in arrays] == ["empty", "empty"]
    del table


def test_contents_of_other_policies_hide_no_contents():
    others = [memrt.volatile(fill, MIB // 8) for _ in range(4)]
    for array in others:
        array.use()
    with memrt.Policy(name="full", limit=3 * MIB) as policy:
        array = memrt.volatile(clear, MIB // 4)
        array.use()
        table = memrt.empty(2 * MIB, "u1")
        assert policy.stats().failed == 0
    assert array.state == "empty"
    del table, others


def test_pinned_content_is_not_dropped():
    policy = memrt.Policy(name="pins", limit=4 * MIB)
    with policy:
        array = memrt.volatile(fill, MIB // 4)
        used = array.use()
        with pytest.raises(MemoryError):
            memrt.empty(3 * MIB, "u1")
    assert (array.state, array.makes) == ("pinned", 1)
    assert np.array_equal(used, np.arange(MIB // 4))


def test_no_room_for_the_content_is_an_error_and_leaves_it_empty():
    array = memrt.volatile(fill, MIB)
    with memrt.Policy(name="tight", limit=MIB), pytest.raises(memrt.OutOfMemoryError):
        array.use()
    assert (array.state, array.makes) == ("empty", 0)
    assert array.use()[5] == 5


def test_error_of_make_leaves_the_array_empty():
    errors = [ValueError("no data"), KeyboardInterrupt()]

    def make(out):
        out.fill(1)
        if errors:
            raise errors.pop(0)

    array = memrt.volatile(make, 1000)
    with pytest.raises(ValueError, match="no data"):
        array.use()
    gc.collect()
    assert (array.state, array.makes) == ("empty", 0)
    with pytest.raises(KeyboardInterrupt), array:
        pass
    gc.collect()
    assert array.state == "empty"
    assert array.use().sum() == 1000


def test_make_must_not_use_its_own_array():
    array = memrt.volatile(lambda out: array.use(), 10)
    with pytest.raises(RuntimeError, match="make must not use the volatile array that it makes"):
        array.use()


def test_make_may_use_and_drop_others():
    inner = memrt.volatile(fill, MIB // 8)

    def make(out):
        np.multiply(inner.use(), 2, out)
        inner.drop()

    outer = memrt.volatile(make, MIB // 8)
    with memrt.Policy(name="pair", limit=3 * MIB):
        assert outer.use()[-1] == 2 * (MIB // 8 - 1)
    assert inner.state == "empty"


@pytest.mark.thread_unsafe(reason="a limit drops contents of all threads")
def test_contents_are_dropped_above_a_soft_limit():
    policy = memrt.Policy(name="soft", soft=8 * MIB)
    with policy:
        arrays = [memrt.volatile(clear, MIB // 8) for _ in range(7)]
        for array in arrays:
            array.use()
        table = memrt.empty(4 * MIB, "u1")
        end = time.monotonic() + 10
        while policy.stats().live > 8 * MIB:
            assert time.monotonic() < end
            time.sleep(0.001)
        assert arrays[0].state == "empty"
        assert arrays[-1].state == "kept"
    del table


def test_threads_always_see_valid_content():
    policy = memrt.Policy(name="crowd", limit=3 * MIB)
    arrays = [memrt.volatile(fill, MIB // 16) for _ in range(8)]  # 4 MiB
    wrong, stop = [], time.monotonic() + 2

    def use(seed):
        random = Random(seed)
        with policy:
            while time.monotonic() < stop:
                array, other, turn = (random.randrange(8) for _ in range(3))
                try:
                    used = arrays[array].use()
                    wrong.extend([seed] * bool(used[0] != 0 or used[-1] != MIB // 16 - 1))
                except MemoryError:
                    continue
                if turn < 2:
                    arrays[other].drop()
                used = None

    on_threads(use, 4)
    assert not wrong


def test_one_thread_makes_and_the_others_wait():
    entered, calls = threading.Event(), []

    def make(out):
        calls.append(1)
        entered.set()
        time.sleep(0.2)
        fill(out)

    array = memrt.volatile(make, 1000)
    assert on_threads(lambda _: array.use()[999], 4) == [999.0] * 4
    assert len(calls) == 1


FORK = """
import os, threading
import memrt
def fill(out):
    out[...] = range(out.size)
kept = memrt.volatile(fill, 5000)
kept.use()
pinned = memrt.volatile(fill, 5000)
used = pinned.use()
stop = []
def work():
    busy = memrt.volatile(fill, 100)
    while not stop:
        busy.use()
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        assert kept.use()[4999] == 4999
        assert kept.makes == 1 and used[4999] == 4999
        assert kept.drop() and kept.use()[17] == 17
        os._exit(7)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
stop.append(1)
for thread in threads:
    thread.join()
assert kept.use()[4999] == 4999 and kept.makes == 1
"""


def test_forked_child_has_a_copy(run_python):
    run_python(FORK, flags=("-W", "ignore"))


KERNEL = """
import pathlib, sys
pathlib.Path(sys.argv[1], "cgroup.procs").write_text("0")
import numpy as np
import memrt
arrays = [memrt.volatile(lambda out: out.fill(3), 1 << 20) for _ in range(15)]  # 120 MiB
for array in arrays:
    array.use()
assert {array.state for array in arrays} == {"kept"}
other = np.ones(15 << 20)  # 120 MiB that are not memrt's: the kernel drops pages
del other
assert all((array.use() == 3).all() for array in arrays)
print(sum(array.makes for array in arrays) > 15)
"""


def test_pages_that_the_kernel_drops_are_found(libc_malloc):
    with limited_group(200 * MIB) as group:
        command = [sys.executable, "-c", KERNEL, str(group)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "True\n"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((3, 5), TypeError, "make must be callable, got 3"),
        ((fill, 5, object), TypeError, "dtype must hold no Python objects, got object"),
        ((fill, -1), ValueError, "shape must have no negative length, got -1"),
        ((fill, 1.5), TypeError, "shape must be an int or a tuple of int, got 1.5"),
        ((fill, (2, "x")), TypeError, "shape must be an int or a tuple of int"),
        ((fill, 5, float, "A"), ValueError, "order must be 'C' or 'F', got 'A'"),
        ((fill, 2**62), MemoryError, None),
        ((fill, 2**70), MemoryError, None),
    ],
)
def test_bad_arguments_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        memrt.volatile(*arguments)


def test_repr_and_copies():
    array = memrt.volatile(fill, (2, 3), "i4")
    assert repr(array) == "<memrt.volatile int32 (2, 3), 24 B, empty, made 0 times>"
    used = array.use()
    assert repr(array) == "<memrt.volatile int32 (2, 3), 24 B, pinned, made 1 time>"
    with pytest.raises(TypeError):
        copy.deepcopy(array)
    del used


def test_unpinned_content_survives_the_end_of_the_interpreter(run_python):
    code = (
        "import memrt\n"
        "array = memrt.volatile(lambda out: out.fill(1), 100000)\n"
        "used = array.use()\n"
        "other = memrt.volatile(lambda out: out.fill(1), 100000)\n"
        "other.use()\n"
    )
    assert run_python(code, flags=("-X", "dev")).stderr == ""
