"""Arrays in CUDA memory: attributes, copies, streams, accounts, and NumPy's pinned arrays."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import memrt
import numpy as np
import pytest
from memrt import _memrt
from memrt.cuda import Array, CudaError, Stream, empty

KINDS = ["device", "managed", "pinned"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [None, 1, 2, Stream])
def test_written_values_read_back_unchanged(kind, stream):
    stream = stream() if stream is Stream else stream
    array = empty((3, 4), "f4", kind=kind, stream=stream)
    values = np.arange(12, dtype="f4").reshape(3, 4)
    array.copy_from_host(values)
    np.testing.assert_array_equal(array.copy_to_host(), values)


def test_array_attributes_match_arguments_of_empty():
    array = empty((2, 3), "i2", name="grid")
    assert (array.shape, array.strides, array.ndim, array.size) == ((2, 3), (6, 2), 2, 6)
    assert (array.dtype, array.nbytes, len(array)) == (np.dtype("i2"), 12, 2)
    assert (array.kind, array.device, array.stream, array.readonly) == ("device", 0, None, False)
    assert (array.meminfo.name, array.meminfo.nbytes) == ("grid", 12)
    assert repr(array) == "<memrt.cuda.Array int16 (2, 3), device, device 0>"


def test_array_constructor_is_refused():
    with pytest.raises(TypeError, match="has no constructor"):
        Array()


def test_array_without_dimensions_has_no_length():
    with pytest.raises(TypeError):
        len(empty(()))


BAD = [
    ({"shape": -1}, ValueError),
    ({"shape": 1.5}, TypeError),
    ({"shape": 1, "kind": "moon"}, ValueError),
    ({"shape": 1, "device": -1}, ValueError),
    ({"shape": 1, "device": 64}, ValueError),
    ({"shape": 1, "device": 63}, CudaError),
    ({"shape": 1, "dtype": object}, TypeError),
    ({"shape": 1, "stream": "x"}, TypeError),
    ({"shape": 1, "name": "x" * 64}, ValueError),
    ({"shape": 2**64}, MemoryError),
    ({"shape": 2**59}, MemoryError),
]


@pytest.mark.parametrize(("arguments", "error"), BAD)
def test_invalid_arguments_of_empty_are_refused(arguments, error):
    with pytest.raises(error):
        empty(**arguments)


INDICES = [0, -1, np.s_[1:], np.s_[::-2], np.s_[..., 1], np.s_[2, None, ::3], np.s_[:, 5:5], "x"]


@pytest.mark.parametrize("index", INDICES)
def test_index_gives_same_view_as_numpy(index):
    dtype = [("x", "i4"), ("y", "f4")] if index == "x" else "i4"
    values = np.zeros((3, 7), dtype)
    values[...] = np.arange(21).reshape(3, 7)
    array = empty((3, 7), dtype)
    array.copy_from_host(values)
    view = array[index]
    assert isinstance(view, Array)
    assert view.meminfo == array.meminfo
    np.testing.assert_array_equal(view.copy_to_host(), values[index])


@pytest.mark.parametrize("index", [[0, 1], True, np.array([0]), 1.0, slice("x"), (0, [1])])
def test_index_of_unsupported_type_is_refused(index):
    with pytest.raises((IndexError, TypeError)):
        empty((3, 7))[index]


@pytest.mark.parametrize("index", [3, (0, 7), "x", (0, 0, 0)])
def test_invalid_index_raises_index_error(index):
    with pytest.raises(IndexError):
        empty((3, 7))[index]


@pytest.mark.parametrize("index", [np.s_[::2], np.s_[:, ::-1], np.s_[1], np.s_[:, 3], np.s_[1, 1]])
def test_write_to_view_changes_only_elements_of_view(index):
    array = empty((3, 7), "i4")
    array.copy_from_host(0)
    array[index].copy_from_host(5)
    expected = np.zeros((3, 7), "i4")
    expected[index] = 5
    np.testing.assert_array_equal(array.copy_to_host(), expected)


def test_copy_to_host_fills_given_array():
    array = empty((2, 3), "i4")
    array.copy_from_host([[1, 2, 3], [4, 5, 6]])
    out = np.zeros((3, 2), "i4").T
    assert array.copy_to_host(out) is out
    np.testing.assert_array_equal(out, [[1, 2, 3], [4, 5, 6]])


def read_only() -> np.ndarray:
    out = np.zeros((2, 3), "i4")
    out.flags.writeable = False
    return out


@pytest.mark.parametrize("out", [np.zeros(6, "i4"), np.zeros((2, 3)), read_only()])
def test_copy_to_host_refuses_unsuitable_output(out):
    with pytest.raises(ValueError, match=r"out must be"):
        empty((2, 3), "i4").copy_to_host(out)


def test_view_of_many_close_pieces_is_read_by_single_copy(fake):
    array = empty((100, 4), "u1")
    fake.reset()
    array[:, :2].copy_to_host()
    assert fake.calls("cuMemcpy") == 1


def test_view_of_distant_elements_is_read_by_separate_copies(fake):
    array = empty((3, 1000), "u1")
    fake.reset()
    array[:, 0].copy_to_host()
    assert fake.calls("cuMemcpy") == 3


@pytest.mark.parametrize("kind", ["managed", "pinned"])
def test_as_numpy_views_host_readable_memory(machine, kind):
    stream = Stream()
    array = empty((2, 50), "u1", kind=kind, stream=stream)
    machine.launch(stream.handle, array.meminfo.address, 3, 100)
    host = array.T.as_numpy()
    assert (host.shape, set(host.ravel())) == ((50, 2), {3})
    array.release()
    host[:] = 4
    assert memrt.meminfo(host).nbytes == 100


def test_device_memory_gives_no_numpy_array_or_buffer():
    array = empty(10)
    for touch in (array.as_numpy, lambda: memoryview(array.meminfo)):
        with pytest.raises(BufferError, match="device"):
            touch()
    with pytest.raises(BufferError):
        memrt.as_array(array.meminfo)
    with pytest.raises(BufferError):
        np.frombuffer(array.meminfo)


def test_numpy_does_not_convert_cuda_array_implicitly():
    for convert in (np.asarray, np.sum, lambda array: np.ones(10) + array):
        with pytest.raises(TypeError, match="copy_to_host"):
            convert(empty(10))


def test_meminfo_and_holders_accept_cuda_array():
    array = empty(10)
    assert memrt.meminfo(array) == array.meminfo
    assert memrt.is_managed(array)
    assert memrt.holders(array).nbytes == 80


def test_diagnostics_do_not_touch_device_memory():
    with memrt.debug.tracking():
        array = empty(10, name="watched")
        assert "watched" in [buffer.name for buffer in memrt.debug.live()]
        assert memrt.holders(array.meminfo).refcount == 1
        memrt.debug.retention()
        repr(array.meminfo)
        memrt.release_unused()


def test_array_is_freed_in_stream_order(fake):
    stream = Stream()
    array = empty(100, "u1", stream=stream)
    fake.launch(stream.handle, array.meminfo.address, 1, 100)
    fake.reset()
    del array
    assert fake.calls("cuMemFreeAsync") == 1
    assert fake.calls("cuStreamSynchronize", "cuMemFree_v2") == 0


def test_fake_driver_counts_wild_addresses_and_streams_as_faults(fake):
    stream = Stream()
    host = np.zeros(5000, "u1")
    fake.launch(stream.handle, host.ctypes.data + 1, 7, 4998)  # host memory is allowed
    stream.synchronize()
    assert (fake.faults(), host.sum()) == (0, 7 * 4998)
    for wild in (4096, 2**64 - 8192):
        fake.launch(stream.handle, wild, 1, 8)
    stream.synchronize()
    assert fake.faults() == 2
    fake.launch(0x1000, host.ctypes.data, 1, 8)  # no stream has this handle
    assert fake.faults() == 3
    fake.reset()


def test_free_waits_for_work_in_other_streams(fake):
    first, second = Stream(), Stream()
    array = empty(100, "u1", stream=first)
    fake.launch(second.handle, array.meminfo.address, 1, 100)
    array.used(second)
    del array
    first.synchronize()
    second.synchronize()
    assert fake.faults() == 0


def test_stream_is_destroyed_with_last_reference(fake):
    stream = Stream()
    array = empty(3, stream=stream)
    del stream
    assert fake.calls("cuStreamDestroy_v2") == 0
    del array
    gc.collect()
    assert fake.calls("cuStreamDestroy_v2") == 1


class Foreign:
    """A stream of another library."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return self.stream.__cuda_stream__()


def test_foreign_stream_lives_as_long_as_memory():
    own = Stream()
    assert own.__cuda_stream__() == (0, own.handle)
    stream = Foreign(own)
    alive = weakref.ref(stream)
    array = empty(3, stream=stream)
    assert array.stream == own.handle
    view = array[1:]
    del stream, array
    gc.collect()
    assert alive() is not None
    del view
    gc.collect()
    assert alive() is None


def test_largest_stream_handle_is_passed_to_the_driver(fake):
    with pytest.raises(memrt.cuda.CudaError):
        empty(3, stream=2**64 - 1)
    fake.reset()  # clears the fault: no such stream exists


@pytest.mark.parametrize("handle", [-1, 2**64, "x", True, 1.5])
def test_foreign_stream_with_bad_handle_is_refused(handle):
    class Bad:
        ptr = handle

    with pytest.raises((TypeError, ValueError), match="handle of Bad is invalid"):
        empty(3, stream=Bad())


@pytest.mark.parametrize("kind", KINDS)
def test_each_memory_kind_has_own_stats(kind):
    before = memrt.cuda.stats(kind)
    array = empty(1000, "u1", kind=kind)
    during = memrt.cuda.stats(kind)
    assert (during.live - before.live, during.alloc - before.alloc) == (1000, 1)
    assert during.peak >= during.live
    assert array.meminfo.policy == f"cuda {kind}"
    del array
    after = memrt.cuda.stats(kind)
    assert (after.live, after.free - before.free) == (before.live, 1)


def test_device_memory_counts_in_scope():
    with memrt.scope("device work") as scope:
        array = empty(1000, "u1")
    assert scope.stats().adopted == 1000
    del array
    assert scope.stats().adopted == 0


def test_allocation_above_limit_raises_memory_error():
    used = memrt.cuda.stats("managed").live
    memrt.cuda.set_limit("managed", used + 1000)
    try:
        with pytest.raises(MemoryError, match=f"the limit is {used + 1000} bytes"):
            empty(1001, "u1", kind="managed")
        empty(1000, "u1", kind="managed")
    finally:
        memrt.cuda.set_limit("managed", None)
    assert memrt.cuda.stats("managed").limit is None


@pytest.mark.parametrize("nbytes", [-1, 1.5, "1M"])
def test_invalid_limit_is_refused(nbytes):
    with pytest.raises((ValueError, TypeError)):
        memrt.cuda.set_limit("device", nbytes)


@pytest.mark.parametrize("kind", ["host", "moon", None])
def test_unknown_memory_kind_is_refused(kind):
    with pytest.raises(ValueError, match="one of device, managed, pinned"):
        memrt.cuda.stats(kind)
    with pytest.raises(ValueError, match="one of"):
        memrt.cuda.set_limit(kind, 5)


ALLOCATIONS = [
    ("cuMemAlloc_v2", "device"),
    ("cuMemAllocManaged", "managed"),
    ("cuMemHostAlloc", "pinned"),
]
ERRORS = [2, 1, 3, 4, 100, 201, 400, 700, 709, 719, 802, 999, 12345]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("function", "kind"), ALLOCATIONS)
def test_driver_allocation_error_raises_exception(fake, function, kind, error):
    fake.fail(function, error)
    with pytest.raises(MemoryError if error == 2 else CudaError, match=r"CUDA|unknown"):
        empty(3, kind=kind)
    assert empty(3, kind=kind).size == 3


STEPS = [
    ("cuMemcpy", lambda array, stream: array.copy_to_host()),
    ("cuMemcpy", lambda array, stream: array.copy_from_host(1)),
    ("cuMemcpyAsync", lambda array, stream: array.copy_to_host(stream=stream)),
    ("cuStreamSynchronize", lambda array, stream: array.copy_from_host(1, stream=stream)),
    ("cuStreamSynchronize", lambda array, stream: stream.synchronize()),
    ("cuStreamCreate", lambda array, stream: Stream()),
    ("cuPointerGetAttribute", lambda array, stream: memrt.from_cuda_array_interface(array)),
    ("cuCtxPushCurrent_v2", lambda array, stream: array.copy_to_host()),
    ("cuCtxPushCurrent_v2", lambda array, stream: empty(3)),
]


@pytest.mark.parametrize(("function", "step"), STEPS)
def test_driver_failure_raises_error_with_function_name(fake, function, step):
    array, stream = empty(3), Stream()
    fake.fail(function, 700)
    with pytest.raises(CudaError, match=f"{function} failed with"):
        step(array, stream)
    step(array, stream)


def test_failed_stream_wait_releases_producer(fake):
    stream = Stream()
    array = empty(3, stream=stream)
    before = sys.getrefcount(array)
    fake.fail("cuStreamSynchronize", 700)
    with pytest.raises(CudaError):
        memrt.from_cuda_array_interface(array)
    assert sys.getrefcount(array) == before


FREES = [
    ("device", None, "cuMemFree_v2"),
    ("device", Stream, "cuMemFreeAsync"),
    ("managed", None, "cuMemFree_v2"),
    ("managed", Stream, "cuStreamSynchronize"),
    ("pinned", None, "cuCtxSynchronize"),
    ("pinned", Stream, "cuStreamSynchronize"),
]


@pytest.mark.parametrize(("kind", "stream", "function"), FREES)
def test_gil_is_released_while_the_driver_frees(fake, kind, stream, function):
    """While freeing, a driver may wait for work that waits for Python."""
    array = empty(3, kind=kind, stream=stream and stream())
    ended = threading.Event()
    seen = []

    def let_go():
        while not fake.holds() and not ended.wait(0.001):
            pass
        seen.append(fake.holds())  # between two calls, the thread needs the GIL
        fake.let_go()

    thread = threading.Thread(target=let_go)
    thread.start()
    fake.hold(function)
    del array
    ended.set()
    thread.join()
    assert seen == [True]
    assert fake.faults() == 0


def test_numpy_arrays_of_pinned_policy_are_pinned():
    before = memrt.cuda.stats("pinned").live
    with memrt.Policy(pinned=True, name="pinned") as policy:
        array = np.ones((100, 100))
        zeros = np.zeros(1000)
    assert memrt.handler_name(array) == "memrt:pinned"
    assert memrt.cuda.stats("pinned").live - before > array.nbytes + zeros.nbytes
    assert (array.sum(), zeros.sum()) == (10000, 0)
    assert policy.stats().live == array.nbytes + zeros.nbytes
    array.resize(200, 100)
    assert array.sum() == 10000
    del array, zeros, policy


def test_pinned_policy_aligns_memrt_array():
    policy = memrt.Policy(pinned=True, alignment=65536)
    array = memrt.zeros(1000, policy=policy)
    assert array.ctypes.data % 65536 == 0
    assert memrt.meminfo(array).policy == "policy"
    del array, policy


def test_pinned_policy_refuses_cache_limit():
    with pytest.raises(ValueError, match="pinned"):
        memrt.Policy(pinned=True, cache_limit="1M")


def test_dropped_pinned_array_is_kept_for_next_array(machine):
    memrt.release_unused()
    with memrt.Policy(pinned=True):
        first = np.ones(100_000)
        address = first.ctypes.data
        del first
        kept = memrt.cuda.stats("pinned").cached
        second = np.zeros(100_000)
    assert (second.ctypes.data, second.sum()) == (address, 0)
    assert kept - memrt.cuda.stats("pinned").cached > 800_000
    del second
    assert memrt.release_unused() > 800_000
    assert memrt.cuda.stats("pinned").cached == 0


def test_kept_pinned_memory_has_no_pending_work(machine):
    """A device may still write an array that the program drops."""
    stream = Stream()
    first = empty(1_000_000, "u1", kind="pinned")
    address = first.meminfo.address
    machine.launch(stream.handle, address, 7, 1_000_000)
    del first
    second = empty(1_000_000, "u1", kind="pinned")
    assert second.meminfo.address == address
    second.as_numpy()[:] = 1
    stream.synchronize()
    assert second.as_numpy().sum() == 1_000_000


def test_pinned_limit_applies_to_numpy_arrays():
    memrt.cuda.set_limit("pinned", memrt.cuda.stats("pinned").live + 10_000)
    try:
        with memrt.Policy(pinned=True), pytest.raises(MemoryError):
            np.ones(10_000)
    finally:
        memrt.cuda.set_limit("pinned", None)


def run(code: str, **environment: str) -> str:
    import os

    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


WITHOUT = """
import memrt
import numpy as np
print(memrt.cuda.available(), memrt.cuda.why_not())
def refused(call):
    try:
        call()
    except memrt.cuda.CudaError as error:
        print(error)
refused(lambda: memrt.cuda.empty(3))
refused(lambda: memrt.cuda.Stream())
refused(lambda: memrt.Policy(pinned=True))
print(memrt.cuda.stats().live, memrt.zeros(3).sum(), len(memrt.debug.policies()))
"""


def test_missing_driver_gives_reason_and_rest_still_works():
    lines = run(WITHOUT, MEMRT_CUDA_DRIVER="/no/such/driver.so").splitlines()
    reason = "the CUDA driver was not found: /no/such/driver.so: cannot open shared object file: "
    assert lines[0].startswith(f"False {reason}")
    assert all(line.startswith(reason) for line in lines[1:4])
    assert lines[-1].split()[:2] == ["0", "0.0"]


FORKED = """
import os, memrt
array = memrt.cuda.empty(3, stream=1)
child = os.fork()
if child == 0:
    code = 1
    try:
        array.__cuda_array_interface__
    except memrt.cuda.CudaError as error:
        code = 0 if "fork" in str(error) else 2
    del array
    os._exit(code)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
array.copy_from_host(1)
print(array.copy_to_host())
"""


def test_forked_child_drops_array_but_exports_no_address(fake):
    assert run(FORKED, MEMRT_CUDA_DRIVER=fake.path).split() == ["0", "[1.", "1.", "1.]"]


ENDING = """
import memrt, sys
import numpy as np
stream = memrt.cuda.Stream()
kept = [memrt.cuda.empty(3, kind=kind, stream=stream) for kind in ("device", "managed", "pinned")]
taken = memrt.from_cuda_array_interface(kept[0])
with memrt.Policy(pinned=True):
    sys.kept = np.ones(1000)
"""


def test_process_exits_cleanly_with_live_arrays(fake):
    assert run(ENDING, MEMRT_CUDA_DRIVER=fake.path) == ""
    assert run(ENDING, MEMRT_CUDA_DRIVER=fake.path, MEMRT_CHECK="1") == ""


def test_unknown_memory_kind_raises_value_error(machine):
    with pytest.raises(ValueError, match="memory must be a kind of CUDA memory, got 99"):
        _memrt.cuda_alloc(8, 99, 0, 0, None, None)


def test_cuda_call_on_host_buffer_raises_type_error(machine):
    buffer = memrt.alloc(8)
    assert _memrt.cuda_info(buffer) is None
    for call in (_memrt.cuda_used, _memrt.cuda_wait):
        with pytest.raises(TypeError, match="not in CUDA memory"):
            call(buffer, 0)
    with pytest.raises(TypeError, match="not in CUDA memory"):
        _memrt.cuda_read(buffer, 0, bytearray(4), 0)
