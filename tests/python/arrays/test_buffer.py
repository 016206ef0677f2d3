"""memrt.types.Buffer: growth at one address, views, shrink rules and accounting."""

import gc
import os
import threading
import tracemalloc

import memrt
import numpy as np
import pytest
from memrt.types import Buffer


def test_items_arrive_in_order_by_all_methods():
    buffer = Buffer(dtype="f8")
    buffer.append(1.5)
    buffer.append(2)
    buffer.append(np.float32(3))
    buffer.extend([4, 5.5])
    buffer.extend(np.arange(3, dtype="i2"))
    buffer.extend(float(i) for i in range(2))
    buffer.extend(memoryview(b""))
    assert buffer.array.tolist() == [1.5, 2, 3, 4, 5.5, 0, 1, 2, 0, 1]
    assert (len(buffer), buffer.nbytes, buffer.dtype) == (10, 80, np.dtype("f8"))
    assert repr(buffer).startswith("<memrt.types.Buffer float64, 10 items, capacity ")


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", ">f8", "c16", "S3", "M8[s]", "i4,f8", "?"])
def test_dtype_keeps_values(dtype):
    values = np.zeros(3, dtype)
    values[1:] = np.ones(2, dtype)
    buffer = Buffer(dtype=dtype)
    buffer.append(values[1])
    buffer.extend(values)
    assert buffer.array.dtype == values.dtype
    assert buffer.array[1:].tobytes() == values.tobytes()
    assert buffer.array[0] == values[1]


def test_views_stay_valid_while_buffer_grows():
    buffer = Buffer(1, dtype="i8", reserve="64 MiB")
    buffer.append(7)
    first = buffer.array
    address = first.ctypes.data
    buffer.extend(np.arange(1_000_000))
    first[0] = 8
    assert buffer.array[0] == 8
    assert buffer.array.ctypes.data == address
    assert len(first) == 1
    del buffer
    assert first[0] == 8


def test_buffer_protocol_exports_current_items():
    buffer = Buffer(dtype="i4")
    buffer.extend([1, 2])
    view = memoryview(buffer)
    buffer.extend([3])
    assert (view.tolist(), view.format, view.readonly) == ([1, 2], "i", False)
    assert np.asarray(buffer).tolist() == [1, 2, 3]
    with pytest.raises(BufferError, match="buffer must have no views to shrink, got 1 references"):
        buffer.resize(1)
    view.release()
    buffer.resize(1)
    assert bytes(buffer) == b"\1\0\0\0"


def test_resize_fills_with_zeros_and_keeps_the_capacity():
    buffer = Buffer(dtype="u1")
    buffer.extend(np.full(10_000, 255, "u1"))
    capacity = buffer.capacity
    buffer.resize(0)
    assert buffer.capacity == capacity
    buffer.resize(20_000)
    assert not buffer.array.any()
    buffer.resize(3)
    buffer.shrink_to_fit()
    assert (len(buffer), buffer.capacity) == (3, 3)
    buffer.resize(5000)
    assert not buffer.array.any()


def test_shrink_to_fit_refuses_views():
    buffer = Buffer(1000)
    view = buffer.array
    with pytest.raises(BufferError, match="no views"):
        buffer.shrink_to_fit()
    del view
    buffer.shrink_to_fit()
    assert buffer.capacity == 0


def test_failed_growth_leaves_buffer_unchanged():
    policy = memrt.Policy(name="growing", limit="1 MiB")
    buffer = Buffer(dtype="f8", policy=policy)
    buffer.extend(np.ones(1000))
    with pytest.raises(memrt.OutOfMemoryError):
        buffer.extend(np.ones(1_000_000))
    with pytest.raises(memrt.OutOfMemoryError):
        buffer.resize(1_000_000)
    assert (len(buffer), buffer.array.sum()) == (1000, 1000)
    buffer.extend(np.ones(131_072 - 1000))  # exactly the limit, without room for half more
    assert policy.stats().live == 2**20
    with pytest.raises(memrt.OutOfMemoryError):
        buffer.append(1.0)
    small = Buffer(reserve=100)
    small.resize(100)
    with pytest.raises(MemoryError, match="items must fit the reserve of 100 bytes, got 101 items"):
        small.append(1)
    with pytest.raises(MemoryError):
        small.resize(2**62)


@pytest.mark.thread_unsafe(reason="threads share the scope that the test counts")
def test_memory_counts_in_policy_and_scope_of_creation():
    with memrt.scope("growing buffers") as scope:
        buffer = Buffer(1000, dtype="f8")
    before = scope.stats().live
    buffer.extend(np.ones(100_000))
    after = scope.stats().live
    assert before == 8000
    assert after == buffer.capacity * 8
    del buffer
    assert scope.stats().live == 0


@pytest.mark.thread_unsafe(reason="each thread sees the buffers of all threads")
def test_tracking_lists_the_present_size():
    with memrt.debug.tracking():
        buffer = Buffer(dtype="f8")
        buffer.extend(np.ones(100_000))
        rows = [row for row in memrt.debug.live() if row.kind == "resizable"]
        assert [row.nbytes for row in rows] == [buffer.capacity * 8]


@pytest.mark.thread_unsafe(reason="threads share tracemalloc")
def test_tracemalloc_shows_the_present_size():
    tracemalloc.start()
    try:
        buffer = Buffer(dtype="f8")
        buffer.extend(np.ones(100_000))
        domain = tracemalloc.DomainFilter(True, memrt.debug.tracemalloc_domain)
        traces = tracemalloc.take_snapshot().filter_traces([domain]).traces
        assert buffer.capacity * 8 in [trace.size for trace in traces]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"dtype": object}, TypeError, "dtype must have a size"),
        ({"dtype": "2f8"}, TypeError, "dtype must have a size"),
        ({"dtype": "S"}, TypeError, "dtype must have a size"),
        ({"dtype": "nothing"}, TypeError, "nothing"),
        ({"reserve": 0}, ValueError, "reserve must be at least 1 byte"),
        ({"reserve": "many"}, ValueError, "reserve"),
        ({"reserve": 1.5}, TypeError, "reserve"),
        ({"reserve": 2**60}, MemoryError, "memory|address|bytes"),
        ({"capacity": 2000, "reserve": 1999}, ValueError, "hold the capacity of 2000 bytes"),
        ({"capacity": -1}, ValueError, "must be 0 or more, got -1"),
        ({"capacity": 2**62, "dtype": "f8"}, MemoryError, "^"),
        ({"policy": 3}, TypeError, "policy"),
        ({"size": 3}, TypeError, "size"),
    ],
)
def test_bad_arguments_are_refused(settings, error, text):
    with pytest.raises(error, match=text):
        Buffer(**settings)


def test_bad_items_are_refused_and_append_nothing():
    buffer = Buffer(dtype="i4")
    with pytest.raises(TypeError, match="values must be of the same kind as dtype"):
        buffer.extend(np.ones(3))
    with pytest.raises(ValueError, match="values must have one dimension, got 2: use ravel"):
        buffer.extend(np.ones((3, 3), "i4"))
    with pytest.raises(ValueError, match="values must have one dimension, got 0"):
        buffer.extend(3)
    with pytest.raises(ValueError, match="value must be one item, got 1 dimensions"):
        buffer.append([1])
    with pytest.raises((TypeError, ValueError)):
        buffer.append("text")
    with pytest.raises(ZeroDivisionError):
        buffer.extend(1 // (2 - i) for i in range(3))
    with pytest.raises(ValueError, match="must be 0 or more, got -1"):
        buffer.resize(-1)
    assert len(buffer) == 0


def test_value_may_append_to_the_same_buffer():
    buffer = Buffer(dtype="f8")

    class Value:
        def __init__(self, buffer):
            self.buffer = buffer

        def __float__(self):
            self.buffer.extend(np.ones(10_000))
            return 2.0

    buffer.append(Value(buffer))
    assert (len(buffer), buffer.array[-1]) == (10_001, 2.0)


@pytest.mark.thread_unsafe(reason="each callback runs at the refusals of all threads")
def test_growth_from_a_callback_of_the_growth_is_refused():
    policy = memrt.Policy(name="growing", limit="1 MiB")
    buffer = Buffer(dtype="u1", policy=policy)
    errors = []

    def grow_inside(nbytes: int) -> None:
        try:
            buffer.resize(900_000)
        except MemoryError as error:
            errors.append(str(error))

    with memrt.debug.on_refusal(grow_inside), pytest.raises(memrt.OutOfMemoryError):
        buffer.resize(2_000_000)
    assert len(buffer) == 0
    assert all("memory is freed for its growth" in error for error in errors)


def test_threads_append_all_items():
    buffer = Buffer(dtype="i8")
    views = []

    def work(number):
        for i in range(2000):
            buffer.append(number)
            if i % 500 == 0:
                views.append(buffer.array)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.bincount(buffer.array).tolist() == [2000] * 4
    assert all(view.sum() <= 12_000 for view in views)


def test_forked_child_has_a_copy():
    buffer = Buffer(dtype="i8")
    buffer.extend(range(10))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            buffer.array[:] = 5
            buffer.extend(np.ones(100_000, "i8"))
            code = 0 if buffer.array[:11].tolist() == [5] * 10 + [1] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert buffer.array.tolist() == list(range(10))


def test_end_of_buffer_and_views_frees_the_memory():
    policy = memrt.Policy(name="growing")
    buffer = Buffer(1_000_000, policy=policy)
    view = buffer.array
    del buffer
    assert policy.stats().live == 1_000_000
    del view
    gc.collect()
    assert policy.stats().live == 0
