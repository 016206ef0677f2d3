"""Properties of NumPy that memrt's design relies on. A change in NumPy fails a test here."""

import gc
import pickle

import memrt
import numpy as np
import pytest
from memrt import _memrt

# Tried with NumPy 1.26, 2.0 and 2.4.


def test_default_handler_is_named_default_allocator():
    assert memrt.handler_name() == "default_allocator"


def test_numpy_does_not_align_to_cache_lines(libc_malloc):
    arrays = [np.empty(100_000 + i) for i in range(64)]
    assert any(array.ctypes.data % 64 for array in arrays)


def test_set_handler_returns_the_previous_handler():
    before = _memrt.get_handler()
    assert _memrt.set_handler(_memrt.default_handler()) is before
    assert _memrt.set_handler(before) is _memrt.default_handler()


def test_array_without_own_data_has_no_handler():
    a = np.ones(10)
    assert memrt.handler_name(a) == "default_allocator"
    assert memrt.handler_name(np.frombuffer(bytes(8))) is None


def test_arrays_are_not_tracked_by_the_cycle_collector():
    assert not gc.is_tracked(np.ones(10))


def test_slice_of_array_over_capsule_has_the_array_as_base(probe):
    a = probe.make_array(100)
    assert a[3:].base is a


def test_base_of_nested_views_is_the_first_array():
    a = np.ones(10)
    assert a[1:][1:][1:].base is a
    b = memrt.zeros(10)
    assert b[1:][1:].base is b


@pytest.mark.parametrize(
    ("protocol", "size", "handler"),
    [(2, 100, "memrt:in force"), (4, 100, "memrt:in force"), (4, 8000, None), (5, 8000, None)],
)
def test_unpickled_array_handler_depends_on_protocol_and_size(protocol, size, handler):
    for source in (np.zeros(size, "u1"), memrt.zeros(size, "u1")):
        with memrt.Policy(name="in force"):
            a = pickle.loads(pickle.dumps(source, protocol))
        assert memrt.handler_name(a) == handler


def test_np_load_uses_the_handler_and_memory_map_does_not(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(100))
    with memrt.Policy(name="file"):
        assert memrt.handler_name(np.load(tmp_path / "a.npy")) == "memrt:file"
        assert memrt.handler_name(np.load(tmp_path / "a.npy", mmap_mode="r")) is None
        assert memrt.handler_name(np.memmap(tmp_path / "a.npy")) is None
        assert memrt.handler_name(np.frombuffer(bytes(80))) is None


def test_only_array_over_meminfo_can_become_writeable_again(probe):
    by_capsule, by_meminfo = probe.make_array(8), memrt.zeros(8)
    for a in (by_capsule, by_meminfo):
        a.flags.writeable = False
    by_meminfo.flags.writeable = True
    with pytest.raises(ValueError, match="WRITEABLE"):
        by_capsule.flags.writeable = True


@pytest.mark.thread_unsafe(reason="threads share the recorder")
def test_handler_that_returns_null_raises_memory_error(recorder):
    handler = recorder.new(None, "failing")
    before = _memrt.set_handler(handler)
    try:
        recorder.fail_at(handler, 1)
        with pytest.raises(MemoryError, match="Unable to allocate"):
            np.empty((100, 100))
    finally:
        _memrt.set_handler(before)
