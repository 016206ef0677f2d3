"""memrt/import.h and memrt/numpy.h as an extension module uses them."""

import gc
import sys

import memrt
import numpy as np
import pytest
from memrt import _memrt

WRITEABLE, FORTRAN, OWNDATA = 0x400, 0x2, 0x4


def test_second_import_returns_the_same_table(probe):
    assert probe.import_again() is True


def test_table_of_another_abi_is_refused_with_advice(probe, monkeypatch):
    monkeypatch.setattr(_memrt, "api", probe.fake_table(99, 100))
    with pytest.raises(ImportError, match=r"ABI 99.*install a memrt with ABI 1.*build"):
        probe.import_again()


def test_memrt_has_follows_the_size_of_the_imported_table(probe, monkeypatch):
    assert probe.has_last_slot() is True
    size = _memrt.features()["table_bytes"]
    for claimed, has in ((size - 8, False), (size, True), (size + 800, True)):
        monkeypatch.setattr(_memrt, "api", probe.fake_table(1, claimed))
        assert probe.has_last_slot() is has


@pytest.mark.parametrize("value", [None, 5])
def test_import_of_package_without_capsule_raises(probe, monkeypatch, value):
    monkeypatch.setattr(_memrt, "api", value)
    with pytest.raises((ImportError, AttributeError)):
        probe.import_again()


def test_import_of_missing_package_raises_import_error(run_python, probe):
    result = run_python(
        "import sys; sys.modules['memrt'] = None\n"
        "try:\n import probe\n"
        "except ImportError as error:\n print(error)\n"
        "else:\n raise SystemExit(1)\n"
    )
    assert "memrt" in result.stdout


def test_c_array_has_a_capsule_base_and_no_owndata(probe):
    a = probe.make_array(100)
    assert type(a.base).__name__ == "PyCapsule"
    assert '"memrt.meminfo"' in repr(a.base)
    assert a.flags.writeable
    assert not a.flags.owndata
    assert memrt.meminfo(a).nbytes == 100


def test_to_array_ignores_the_owndata_flag(probe):
    a = probe.to_array(memrt.alloc(8), (8,), "u1", None, 0, WRITEABLE | OWNDATA)
    assert not a.flags.owndata


def test_to_array_applies_flags_strides_and_offset(probe):
    mi = memrt.alloc(96)
    a = probe.to_array(mi, (3, 4), "f8", None, 0, FORTRAN)
    assert (a.strides, a.flags.writeable) == ((8, 24), False)
    b = probe.to_array(mi, (2,), "f8", (-8,), 8, WRITEABLE)
    assert b.ctypes.data == mi.address + 8
    assert b.flags.writeable


def test_each_c_array_takes_and_drops_a_single_reference(probe):
    mi = memrt.alloc(80)
    arrays = [probe.to_array(mi, (10,), "f8", None, 0, 0) for _ in range(5)]
    assert mi.refcount == 6
    views = [a[3:] for a in arrays]
    assert mi.refcount == 6
    del arrays, views
    assert mi.refcount == 1


def test_refused_array_layout_drops_the_reference(probe):
    mi = memrt.alloc(80)
    for shape, dtype in (((11,), "f8"), ((2,), "O"), ((-1,), "f8")):
        with pytest.raises((ValueError, TypeError)):
            probe.to_array(mi, shape, dtype, None, 0, 0)
        assert mi.refcount == 1
    too_many = (1,) * (65 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 33)
    with pytest.raises(ValueError, match="dim"):
        probe.to_array(mi, too_many, "f8", None, 0, 0)
    assert mi.refcount == 1


@pytest.mark.parametrize("step", ["capsule", "array", "base"])
def test_failed_array_creation_frees_memory_and_dtype_once(step, steps):
    dtype = np.dtype([("x", "u1")])
    before = sys.getrefcount(dtype)
    with pytest.raises((RuntimeError, ValueError)):
        steps.make(step, dtype)
    assert steps.ended() == 1
    assert sys.getrefcount(dtype) == before
    array = steps.make("", dtype)
    assert steps.ended() == 0
    del array
    assert steps.ended() == 1
    assert sys.getrefcount(dtype) == before


def test_failed_set_base_object_consumes_the_reference(probe):
    mi = memrt.alloc(80)
    a = probe.to_array(mi, (10,), "f8", None, 0, 0)
    capsule = mi.__memrt_meminfo__()
    assert mi.refcount == 3
    with pytest.raises(ValueError, match="more than once"):
        probe.set_base(a, capsule)
    del capsule
    assert mi.refcount == 2
    del a
    assert mi.refcount == 1


def test_adopt_destructor_runs_once_and_not_if_adoption_fails(probe):
    assert probe.adopt_counting() == (True, 1)
    with memrt.testing.fail_allocations(every=1):
        assert probe.adopt_counting() == (None, 0)


def test_capsule_consumed_many_times_is_released_once(probe):
    capsule = probe.make_capsule(80)
    arrays = [memrt.as_array(capsule, dtype="f8") for _ in range(3)]
    mi = memrt.meminfo(capsule)
    assert mi.refcount == 5
    del capsule, arrays
    gc.collect()
    assert mi.refcount == 1


def test_cpp_module_can_use_the_extension_headers(compile_module):
    module = compile_module("cplusplus.cpp")
    a = module.zeros(100)
    assert not a.any()
    assert memrt.meminfo(a).nbytes == 100


def test_reference_of_c_code_keeps_memory_alive(probe):
    held = probe.hold(memrt.zeros(100))
    gc.collect()
    assert memrt.stats().live >= 800
    probe.release(held)
    held = probe.hold(memrt.zeros(100))
    probe.release_without_gil(held, True)
