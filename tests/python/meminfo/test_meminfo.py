"""MemInfo objects: attributes, refused requests, and the memory that they keep alive."""

import copy
import ctypes
import gc
import operator
import pickle
import sys
import weakref

import memrt
import numpy as np
import pytest


def test_alloc_has_requested_size_and_alignment():
    for align in (1, 16, 64, 256, 4096, 1 << 16):
        mi = memrt.alloc(100, alignment=align)
        assert (mi.nbytes, mi.address % max(align, 64)) == (100, 0)


def test_alloc_zero_returns_zeros_after_dirty_memory_is_freed():
    for size in (1, 100, 5000, 1 << 20):
        dirty = memrt.alloc(size)
        ctypes.memset(dirty.address, 0xFF, size)
        del dirty
        assert not np.frombuffer(memrt.alloc(size, zero=True), np.uint8).any()


def test_alloc_uses_named_policy_or_else_current_policy():
    named = memrt.Policy(name="named")
    with memrt.Policy(alignment=512, name="outer"):
        mi = memrt.alloc(10)
        assert (mi.policy, mi.address % 512) == ("outer", 0)
        assert memrt.alloc(10, policy=named).policy == "named"
    assert memrt.alloc(10).policy == "default"


def test_alloc_sets_name_kind_and_refcount_without_parent():
    mi = memrt.alloc(24, name="temperature")
    assert mi.refcount == 1
    assert mi.parent is None
    assert mi.external_allocator is None
    assert mi.name == "temperature"
    assert (mi.kind, mi.readonly) == ("inline", False)


def test_name_can_be_set_and_removed():
    mi = memrt.alloc(8)
    assert mi.name is None
    mi.name = "größe"
    assert mi.name == "größe"
    mi.name = None
    assert mi.name is None
    mi.name = "again"
    del mi.name
    assert mi.name is None


def test_invalid_name_is_refused_and_old_name_stays():
    mi = memrt.alloc(8, name="old")
    with pytest.raises(ValueError, match="63 bytes"):
        mi.name = "x" * 64
    with pytest.raises(ValueError, match="zero byte"):
        mi.name = "a\0b"
    with pytest.raises(TypeError):
        mi.name = 7
    assert mi.name == "old"
    mi.name = "x" * 63
    assert mi.name == "x" * 63


def test_repr_shows_name_size_address_kind_count_and_policy():
    text = repr(memrt.alloc(4096, name="field"))
    for part in ("'field'", "4096 bytes", "0x", "inline", "1 reference", "'default'"):
        assert part in text
    assert "read-only" in repr(memrt.wrap(1 << 20, 10, readonly=True))


@pytest.mark.parametrize("size", [-1, -(2**70)])
def test_negative_size_raises_value_error(size):
    with pytest.raises(ValueError, match="0 or more"):
        memrt.alloc(size)


@pytest.mark.parametrize(
    "size", [sys.maxsize, 2**63, 2**64 - 1, 2**64 - 64, 2**64 - 200, 2**64, 2**80]
)
def test_impossible_size_raises_memory_error(size):
    failed = memrt.stats().failed
    for align in (1, 64, 1 << 30):
        with pytest.raises(MemoryError, match=str(size)):
            memrt.alloc(size, alignment=align)
    assert memrt.stats().failed - failed == (3 if size < 2**64 else 0)


@pytest.mark.parametrize("align", [0, 3, -1, 2**31, 2**62, 2**63, 2**64, 2**80, 65])
def test_invalid_alignment_raises_value_error(align):
    for make in (
        lambda: memrt.alloc(10, alignment=align),
        lambda: memrt.empty(10, alignment=align),
        lambda: memrt.Policy(alignment=align),
    ):
        with pytest.raises(ValueError, match="power of two"):
            make()


@pytest.mark.parametrize("nonsense", ["10", 1.5, None, [10]])
def test_non_integer_size_raises_type_error(nonsense):
    with pytest.raises(TypeError):
        memrt.alloc(nonsense)


@pytest.mark.parametrize("offset", [8, 24, 4096, 4104, 2**64 - 8])
def test_byte_at_align_offset_has_the_alignment(offset):
    options = {"alignment": 4096, "align_offset": offset}
    header = np.arange(2000.0)
    for array in (
        memrt.empty(2000, **options),
        memrt.zeros(2000, **options),
        memrt.full(2000, 7.0, **options),
        memrt.array(header, **options),
        np.frombuffer(memrt.alloc(16000, **options)),
    ):
        assert (array.ctypes.data + offset) % 4096 == 0
        array[:] = header
        np.testing.assert_array_equal(array, header)
    with memrt.Policy(alignment=256):
        assert (memrt.empty(10, align_offset=offset).ctypes.data + offset) % 256 == 0


@pytest.mark.parametrize("offset", [-8, 1, 20, 2**64, 2**80])
def test_invalid_align_offset_raises_value_error(offset):
    for make in (memrt.alloc, memrt.empty):
        with pytest.raises(ValueError, match=rf"align_offset must be .*{offset}"):
            make(10, align_offset=offset)
    with pytest.raises(TypeError):
        memrt.empty(10, align_offset=None)


def test_unsuitable_align_offset_raises_value_error(tmp_path):
    with pytest.raises(ValueError, match=r"align_offset for dtype .* must be 0, got 8"):
        memrt.empty(10, object, align_offset=8)
    for options in ({"alignment": 1 << 16}, {"policy": memrt.Policy(file=tmp_path)}):
        with pytest.raises(ValueError, match=r"align_offset 8 needs .* 32768 bytes"):
            memrt.empty(10, align_offset=8, **options)


def test_alignment_of_1_gib_is_honoured():
    mi = memrt.alloc(1, alignment=1 << 30)
    assert mi.address % (1 << 30) == 0


def test_zero_size_has_an_address_and_an_empty_buffer():
    mi = memrt.alloc(0)
    assert mi.address != 0
    assert memoryview(mi).nbytes == 0


@pytest.mark.parametrize("arguments", [(), (1,), (0xDEADBEEF, 3), ("x",)])
def test_meminfo_constructor_raises_type_error(arguments):
    for make in (memrt.MemInfo, lambda *a: memrt.MemInfo.__new__(memrt.MemInfo, *a)):
        with pytest.raises(TypeError, match=r"memrt\.alloc\(\).*memrt\.wrap\(\)"):
            make(*arguments)
    with pytest.raises(TypeError):
        object.__new__(memrt.MemInfo)


def test_meminfo_cannot_be_copied_pickled_or_subclassed():
    mi = memrt.alloc(8)
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            make(mi)
    with pytest.raises(TypeError):
        type("Mine", (memrt.MemInfo,), {})


def test_python_cannot_set_refcount_data_or_size():
    mi = memrt.alloc(8)
    for name in ("acquire", "release", "incref", "decref"):
        assert not hasattr(mi, name)
    for name in ("refcount", "address", "nbytes", "parent", "readonly", "kind", "policy"):
        with pytest.raises(AttributeError):
            setattr(mi, name, 1)
    with pytest.raises(TypeError):
        memrt.MemInfo.refcount = 5


def test_memoryview_shares_the_bytes_of_meminfo():
    mi = memrt.alloc(16, zero=True)
    view = memoryview(mi)
    assert (view.format, view.shape, view.readonly, view.contiguous) == ("B", (16,), False, True)
    view[3] = 7
    assert ctypes.string_at(mi.address, 16) == b"\0\0\0\7" + bytes(12)


def test_memoryview_keeps_the_memory_alive():
    view = memoryview(memrt.alloc(16, zero=True))
    gc.collect()
    assert view.tobytes() == bytes(16)


def test_read_only_memory_gives_read_only_buffers():
    data = ctypes.create_string_buffer(b"abc", 3)
    mi = memrt.wrap(ctypes.addressof(data), 3, owner=data, readonly=True)
    assert memoryview(mi).readonly
    assert bytes(mi) == b"abc"
    with pytest.raises(TypeError, match="not writable"):
        (ctypes.c_char * 3).from_buffer(mi)


def test_meminfos_are_equal_if_the_memory_is_the_same(probe):
    mi = memrt.alloc(8)
    same = memrt.meminfo(probe.to_array(mi, (8,), "u1", None, 0, 0))
    assert same is not mi
    assert same == mi
    assert hash(same) == hash(mi)
    assert mi != memrt.alloc(8)
    assert mi != 5
    with pytest.raises(TypeError):
        operator.lt(mi, same)


def test_weak_reference_dies_with_meminfo():
    mi = memrt.alloc(8)
    ref = weakref.ref(mi)
    assert ref() is mi
    del mi
    assert ref() is None


def test_each_python_object_adds_1_to_refcount(probe):
    mi = memrt.alloc(8)
    capsule = mi.__memrt_meminfo__()
    assert mi.refcount == 2
    other = memrt.meminfo(probe.to_array(capsule, (8,), "u1", None, 0, 0))
    assert mi.refcount == other.refcount == 3
    del capsule, other
    assert mi.refcount == 1


def test_resizable_meminfo_without_data_has_empty_buffer(probe):
    mi = memrt.meminfo(probe.make_resizable(0))
    assert (mi.kind, mi.address) == ("resizable", 0)
    assert memoryview(mi).nbytes == 0
    assert memrt.as_array(mi).size == 0


def test_resizable_meminfo_has_the_size_of_its_array(probe):
    mi = memrt.meminfo(probe.make_resizable(40))
    assert mi.nbytes == memrt.as_array(mi).nbytes == 40


def at_address(address, *arguments, **options):
    """Wrap memory until a MemInfo has the address of a freed MemInfo, and return the MemInfo."""
    kept = []
    while len(kept) < 10_000:
        made = memrt.wrap(*arguments, **options)
        if id(made) == address:
            return made
        kept.append(made)
    raise AssertionError("CPython does not reuse the address")


def test_meminfo_at_reused_address_has_no_old_state(probe):
    first = memrt.alloc(64, name="first")
    address, gone = id(first), weakref.ref(first)
    held = probe.hold(first)  # once C code knows the address, the cycle collector skips the owner
    probe.release(held)
    del first
    second = at_address(address, 4096, 0)
    assert gone() is None
    assert second.name is None

    class Owner:
        pass

    del second
    owner = Owner()
    owner.myself = at_address(address, 4096, 0, owner=owner)
    alive = weakref.ref(owner)
    del owner
    gc.collect()
    assert alive() is None


def test_more_meminfos_than_the_free_list_holds_are_freed():
    before = memrt.stats()
    for _ in range(2):
        several = [memrt.alloc(size, zero=True) for size in range(200)]
        assert [mi.nbytes for mi in several] == list(range(200))
        assert len(set(map(id, several))) == 200
        del several
    change = memrt.stats() - before
    assert (change.alloc, change.free, change.live) == (400, 400, 0)
