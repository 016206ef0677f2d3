"""What memrt's design takes for granted of NumPy, stated so that a change there is noticed."""

import gc
import pickle

import memrt
import numpy as np
import pytest
from memrt import _memrt

# Tried with NumPy 1.26, 2.0 and 2.4.


def test_the_handler_that_numpy_comes_with_is_named_default_allocator():
    assert memrt.handler_name() == "default_allocator"


def test_numpy_itself_does_not_align_to_cache_lines(libc_malloc):
    arrays = [np.empty(100_000 + i) for i in range(64)]
    assert any(array.ctypes.data % 64 for array in arrays)


def test_the_handler_is_per_context_and_setting_it_returns_the_one_before():
    before = _memrt.get_handler()
    assert _memrt.set_handler(_memrt.default_handler()) is before
    assert _memrt.set_handler(before) is _memrt.default_handler()


def test_only_the_owner_of_data_has_a_handler():
    a = np.ones(10)
    assert memrt.handler_name(a) == "default_allocator"
    assert memrt.handler_name(np.frombuffer(bytes(8))) is None


def test_arrays_are_invisible_to_the_cycle_collector():
    assert not gc.is_tracked(np.ones(10))


def test_a_slice_of_an_array_over_a_capsule_has_the_array_for_its_base(probe):
    a = probe.make_array(100)
    assert a[3:].base is a


def test_a_chain_of_views_is_collapsed_to_the_array_that_owns():
    a = np.ones(10)
    assert a[1:][1:][1:].base is a
    b = memrt.zeros(10)
    assert b[1:][1:].base is b


@pytest.mark.parametrize(
    ("protocol", "size", "handler"),
    [(2, 100, "memrt:in force"), (4, 100, "memrt:in force"), (4, 8000, None), (5, 8000, None)],
)
def test_pickles_come_back_on_memory_that_depends_on_protocol_and_size(protocol, size, handler):
    for source in (np.zeros(size, "u1"), memrt.zeros(size, "u1")):
        with memrt.Policy(name="in force"):
            a = pickle.loads(pickle.dumps(source, protocol))
        assert memrt.handler_name(a) == handler


def test_files_are_loaded_through_the_handler_and_mapped_without_it(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(100))
    with memrt.Policy(name="file"):
        assert memrt.handler_name(np.load(tmp_path / "a.npy")) == "memrt:file"
        assert memrt.handler_name(np.load(tmp_path / "a.npy", mmap_mode="r")) is None
        assert memrt.handler_name(np.memmap(tmp_path / "a.npy")) is None
        assert memrt.handler_name(np.frombuffer(bytes(80))) is None


def test_an_array_over_a_capsule_cannot_be_made_writeable_again_but_one_over_a_meminfo_can(probe):
    by_capsule, by_meminfo = probe.make_array(8), memrt.zeros(8)
    for a in (by_capsule, by_meminfo):
        a.flags.writeable = False
    by_meminfo.flags.writeable = True
    with pytest.raises(ValueError, match="WRITEABLE"):
        by_capsule.flags.writeable = True


def test_a_handler_given_no_memory_is_a_memory_error_that_names_the_array(recorder):
    handler = recorder.new(None, "failing")
    before = _memrt.set_handler(handler)
    try:
        recorder.fail_at(handler, 1)
        with pytest.raises(MemoryError, match="Unable to allocate"):
            np.empty((100, 100))
    finally:
        _memrt.set_handler(before)
