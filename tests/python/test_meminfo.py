"""MemInfo objects: what they are asked, what they refuse, what they keep alive."""

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


def test_alloc_gives_the_bytes_and_the_alignment_asked_for():
    for align in (1, 16, 64, 256, 4096, 1 << 16):
        mi = memrt.alloc(100, align=align)
        assert (mi.size, mi.data % max(align, 64)) == (100, 0)


def test_alloc_zero_gives_zeros_where_dirty_memory_was():
    for size in (1, 100, 5000, 1 << 20):
        dirty = memrt.alloc(size)
        ctypes.memset(dirty.data, 0xFF, size)
        del dirty
        assert not np.frombuffer(memrt.alloc(size, zero=True), np.uint8).any()


def test_alloc_follows_the_policy_in_force_unless_one_is_named():
    named = memrt.Policy(name="named")
    with memrt.Policy(alignment=512, name="outer"):
        mi = memrt.alloc(10)
        assert (mi.policy, mi.data % 512) == ("outer", 0)
        assert memrt.alloc(10, policy=named).policy == "named"
    assert memrt.alloc(10).policy == "default"


def test_attributes_tell_what_stands_behind_the_memory():
    mi = memrt.alloc(24, name="temperature")
    assert mi.refcount == 1
    assert mi.parent is None
    assert mi.external_allocator is None
    assert mi.name == "temperature"
    assert (mi.kind, mi.readonly) == ("inline", False)


def test_name_can_be_set_and_taken_away():
    mi = memrt.alloc(8)
    assert mi.name is None
    mi.name = "größe"
    assert mi.name == "größe"
    mi.name = None
    assert mi.name is None
    mi.name = "again"
    del mi.name
    assert mi.name is None


def test_a_name_that_is_too_long_is_refused_and_the_old_one_kept():
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


def test_repr_tells_name_size_address_kind_count_and_policy():
    text = repr(memrt.alloc(4096, name="field"))
    for part in ("'field'", "4096 bytes", "0x", "inline", "1 reference", "'default'"):
        assert part in text
    assert "read-only" in repr(memrt.wrap(1 << 20, 10, readonly=True))


@pytest.mark.parametrize("size", [-1, -(2**70)])
def test_a_negative_size_is_a_value_error(size):
    with pytest.raises(ValueError, match="0 or more"):
        memrt.alloc(size)


@pytest.mark.parametrize(
    "size", [sys.maxsize, 2**63, 2**64 - 1, 2**64 - 64, 2**64 - 200, 2**64, 2**80]
)
def test_a_size_that_cannot_exist_is_a_memory_error(size):
    failed = memrt.stats().failed
    for align in (1, 64, 1 << 30):
        with pytest.raises(MemoryError, match=str(size)):
            memrt.alloc(size, align=align)
    assert memrt.stats().failed - failed == (3 if size < 2**64 else 0)


@pytest.mark.parametrize("align", [0, 3, -1, 2**31, 2**62, 2**63, 2**64, 2**80, 65])
def test_an_alignment_that_is_no_power_of_two_or_too_large_is_a_value_error(align):
    for make in (
        lambda: memrt.alloc(10, align=align),
        lambda: memrt.empty(10, align=align),
        lambda: memrt.Policy(alignment=align),
    ):
        with pytest.raises(ValueError, match="power of two"):
            make()


@pytest.mark.parametrize("nonsense", ["10", 1.5, None, [10]])
def test_a_size_that_is_no_integer_is_a_type_error(nonsense):
    with pytest.raises(TypeError):
        memrt.alloc(nonsense)


def test_the_largest_alignment_is_honoured():
    mi = memrt.alloc(1, align=1 << 30)
    assert mi.data % (1 << 30) == 0


def test_zero_bytes_have_an_address_and_an_empty_buffer():
    mi = memrt.alloc(0)
    assert mi.data != 0
    assert memoryview(mi).nbytes == 0


@pytest.mark.parametrize("arguments", [(), (1,), (0xDEADBEEF, 3), ("x",)])
def test_a_meminfo_cannot_be_built_by_hand(arguments):
    for make in (memrt.MemInfo, lambda *a: memrt.MemInfo.__new__(memrt.MemInfo, *a)):
        with pytest.raises(TypeError, match=r"memrt\.alloc\(\).*memrt\.wrap\(\)"):
            make(*arguments)
    with pytest.raises(TypeError):
        object.__new__(memrt.MemInfo)


def test_a_meminfo_cannot_be_copied_pickled_or_subclassed():
    mi = memrt.alloc(8)
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            make(mi)
    with pytest.raises(TypeError):
        type("Mine", (memrt.MemInfo,), {})


def test_python_has_no_call_that_changes_the_count_by_itself():
    mi = memrt.alloc(8)
    for name in ("acquire", "release", "incref", "decref"):
        assert not hasattr(mi, name)
    for name in ("refcount", "data", "size", "parent", "readonly", "kind", "policy"):
        with pytest.raises(AttributeError):
            setattr(mi, name, 1)
    with pytest.raises(TypeError):
        memrt.MemInfo.refcount = 5


def test_buffer_is_the_bytes_themselves():
    mi = memrt.alloc(16, zero=True)
    view = memoryview(mi)
    assert (view.format, view.shape, view.readonly, view.contiguous) == ("B", (16,), False, True)
    view[3] = 7
    assert ctypes.string_at(mi.data, 16) == b"\0\0\0\7" + bytes(12)


def test_a_buffer_keeps_the_memory_alive():
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


def test_equal_means_the_same_memory(probe):
    mi = memrt.alloc(8)
    same = memrt.meminfo(probe.to_array(mi, (8,), "u1", None, 0, 0))
    assert same is not mi
    assert same == mi
    assert hash(same) == hash(mi)
    assert mi != memrt.alloc(8)
    assert mi != 5
    with pytest.raises(TypeError):
        operator.lt(mi, same)


def test_weak_references_die_with_the_object():
    mi = memrt.alloc(8)
    ref = weakref.ref(mi)
    assert ref() is mi
    del mi
    assert ref() is None


def test_each_python_object_counts_as_one_reference(probe):
    mi = memrt.alloc(8)
    capsule = mi.__memrt_meminfo__()
    assert mi.refcount == 2
    other = memrt.meminfo(probe.to_array(capsule, (8,), "u1", None, 0, 0))
    assert mi.refcount == other.refcount == 3
    del capsule, other
    assert mi.refcount == 1


def test_a_resizable_meminfo_without_data_is_an_empty_buffer(probe):
    mi = memrt.meminfo(probe.make_resizable(0))
    assert (mi.kind, mi.data) == ("resizable", 0)
    assert memoryview(mi).nbytes == 0
    assert memrt.as_array(mi).size == 0


def test_a_resizable_meminfo_shows_its_data(probe):
    mi = memrt.meminfo(probe.make_resizable(40))
    assert mi.size == memrt.as_array(mi).nbytes == 40


def test_an_object_in_the_place_of_a_dead_one_knows_nothing_of_it(probe):
    first = memrt.alloc(64, name="first")
    address, gone = id(first), weakref.ref(first)
    held = probe.hold(first)  # whoever knows the address keeps the cycle collector away
    probe.release(held)
    del first
    second = memrt.wrap(4096, 0)
    assert id(second) == address  # else this test says nothing
    assert gone() is None
    assert second.name is None

    class Owner:
        pass

    del second
    owner = Owner()
    owner.myself = memrt.wrap(4096, 0, owner=owner)
    assert id(owner.myself) == address
    alive = weakref.ref(owner)
    del owner
    gc.collect()
    assert alive() is None


def test_more_objects_than_are_kept_for_reuse_come_and_go():
    before = memrt.stats()
    for _ in range(2):
        several = [memrt.alloc(size, zero=True) for size in range(200)]
        assert [mi.size for mi in several] == list(range(200))
        assert len(set(map(id, several))) == 200
        del several
    change = memrt.stats() - before
    assert (change.alloc, change.free, change.live) == (400, 400, 0)
