"""memrt.adaptors: properties that adaptors add to allocators of policies."""

import ctypes
import gc
import mmap
import re
import tempfile
import threading
import weakref

import memrt
import numpy as np
import pytest
from memrt import _memrt, adaptors


def test_counting_counts_the_calls_of_a_stack():
    inner = adaptors.counting()
    outer = adaptors.counting(adaptors.guard(inner))
    with memrt.Policy(allocator=outer):
        array = np.zeros(1000)
        array.resize(2000, refcheck=False)
    del array
    assert outer.counts.allocations == outer.counts.frees >= 1
    assert outer.counts.resizes == 1
    assert outer.counts.in_use == 0
    assert outer.counts.peak >= 16000
    gc.collect()
    assert inner.counts.in_use == 0


def test_limiting_refuses_with_memory_error():
    limited = adaptors.counting(adaptors.limiting(limit="1 MiB"))
    with memrt.Policy(allocator=limited):
        kept = np.empty(100000)
        with pytest.raises(MemoryError):
            np.empty(100000)
        del kept
        np.empty(100000)
    assert limited.counts.refusals >= 1


def test_aligning_serves_buffers_without_alignment():
    def allocate(nbytes, alignment):
        assert alignment <= 16
        return bytearray(nbytes)

    with memrt.Policy(4096, allocator=adaptors.aligning(allocate)):
        arrays = [np.ones(n) for n in (1, 10, 1000)]
    assert all(array.ctypes.data % 4096 == 0 for array in arrays)


def test_retrying_frees_memory_and_repeats():
    kept, calls = [], []

    def release(size, alignment):
        calls.append((size, alignment))
        return bool(kept) and kept.pop() is not None

    stack = adaptors.retrying(adaptors.limiting(limit=1_000_000), function=release)
    with memrt.Policy(allocator=stack):
        kept.append(np.empty(100000))
        array = np.empty(100000)
        with pytest.raises(MemoryError):
            np.empty(100000)
    assert not kept
    assert len(calls) >= 2
    assert array.nbytes == 800000


def test_exception_of_the_retry_function_is_unraisable(monkeypatch):
    seen = []
    monkeypatch.setattr("sys.unraisablehook", lambda u: seen.append(u.exc_type))

    def fail(size, alignment):
        raise LookupError

    stack = adaptors.retrying(adaptors.limiting(limit=100), function=fail)
    with memrt.Policy(allocator=stack), pytest.raises(MemoryError):
        memrt.empty(1000)
    assert set(seen) == {LookupError}


def test_logging_writes_lines_of_all_threads():
    with tempfile.TemporaryFile() as log:
        policy = memrt.Policy(allocator=adaptors.logging(file=log))

        def work():
            with policy:
                for n in range(50):
                    np.empty(n + 1000)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        log.seek(0)
        lines = log.read().decode().splitlines()
    assert len(lines) == 300
    assert all(re.fullmatch(r"(alloc|free),\d+,0x[0-9a-f]+,\d+,64,0", line) for line in lines)


def test_thread_safe_serves_arrays_of_several_threads():
    counts = adaptors.counting()
    policy = memrt.Policy(allocator=adaptors.thread_safe(adaptors.aligning(counts)))

    def work():
        with policy:
            for n in range(100):
                np.ones(n).resize(2 * n, refcheck=False)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts.counts.allocations == counts.counts.frees >= 300


@pytest.mark.parametrize(
    "upstream",
    [
        lambda: bytearray,
        lambda: adaptors.retrying(function=bool),
        lambda: adaptors.counting(adaptors.guard(adaptors.retrying(function=bool))),
    ],
)
def test_thread_safe_refuses_python_functions(upstream):
    made = upstream()
    with pytest.raises(TypeError, match=re.escape("must be C code, got Python functions")):
        adaptors.thread_safe(made)
    adaptors.counting(made)


def resident_bytes(array):
    page = mmap.PAGESIZE
    start = array.ctypes.data & -page
    size = array.ctypes.data + array.nbytes - start
    in_memory = (ctypes.c_ubyte * (size // page + 1))()
    mincore = ctypes.CDLL(None).mincore
    assert mincore(ctypes.c_void_p(start), ctypes.c_size_t(size), in_memory) == 0
    return sum(byte & 1 for byte in in_memory) * page


def test_prefetching_maps_pages_of_large_blocks():
    mapped = adaptors.prefetching(lambda n, a: mmap.mmap(-1, n, mmap.MAP_PRIVATE), threshold=2**21)
    with memrt.Policy(allocator=mapped):
        large, small = np.empty(2**21, np.uint8), np.empty(2**20, np.uint8)
    assert resident_bytes(large) >= 2**21
    assert resident_bytes(small) < 2**19


def test_adaptor_holds_its_function_until_the_last_block():
    def function(size, alignment):
        return False

    alive = weakref.ref(function)
    with memrt.Policy(allocator=adaptors.retrying(function=function)):
        array = np.ones(10)
    del function
    gc.collect()
    assert alive() is not None
    del array
    gc.collect()
    assert alive() is None


def test_adaptor_serves_a_single_policy():
    inner = adaptors.guard()
    outer = adaptors.counting(inner)
    for used in (inner, outer):
        if used is outer:
            policy = memrt.Policy(allocator=outer)
        with pytest.raises(ValueError, match="create an allocator for each policy"):
            memrt.Policy(allocator=used)
        with pytest.raises(ValueError, match="create an allocator for each policy"):
            adaptors.counting(used)
    del policy


@pytest.mark.parametrize(
    ("kind", "message", "make"),
    [
        (ValueError, "cannot create an adaptor", lambda: adaptors.aligning(honoured=24)),
        (ValueError, "cannot create an adaptor", lambda: adaptors.logging(file=-1)),
        (TypeError, "must be callable", lambda: adaptors.retrying(function=5)),
        (TypeError, "got int", lambda: adaptors.counting(5)),
        (TypeError, "threshold must be", lambda: adaptors.prefetching(threshold=1.5)),
        (ValueError, "threshold must be", lambda: adaptors.prefetching(threshold=-1)),
        (AttributeError, "got guard()", lambda: adaptors.guard().counts),
    ],
)
def test_bad_adaptor_is_refused(kind, message, make):
    with pytest.raises(kind, match=re.escape(message)):
        make()


def test_failed_adaptor_leaves_its_upstream_usable():
    upstream = _memrt.allocator_of_callables(lambda n, a: bytearray(n), None)
    with pytest.raises(ValueError, match="cannot create"):
        _memrt.allocator_adaptor(upstream, 99, 0, None, None, -1)
    memrt.Policy(allocator=adaptors.aligning(upstream))
