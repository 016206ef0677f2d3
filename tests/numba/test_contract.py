"""memrt keeps the contract of Numba's runtime module, in Python and in the C helpers."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from pathlib import Path

import memrt
import numpy as np
import pytest
from jitted import ones
from numba import njit
from numba.core import types
from numba.core.registry import cpu_target
from numba.core.runtime import _nrt_python as nrt
from numba.core.runtime import rtsys
from numba.core.unsafe.nrt import NRT_get_api
from runtimes import COUNTERS, DTOR, MANAGED_DTOR, PYTHON_SIGNATURES, SIGNATURES, Counted, word

HUGE = 2**62


@pytest.fixture(scope="module", autouse=True)
def initialized_runtime():
    """Initialize Numba's runtime, which otherwise happens at the first compilation."""
    rtsys.initialize(cpu_target.target_context)


tables = []
note_table = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(tables.append)


@njit
def note_table_of_compiled_code():
    note_table(NRT_get_api())


@njit
def itself(a):
    return a


class Owner:
    alive = 0

    def __init__(self):
        Owner.alive += 1

    def __del__(self):
        Owner.alive -= 1


class ArrayStruct(ctypes.Structure):
    """Numba's struct of a two-dimensional array."""

    _fields_ = (
        ("meminfo", ctypes.c_void_p),
        ("parent", ctypes.c_void_p),
        ("nitems", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_ssize_t * 2),
        ("strides", ctypes.c_ssize_t * 2),
    )


def box(runtime, struct, writeable=1, dtype=np.float64):
    descr = np.dtype(dtype)
    return runtime.adapt_ndarray_to_python_acqref(
        ctypes.byref(struct), id(np.ndarray), 2, writeable, id(descr)
    )


# --- The module ---


def test_every_attribute_of_stock_numba_exists(on_stock):
    stock = {name for name in dir(on_stock.module) if not name.startswith("__")}
    assert stock - set(dir(nrt)) == set()


def test_every_helper_of_stock_numba_exists_as_an_address(on_stock):
    assert set(nrt.c_helpers) == set(on_stock.module.c_helpers)
    assert set(nrt.c_helpers) == set(SIGNATURES) | set(PYTHON_SIGNATURES)
    assert all(type(address) is int and address > 0 for address in nrt.c_helpers.values())


def test_module_has_the_version_of_memrt():
    assert nrt.memrt_version == memrt.__version__


def test_statistics_raise_until_enabled(run_python):
    code = """
import memrt.numba; memrt.numba.install()
from numba.core.runtime import _nrt_python as nrt, rtsys
assert nrt.memsys_stats_enabled() is False
for name in ("alloc", "free", "mi_alloc", "mi_free"):
    try:
        getattr(nrt, f"memsys_get_stats_{name}")()
    except RuntimeError as error:
        assert str(error) == "NRT stats are disabled.", error
    else:
        raise AssertionError(name)
nrt.memsys_enable_stats()
assert nrt.memsys_stats_enabled() is True
"""
    run_python(code)


def test_disabled_statistics_pause_without_a_reset(on_memrt):
    counted = Counted(on_memrt)
    held = on_memrt.MemInfo_alloc(8)
    nrt.memsys_disable_stats()
    nrt.memsys_disable_stats()
    on_memrt.release(on_memrt.MemInfo_alloc(8))
    nrt.memsys_enable_stats()
    assert counted.delta() == {"alloc": 1, "free": 0, "mi_alloc": 1, "mi_free": 0}
    on_memrt.release(held)
    assert counted.delta() == {"alloc": 1, "free": 1, "mi_alloc": 1, "mi_free": 1}


def test_use_cpython_allocator_is_accepted_with_live_blocks(on_memrt):
    held = on_memrt.MemInfo_alloc(8)
    assert nrt.memsys_use_cpython_allocator() is None
    on_memrt.release(held)


def test_after_shutdown_memory_is_freed_without_destructors(run_python):
    code = """
import memrt.numba; memrt.numba.install()
from numba.core.runtime import _nrt_python as nrt
from runtimes import DTOR, Counted, Runtime
runtime, seen = Runtime(nrt), []
dtor = DTOR(lambda data, size, info: seen.append(size))
counted = Counted(runtime)
makers = (runtime.MemInfo_alloc_dtor, runtime.MemInfo_alloc_dtor_safe,
          runtime.MemInfo_new_varsize_dtor)
before = [make(24, dtor) for make in makers]
runtime.release(makers[0](16, dtor))
assert seen == [16]
nrt.memsys_shutdown()
nrt.memsys_shutdown()
for mi in before:
    runtime.release(mi)
assert seen == [16]
delta = counted.delta()
assert delta["mi_alloc"] == delta["mi_free"] == 4, delta
assert delta["alloc"] == delta["free"] == 5, delta
"""
    run_python(code, env={"PYTHONPATH": str(Path(__file__).parent / "support")})


# --- MemInfos ---


@pytest.mark.parametrize(
    ("name", "blocks", "arguments"),
    [
        ("MemInfo_alloc", 1, ()),
        ("MemInfo_alloc_safe", 1, ()),
        ("MemInfo_alloc_aligned", 1, (32,)),
        ("MemInfo_alloc_safe_aligned", 1, (32,)),
        ("MemInfo_alloc_dtor", 1, (None,)),
        ("MemInfo_alloc_dtor_safe", 1, (None,)),
        ("MemInfo_new_varsize", 2, ()),
        ("MemInfo_new_varsize_dtor", 2, (None,)),
        ("allocate", 1, ()),
    ],
)
@pytest.mark.parametrize("size", [0, 1, 100, 5_000_000])
def test_meminfo_layout_and_counts_match_numba(on_memrt, name, blocks, arguments, size):
    counted = Counted(on_memrt)
    mi = getattr(on_memrt, name)(size, *arguments)
    assert word(mi, 0) == 1
    assert word(mi, 3) == on_memrt.MemInfo_data(mi) == on_memrt.get_data(mi) != 0
    assert word(mi, 4) == size
    if "safe" in name:
        assert ctypes.string_at(word(mi, 3), min(size, 1000)) == b"\xcb" * min(size, 1000)
    assert counted.delta() == {"alloc": blocks, "free": 0, "mi_alloc": 1, "mi_free": 0}
    on_memrt.MemInfo_release(mi)
    assert counted.delta() == {"alloc": blocks, "free": blocks, "mi_alloc": 1, "mi_free": 1}


@pytest.mark.parametrize("align", [0, 1, 7, 16, 24, 32, 64, 100, 4096, 1 << 20])
def test_data_alignment_rounds_up_to_a_power_of_two(on_memrt, align):
    for make in (on_memrt.MemInfo_alloc_aligned, on_memrt.MemInfo_alloc_safe_aligned):
        mi = make(100, align)
        assert word(mi, 3) % max(64, 1 << max(align - 1, 0).bit_length()) == 0
        ctypes.memset(word(mi, 3), 1, 100)
        on_memrt.release(mi)


@pytest.mark.parametrize("align", [2**31, 2**31 + 1, 2**32 - 1])
def test_alignment_above_the_maximum_returns_null(on_memrt, align):
    assert on_memrt.MemInfo_alloc_aligned(100, align) is None
    assert on_memrt.MemInfo_alloc_safe_aligned(100, align) is None


def test_call_dtor_after_inline_counting_frees_the_block(on_memrt):
    seen = []
    dtor = DTOR(lambda data, size, info: seen.append((data, size, info)))
    counted = Counted(on_memrt)
    mi = on_memrt.MemInfo_alloc_dtor(40, dtor)
    data = word(mi, 3)
    count = ctypes.c_size_t.from_address(mi)
    count.value += 2
    on_memrt.release(mi)
    count.value -= 2
    on_memrt.MemInfo_call_dtor(mi)
    assert seen == [(data, 40, None)]
    assert counted.delta() == {"alloc": 1, "free": 1, "mi_alloc": 1, "mi_free": 1}


@pytest.mark.parametrize(
    "name", ["MemInfo_alloc_dtor", "MemInfo_alloc_dtor_safe", "MemInfo_new_varsize_dtor"]
)
def test_destructor_gets_data_size_and_null_info(on_memrt, name):
    seen = []
    dtor = DTOR(lambda data, size, info: seen.append((data, size, info)))
    mi = getattr(on_memrt, name)(48, dtor)
    data = word(mi, 3)
    on_memrt.release(mi)
    assert seen == [(data, 48, None)]


def test_varsize_destructor_gets_the_resized_data(on_memrt):
    seen = []
    dtor = DTOR(lambda data, size, info: seen.append((data, size)))
    mi = on_memrt.MemInfo_new_varsize_dtor(8, dtor)
    ctypes.memset(word(mi, 3), 7, 8)
    moved = on_memrt.MemInfo_varsize_realloc(mi, 100_000)
    assert ctypes.string_at(moved, 8) == b"\x07" * 8
    assert (word(mi, 3), word(mi, 4)) == (moved, 100_000)
    on_memrt.release(mi)
    assert seen == [(moved, 100_000)]


def test_varsize_alloc_leaves_the_old_data_to_the_caller(on_memrt):
    mi = on_memrt.MemInfo_new_varsize(8)
    old = word(mi, 3)
    ctypes.memset(old, 9, 8)
    new = on_memrt.MemInfo_varsize_alloc(mi, 16)
    assert new != old
    assert ctypes.string_at(old, 8) == b"\x09" * 8
    on_memrt.MemInfo_varsize_free(mi, old)
    assert word(mi, 3) == new
    on_memrt.MemInfo_varsize_free(mi, new)
    assert word(mi, 3) == 0
    on_memrt.release(mi)


def test_external_allocator_allocates_and_frees_the_block(on_memrt):
    sample = on_memrt._nrt_get_sample_external_allocator()
    counted = Counted(on_memrt)
    mi = on_memrt.MemInfo_alloc_safe_aligned_external(100, 32, sample)
    assert nrt._MemInfo(mi).external_allocator == sample
    assert counted.delta() == {"alloc": 1, "free": 1, "mi_alloc": 1, "mi_free": 1}


def test_allocate_and_free_are_counted_and_free_accepts_null(on_memrt):
    counted = Counted(on_memrt)
    data = on_memrt.Allocate(0)
    assert data is not None
    on_memrt.Free(data)
    assert counted.delta() == {"alloc": 1, "free": 1, "mi_alloc": 0, "mi_free": 0}
    on_memrt.Free(None)


@pytest.mark.parametrize("size", [HUGE, 2**63, 2**64 - 1])
@pytest.mark.parametrize("name", ["MemInfo_alloc", "MemInfo_alloc_safe", "MemInfo_new_varsize"])
def test_impossible_size_returns_null_and_leaks_nothing(on_memrt, name, size):
    counted = Counted(on_memrt)
    assert getattr(on_memrt, name)(size) is None
    delta = counted.delta()
    assert delta["alloc"] == delta["free"]
    assert delta["mi_alloc"] == delta["mi_free"]


# --- The table ---


def test_jitted_code_and_the_helpers_get_the_same_table(on_memrt):
    note_table_of_compiled_code()
    assert tables[-1] == on_memrt.get_api()


def test_managed_block_destructor_gets_the_address_at_the_end(on_memrt):
    seen = []
    dtor = MANAGED_DTOR(seen.append)
    buffer = ctypes.create_string_buffer(8)
    mi = on_memrt.manage_memory(buffer, dtor)
    on_memrt.acquire(mi)
    on_memrt.release(mi)
    assert seen == []
    on_memrt.release(mi)
    assert seen == [ctypes.addressof(buffer)]


# --- _MemInfo ---


def test_meminfo_constructor_steals_a_reference(on_memrt):
    mi = on_memrt.MemInfo_alloc(24)
    on_memrt.acquire(mi)
    held = nrt._MemInfo(ptr=mi)
    assert (held.refcount, held.size, held.data) == (2, 24, word(mi, 3))
    assert held.external_allocator == 0
    assert held.parent is None
    held.acquire()
    assert held.refcount == 3
    held.release()
    del held
    assert word(mi, 0) == 1
    on_memrt.release(mi)


def test_meminfo_buffer_is_writable_and_adds_no_reference(on_memrt):
    held = nrt._MemInfo(on_memrt.MemInfo_alloc(24))
    view = memoryview(held)
    assert (view.obj is held, view.format, view.shape, view.readonly) == (True, "B", (24,), False)
    view[3] = 77
    assert ctypes.string_at(held.data, 4)[3] == 77
    assert held.refcount == 1


def test_meminfo_type_can_be_subclassed():
    class Mine(nrt._MemInfo):
        pass

    mi = rtsys.meminfo_alloc(8)
    mi.acquire()
    mine = Mine(int(re.search(r"0x[0-9a-f]+", repr(mi))[0], 16))
    assert mine.refcount == 2
    assert mine.data == mi.data
    del mine
    assert mi.refcount == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), TypeError),
        (("text",), TypeError),
        ((1.5,), TypeError),
        ((None,), TypeError),
        ((1, 2), TypeError),
        ((0,), ValueError),
        ((2**64,), OverflowError),
    ],
)
def test_meminfo_constructor_refuses_wrong_arguments(arguments, error):
    with pytest.raises(error):
        nrt._MemInfo(*arguments)


@pytest.mark.parametrize("arguments", [(), (1,), ("address", None), (2**65, None), (1, 2, 3)])
def test_meminfo_new_refuses_wrong_arguments(arguments):
    with pytest.raises((TypeError, OverflowError)):
        nrt.meminfo_new(*arguments)


def test_refcount_of_a_meminfo_without_data_raises(on_memrt):
    mi = on_memrt.MemInfo_new_varsize(8)
    on_memrt.MemInfo_varsize_free(mi, word(mi, 3))
    with pytest.raises(ValueError, match="invalid MemInfo"):
        nrt._MemInfo(mi).refcount  # noqa: B018 - the getter must raise


def test_adopted_memory_keeps_its_owner_until_the_last_release():
    gc.collect()
    alive = Owner.alive
    owner = Owner()
    mi = nrt.meminfo_new(0xDEADCAFE, owner)
    held = nrt._MemInfo(mi)
    assert held.parent is owner
    assert (held.data, held.size, held.refcount) == (0xDEADCAFE, 0, 1)
    del owner
    assert Owner.alive == alive + 1
    del held
    assert Owner.alive == alive


def test_meminfo_alloc_refuses_bad_sizes():
    with pytest.raises(MemoryError, match=f"Requested allocation of {HUGE} bytes failed"):
        rtsys.meminfo_alloc(HUGE)
    with pytest.raises(ValueError, match="negative"):
        rtsys.meminfo_alloc(-1)
    assert nrt.meminfo_alloc(-1) == 0
    with pytest.raises(TypeError):
        nrt.meminfo_alloc("many")


def test_meminfo_converts_to_a_python_object_and_back(on_memrt):
    mi = on_memrt.MemInfo_alloc(8)
    held = on_memrt.meminfo_as_pyobject(mi)
    assert type(held) is nrt._MemInfo
    assert on_memrt.meminfo_from_pyobject(held) == mi
    assert held.refcount == 2
    on_memrt.release(mi)


# --- Arrays ---


def test_unboxed_array_has_a_meminfo_that_holds_the_array(on_memrt):
    array = np.arange(12.0).reshape(3, 4)[:, ::2]
    struct = ArrayStruct()
    references = sys.getrefcount(array)
    assert on_memrt.adapt_ndarray_from_python(array, ctypes.byref(struct)) == 0
    assert sys.getrefcount(array) == references + 1
    assert (struct.parent, struct.data) == (id(array), array.ctypes.data)
    assert (struct.nitems, struct.itemsize) == (6, 8)
    assert (tuple(struct.shape), tuple(struct.strides)) == (array.shape, array.strides)
    on_memrt.release(struct.meminfo)
    assert sys.getrefcount(array) == references


def test_unboxing_a_non_array_returns_minus_1(on_memrt):
    struct = ArrayStruct()
    assert on_memrt.adapt_ndarray_from_python([1, 2], ctypes.byref(struct)) == -1
    assert struct.meminfo is None


def fresh_struct(runtime, mi):
    struct = ArrayStruct(meminfo=mi, nitems=6, itemsize=8)
    struct.data = None if mi is None else word(mi, 3)
    struct.shape[:] = (2, 3)
    struct.strides[:] = (24, 8)
    return struct


@pytest.mark.parametrize("writeable", [0, 1])
def test_boxed_array_acquires_its_meminfo_base(on_memrt, writeable):
    mi = on_memrt.MemInfo_alloc(48)
    array = box(on_memrt, fresh_struct(on_memrt, mi), writeable)
    assert type(array.base) is nrt._MemInfo
    assert array.base.refcount == 2
    assert (array.shape, array.strides) == ((2, 3), (24, 8))
    assert (array.flags.writeable, array.flags.owndata) == (bool(writeable), False)
    on_memrt.release(mi)
    assert array.base.refcount == 1


def test_boxed_array_without_a_meminfo_has_no_base(on_memrt):
    buffer = np.zeros(6)
    struct = fresh_struct(on_memrt, None)
    struct.data = buffer.ctypes.data
    array = box(on_memrt, struct)
    assert array.base is None
    assert not array.flags.owndata
    buffer[5] = 8
    assert array[1, 2] == 8


def test_boxing_an_unchanged_array_returns_the_parent(on_memrt):
    parent = np.arange(6.0).reshape(2, 3)
    struct = ArrayStruct()
    on_memrt.adapt_ndarray_from_python(parent, ctypes.byref(struct))
    assert box(on_memrt, struct) is parent
    assert box(on_memrt, struct, writeable=0) is parent
    other_dtype = box(on_memrt, struct, dtype=np.int64)
    assert other_dtype is not parent
    assert np.shares_memory(other_dtype, parent)
    struct.shape[0] = 1
    shorter = box(on_memrt, struct)
    assert shorter is not parent
    assert shorter.tolist() == [[0.0, 1.0, 2.0]]
    on_memrt.release(struct.meminfo)


def test_boxing_with_a_wrong_dtype_raises(on_memrt):
    mi = on_memrt.MemInfo_alloc(48)
    struct = fresh_struct(on_memrt, mi)
    thing = object()
    for descr in (None, id(thing)):
        with pytest.raises((TypeError, RuntimeError)):
            on_memrt.adapt_ndarray_to_python_acqref(
                ctypes.byref(struct), id(np.ndarray), 2, 1, descr
            )
    assert word(mi, 0) == 1
    on_memrt.release(mi)


def test_jitted_code_returns_its_argument_or_a_new_array():
    given = np.arange(4.0)
    assert itself(given) is given
    given.flags.writeable = False
    assert itself(given) is given
    made = ones(4)
    assert type(made.base) is nrt._MemInfo
    assert made.base.refcount == 1
    assert made.flags.writeable


def test_jitted_code_takes_and_returns_meminfos():
    held = rtsys.meminfo_alloc(16)

    @njit
    def same(mi):
        return mi

    again = same(held)
    assert again.data == held.data
    assert held.refcount == 2
    assert types.MemInfoPointer(types.voidptr) in [s[0] for s in same.signatures]


def test_counter_names_match_numba():
    assert rtsys.get_allocation_stats()._fields == COUNTERS
