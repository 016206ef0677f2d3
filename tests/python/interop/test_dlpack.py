"""DLPack between memrt and other libraries. Marks name the rules for producers and consumers."""

from __future__ import annotations

import ctypes
import gc
import itertools
import threading

import hypothesis.strategies as st
import memrt
import numpy as np
import pytest
from atonce import on_threads
from capsules import name_of
from dltensor import (
    BFLOAT,
    BOOL,
    COMPLEX,
    CPU,
    CUDA,
    CUDA_HOST,
    FLOAT,
    HANDLE,
    INT,
    IS_COPIED,
    MANAGED,
    READ_ONLY,
    ROCM,
    ROCM_HOST,
    UINT,
    Consumer,
    Producer,
    Unversioned,
    Versioned,
    compact,
)
from exported import exports_of
from gil import needs_gil
from hypothesis import given
from memrt import _memrt

NEWEST = {"max_version": (1, 3)}
NUMPY = tuple(int(part) for part in np.__version__.split(".")[:2])
numpy_knows_versions = NUMPY >= (2, 1)


def counting() -> np.ndarray:
    """Return an array of 24 doubles in memrt's memory."""
    array = memrt.empty((2, 3, 4))
    array[...] = np.arange(24).reshape(2, 3, 4)
    return array


def exporters() -> dict[str, object]:
    """Return an exporter of each type."""
    return {"MemInfo": memrt.alloc(192, zero=True), "Tensor": memrt.types.Tensor(counting())}


KINDS = sorted(exporters())


def meminfo_of(exporter) -> memrt.MemInfo:
    return exporter if isinstance(exporter, memrt.MemInfo) else exporter.meminfo


def readonly_meminfo() -> memrt.MemInfo:
    owner = ctypes.create_string_buffer(64)
    return memrt.wrap(ctypes.addressof(owner), 64, owner=owner, readonly=True)


def kind_of(thing: object) -> str:
    return type(thing).__name__


def outcome(call, *args, **keywords):
    """Return the type of the error that a call raises, or None."""
    try:
        call(*args, **keywords)
    except (BufferError, TypeError, ValueError) as error:
        return type(error)
    return None


# --- Producers. ---


@pytest.mark.rule("D1")
@pytest.mark.parametrize("kind", KINDS)
def test_dlpack_takes_optional_keywords_only(kind):
    exporter = exporters()[kind]
    asked = {"stream": None, "max_version": None, "dl_device": None, "copy": None}
    assert name_of(exporter.__dlpack__(**asked)) == b"dltensor"
    assert name_of(exporter.__dlpack__()) == b"dltensor"
    with pytest.raises(TypeError, match="positional"):
        exporter.__dlpack__(None)
    with pytest.raises(TypeError, match="unexpected"):
        exporter.__dlpack__(streams=None)


@pytest.mark.rule("D1")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "asked",
    [
        {"stream": "1"},
        {"stream": 1.0},
        {"max_version": "1.0"},
        {"max_version": (1,)},
        {"max_version": (1, 0, 0)},
        {"max_version": [1, 0]},
        {"max_version": (1.0, 0)},
        {"max_version": 1},
        {"dl_device": 1},
        {"dl_device": (1,)},
        {"dl_device": ("cpu", 0)},
        {"copy": 1},
        {"copy": "no"},
    ],
    ids=str,
)
def test_dlpack_argument_of_wrong_type_raises_value_error(kind, asked):
    """After a TypeError, a consumer assumes an older DLPack and calls again without arguments."""
    with pytest.raises(ValueError, match=next(iter(asked))):
        exporters()[kind].__dlpack__(**asked)


@pytest.mark.rule("D2")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("asked", [None, (0, 0), (0, 8), (-1, 0), (-(2**80), 5)], ids=str)
def test_max_version_none_or_below_1_gives_unversioned_tensor(kind, asked):
    capsule = exporters()[kind].__dlpack__(max_version=asked)
    assert name_of(capsule) == b"dltensor"


@pytest.mark.rule("D2")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ((1, 0), (1, 0)),
        ((1, 1), (1, 1)),
        ((1, 3), (1, 3)),
        ((1, 4), (1, 3)),
        ((2, 0), (1, 3)),
        ((1, 2**70), (1, 3)),
        ((2**70, 0), (1, 3)),
        ((1, -1), (1, 0)),
    ],
    ids=str,
)
def test_max_version_is_clamped_to_supported_versions(kind, asked, given):
    capsule = exporters()[kind].__dlpack__(max_version=asked)
    assert name_of(capsule) == b"dltensor_versioned"
    consumer = Consumer(capsule)
    assert consumer.version == given
    consumer.end()


@pytest.mark.rule("D3")
@pytest.mark.parametrize("wishes", [{}, NEWEST], ids=str)
def test_capsule_outlives_exporter_with_name_and_destructor(wishes):
    mi = memrt.alloc(64)
    capsule = mi.__dlpack__(**wishes)
    del mi
    gc.collect()
    destructor = ctypes.pythonapi.PyCapsule_GetDestructor
    destructor.restype, destructor.argtypes = ctypes.c_void_p, (ctypes.py_object,)
    assert destructor(capsule)
    assert name_of(capsule) in (b"dltensor", b"dltensor_versioned")


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.rule("D4")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wishes", [{}, NEWEST], ids=str)
def test_deleting_unused_capsule_releases_export(kind, wishes):
    exporter = exporters()[kind]
    mi = meminfo_of(exporter)
    before = mi.refcount
    capsule = exporter.__dlpack__(**wishes)
    assert (mi.refcount, exports_of(mi, "dlpack")) == (before + 1, 1)
    del capsule
    assert (mi.refcount, exports_of(mi, "dlpack")) == (before, 0)


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.rule("D4")
@pytest.mark.parametrize("wishes", [{}, NEWEST], ids=str)
def test_used_capsule_leaves_deleter_to_consumer(wishes):
    mi = memrt.alloc(64)
    consumer = Consumer(mi.__dlpack__(**wishes))
    consumer.capsule = None
    assert (mi.refcount, exports_of(mi, "dlpack")) == (2, 1)
    consumer.end()
    assert (mi.refcount, exports_of(mi, "dlpack")) == (1, 0)


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.rule("D6")
@pytest.mark.parametrize("wishes", [{}, NEWEST], ids=str)
def test_deleter_may_run_on_thread_unknown_to_python(wishes, dlclient):
    mi = memrt.alloc(64)
    dlclient.delete_on_a_thread(mi.__dlpack__(**wishes))
    assert (mi.refcount, exports_of(mi, "dlpack")) == (1, 0)
    capsule = mi.__dlpack__(**wishes)
    del mi
    before = memrt.stats()
    dlclient.delete_on_a_thread(capsule)
    assert (memrt.stats() - before).mi_free == 1


@pytest.mark.thread_unsafe(reason="another thread may run queued owners")
@pytest.mark.rule("D6")
def test_last_deleter_without_gil_queues_python_destructor(dlclient):
    ended = []
    owner = ctypes.create_string_buffer(64)
    mi = memrt.wrap(ctypes.addressof(owner), 64, lambda *_: ended.append(threading.get_ident()))
    capsule = mi.__dlpack__()
    del mi
    dlclient.delete_on_a_thread(capsule)
    _memrt.owners()  # runs queued owners
    assert ended == [threading.get_ident()]


@pytest.mark.rule("D7")
def test_deleter_after_python_exit_skips_python_destructor(run_python, dlclient):
    result = run_python(
        "import ctypes, memrt, dlclient\n"
        "owner = ctypes.create_string_buffer(64)\n"
        "mi = memrt.wrap(ctypes.addressof(owner), 64, print, owner)\n"
        "dlclient.delete_after_python(mi.__dlpack__(max_version=(1, 0)))\n"
        "del mi\n"
    )
    assert (result.stdout, result.stderr) == ("", "")


@pytest.mark.rule("D8")
@pytest.mark.parametrize("wishes", [{}, NEWEST], ids=str)
def test_deleter_keeps_pending_exception(wishes, dlclient):
    ended = []
    owner = ctypes.create_string_buffer(64)
    mi = memrt.wrap(ctypes.addressof(owner), 64, lambda *_: ended.append({}.get(1)))
    capsule = mi.__dlpack__(**wishes)
    del mi
    with pytest.raises(KeyError, match="pending"):
        dlclient.delete_while_raising(capsule)
    assert ended == [None]


@pytest.mark.rule("D10")
def test_read_only_memory_sets_read_only_flag():
    for exporter in (readonly_meminfo(), memrt.types.Tensor(memrt.as_array(readonly_meminfo()))):
        consumer = Consumer(exporter.__dlpack__(**NEWEST))
        assert consumer.struct.flags == READ_ONLY
        consumer.end()
    consumer = Consumer(memrt.alloc(8).__dlpack__(**NEWEST))
    assert consumer.struct.flags == 0
    consumer.end()


@pytest.mark.rule("D10")
def test_read_only_array_of_writable_memory_sets_flag():
    array = counting()
    array.flags.writeable = False
    consumer = Consumer(memrt.types.Tensor(array).__dlpack__(**NEWEST))
    assert consumer.struct.flags == READ_ONLY
    consumer.end()


@pytest.mark.rule("D10")
def test_read_only_memory_has_no_unversioned_export():
    array = counting()
    array.flags.writeable = False
    for exporter in (readonly_meminfo(), memrt.types.Tensor(array)):
        with pytest.raises(BufferError, match="read-only"):
            exporter.__dlpack__()


@needs_gil
@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.rule("D12")
@pytest.mark.parametrize("kind", KINDS)
def test_copy_sets_copied_flag_and_shares_no_memory(kind):
    exporter = exporters()[kind]
    consumer = Consumer(exporter.__dlpack__(copy=True, **NEWEST))
    assert consumer.struct.flags == IS_COPIED
    assert consumer.tensor.data != meminfo_of(exporter).address
    assert exports_of(meminfo_of(exporter), "dlpack") == 0
    before = memrt.stats()
    consumer.end()
    assert (memrt.stats() - before).mi_free == 1


@pytest.mark.rule("D12")
def test_copy_of_read_only_memory_is_writable():
    consumer = Consumer(readonly_meminfo().__dlpack__(copy=True, **NEWEST))
    assert consumer.struct.flags == IS_COPIED
    consumer.end()
    assert name_of(readonly_meminfo().__dlpack__(copy=True)) == b"dltensor"


@pytest.mark.rule("D13")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copy", [None, False])
def test_export_with_copy_none_or_false_shares_memory(kind, copy):
    exporter = exporters()[kind]
    consumer = Consumer(exporter.__dlpack__(copy=copy, **NEWEST))
    assert consumer.struct.flags == 0
    assert consumer.tensor.data == meminfo_of(exporter).address
    consumer.end()


@pytest.mark.rule("D13")
def test_copy_is_compact_with_elements_in_order():
    array = counting()[::-1, :, ::2]
    consumer = Consumer(memrt.types.Tensor(array).__dlpack__(copy=True, **NEWEST))
    assert (consumer.shape, consumer.strides) == ((2, 3, 2), (6, 2, 1))
    copied = (ctypes.c_double * 12).from_address(consumer.tensor.data)
    assert list(copied) == array.ravel().tolist()
    consumer.end()


@pytest.mark.rule("D13")
def test_copy_is_allocated_under_current_policy():
    mi = memrt.alloc(5000)
    with memrt.Policy(name="copies") as policy:
        capsule = mi.__dlpack__(copy=True)
        assert memrt.stats(policy).live == 5000
    del capsule
    assert memrt.stats(policy).live == 0


@pytest.mark.rule("D14")
@pytest.mark.parametrize("kind", KINDS)
def test_cpu_memory_exports_only_as_cpu_device_0(kind):
    exporter = exporters()[kind]
    consumer = Consumer(exporter.__dlpack__(dl_device=(1, 0), **NEWEST))
    assert (consumer.tensor.device_type, consumer.tensor.device_id) == (CPU, 0)
    consumer.end()
    for device in [(1, 1), (2, 0), (3, 0), (13, 0), (0, 0), (-1, 0), (2**70, 0), (1, -(2**70))]:
        with pytest.raises(BufferError, match="device"):
            exporter.__dlpack__(dl_device=device)


@pytest.mark.rule("D14")
@pytest.mark.parametrize("device", [CUDA_HOST, ROCM_HOST, MANAGED])
def test_host_readable_memory_exports_as_own_device_or_cpu(device):
    mi = memrt.meminfo(memrt.from_dlpack(Producer(device=(device, 0))))
    for asked, given_ in [(None, device), ((device, 0), device), ((CPU, 0), CPU)]:
        consumer = Consumer(mi.__dlpack__(dl_device=asked, **NEWEST))
        assert consumer.tensor.device_type == given_
        consumer.end()
    with pytest.raises(BufferError, match="device"):
        mi.__dlpack__(dl_device=(CUDA, 0))
    with pytest.raises(BufferError, match="dl_device"):
        mi.__dlpack__(copy=True)
    consumer = Consumer(mi.__dlpack__(copy=True, dl_device=(CPU, 0)))
    assert consumer.tensor.device_type == CPU
    consumer.end()


@pytest.mark.rule("D15")
@pytest.mark.parametrize("kind", KINDS)
def test_dlpack_device_is_pair_of_ints(kind):
    device = exporters()[kind].__dlpack_device__()
    assert (type(device), [type(each) for each in device]) == (tuple, [int, int])
    assert device == (1, 0)


@pytest.mark.rule("D15")
@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("device", [CPU, CUDA_HOST, ROCM_HOST, MANAGED])
def test_imported_memory_keeps_device(device, versioned):
    array = memrt.from_dlpack(Producer(device=(device, 0), versioned=versioned))
    assert memrt.meminfo(array).__dlpack_device__() == (device, 0)
    assert memrt.types.Tensor(array).__dlpack_device__() == (device, 0)


@pytest.mark.rule("D16")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [0, 1, 2, -1, 7, True, False, 2**80, -(2**80)])
def test_cpu_export_refuses_any_stream(kind, stream):
    with pytest.raises(ValueError, match="stream"):
        exporters()[kind].__dlpack__(stream=stream)


@pytest.mark.rule("D16")
@pytest.mark.parametrize(
    ("device", "good", "bad"),
    [
        (CUDA_HOST, [None, -1, 1, 2, 12345, 2**64 - 1], [0, -2, True, False, 2**64, -(2**70)]),
        (MANAGED, [None, -1, 1, 2, 12345], [0, -2]),
        (ROCM_HOST, [None, -1, 0, 3, 12345], [1, 2, -2, True]),
    ],
)
def test_stream_must_be_valid_for_memory_device(device, good, bad):
    mi = memrt.meminfo(memrt.from_dlpack(Producer(device=(device, 0))))
    for stream in good:
        mi.__dlpack__(stream=stream)
    for stream in bad:
        with pytest.raises(ValueError, match="stream"):
            mi.__dlpack__(stream=stream)


VIEWS = {
    "all": lambda a: a,
    "a slice": lambda a: a[1, :, 1:3],
    "a transpose": lambda a: a.T,
    "backwards": lambda a: a[::-1, :, ::-1],
    "with steps": lambda a: a[:, ::2],
    "broadcast": lambda a: np.broadcast_to(a[0, 0], (5, 4)),
    "of no dimensions": lambda a: a[1, 1, 1:2].reshape(()),
    "of one element": lambda a: a[1:, 1:2, 3:],
    "empty": lambda a: a[:, 3:],
    "in Fortran order": lambda a: memrt.array(a, order="F"),
}


@pytest.mark.rule("D18")
@pytest.mark.parametrize("view", VIEWS)
def test_exported_strides_count_elements(view):
    array = VIEWS[view](counting())
    consumer = Consumer(memrt.types.Tensor(array).__dlpack__(**NEWEST))
    assert consumer.shape == array.shape
    if array.size > 1:
        assert consumer.strides == tuple(stride // 8 for stride in array.strides)
    if array.ndim > 0:
        assert consumer.tensor.strides
    if array.size > 0:
        assert consumer.tensor.data + consumer.tensor.byte_offset == array.ctypes.data
    consumer.end()


@pytest.mark.rule("D18")
@pytest.mark.parametrize("view", VIEWS)
def test_exported_view_is_imported_with_same_layout(view):
    array = VIEWS[view](counting())
    back = memrt.from_dlpack(memrt.types.Tensor(array))
    np.testing.assert_array_equal(back, array)
    assert (back.shape, back.dtype) == (array.shape, array.dtype)
    if array.size > 1:
        assert back.strides == array.strides
    if array.size > 0:
        assert back.ctypes.data == array.ctypes.data


@pytest.mark.rule("D19")
def test_stride_not_multiple_of_item_size_is_refused():
    structured = memrt.zeros(4, [("a", "i1"), ("b", "f8")])
    with pytest.raises(BufferError, match="got 9 bytes for elements of 8 bytes"):
        memrt.types.Tensor(structured["b"])
    memrt.types.Tensor(structured["b"][:1])  # a stride that no element uses may have any value
    memrt.types.Tensor(structured["a"])


@pytest.mark.rule("D20")
def test_tensor_without_dimensions_needs_no_shape_or_strides():
    array = memrt.full((), 7.5)
    consumer = Consumer(memrt.types.Tensor(array).__dlpack__(**NEWEST))
    assert consumer.tensor.ndim == 0
    assert not consumer.tensor.shape
    assert not consumer.tensor.strides
    consumer.end()
    for shape, strides in [(None, None), (8, 8)]:  # 8 is an invalid address
        got = memrt.from_dlpack(Producer(ndim=0, shape=shape, strides=strides))
        assert (got.shape, got[()]) == ((), 0.0)


@pytest.mark.rule("D21")
def test_export_without_elements_has_null_data():
    for exporter in (memrt.alloc(0), memrt.types.Tensor(memrt.zeros((3, 0)))):
        for wishes in ({}, NEWEST):
            consumer = Consumer(exporter.__dlpack__(**wishes))
            assert consumer.tensor.data is None
            consumer.end()


@pytest.mark.rule("D21")
@pytest.mark.parametrize("data", [None, 8, 2**64 - 1])
def test_import_without_elements_ignores_data(data):
    producer = Producer(shape=(2, 0, 4), strides=(2**62, -(2**62), 5), data=data)
    got = memrt.from_dlpack(producer)
    assert (got.shape, got.nbytes) == ((2, 0, 4), 0)
    del got
    assert producer.deleted == 1


@pytest.mark.rule("D25")
@pytest.mark.parametrize(
    "dtype",
    ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "l", "q"],
)
def test_dtype_known_to_dlpack_survives_round_trip(dtype):
    array = memrt.array([0, 1, 1, 0], dtype)
    back = memrt.from_dlpack(memrt.types.Tensor(array))
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


@pytest.mark.rule("D25")
@pytest.mark.parametrize(
    ("dtype", "code", "bits"),
    [("?", BOOL, 8), ("c8", COMPLEX, 64), ("c16", COMPLEX, 128), ("f2", FLOAT, 16)],
)
def test_bool_complex_and_half_have_dlpack_code_and_bits(dtype, code, bits):
    consumer = Consumer(memrt.types.Tensor(memrt.zeros(2, dtype)).__dlpack__())
    assert consumer.dtype == (code, bits, 1)
    consumer.end()


@pytest.mark.rule("D23")
@pytest.mark.parametrize(
    "dtype",
    [">f8", ">i2", ">c16", "g", "G", "M8[s]", "m8[ns]", "S3", "U3", "V8", [("a", "f8")]],
    ids=str,
)
def test_dtype_unknown_to_dlpack_is_refused(dtype):
    with pytest.raises(BufferError, match="dtype"):
        memrt.types.Tensor(memrt.zeros(3, dtype))


@pytest.mark.rule("D23")
def test_tensor_of_object_array_is_refused():
    with pytest.raises(BufferError, match="dtype"):
        memrt.types.Tensor(memrt.array([{}, []], object))


@pytest.mark.rule("D26")
def test_tensor_needs_array_managed_by_memrt():
    with pytest.raises(TypeError):
        memrt.types.Tensor([1, 2])
    with pytest.raises(TypeError):
        memrt.types.Tensor()
    with pytest.raises(ValueError, match="adopt"):
        memrt.types.Tensor(np.frombuffer(b"12345678", "u1"))


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.rule("D27")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wishes", [{}, NEWEST], ids=str)
def test_export_holds_reference_until_deleter(kind, wishes):
    exporter = exporters()[kind]
    mi = meminfo_of(exporter)
    before = mi.refcount
    consumers = [Consumer(exporter.__dlpack__(**wishes)) for _ in range(3)]
    assert (mi.refcount, exports_of(mi, "dlpack")) == (before + 3, 3)
    for rest, consumer in zip((2, 1, 0), consumers, strict=True):
        consumer.end()
        assert (mi.refcount, exports_of(mi, "dlpack")) == (before + rest, rest)


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.rule("D27")
def test_export_keeps_memory_after_array_is_deleted():
    array = counting()
    consumer = Consumer(memrt.types.Tensor(array).__dlpack__())
    address = array.ctypes.data
    del array
    gc.collect()
    memory = (ctypes.c_double * 24).from_address(address)
    assert list(memory) == list(range(24))
    before = memrt.stats()
    consumer.end()
    assert (memrt.stats() - before).mi_free == 1


@pytest.mark.rule("D27")
def test_export_survives_numpy_resize_of_array():
    with memrt.Policy():
        array = np.ones(100)
    tensor = memrt.types.Tensor(array)
    consumer = Consumer(tensor.__dlpack__())
    array.resize(100_000, refcheck=False)
    assert list((ctypes.c_double * 100).from_address(consumer.tensor.data)) == [1.0] * 100
    assert tensor.shape == (100,)
    consumer.end()


# --- Consumer. ---


@pytest.mark.rule("D2")
def test_from_dlpack_requests_newest_supported_version():
    producer = Producer()
    memrt.from_dlpack(producer)
    memrt.from_dlpack(producer, device="cpu", copy=False)
    assert producer.asked == [
        {"max_version": (1, 3)},
        {"max_version": (1, 3), "dl_device": (1, 0), "copy": False},
    ]


class Older(Producer):
    """A producer from before version 1.0: `stream` is the only keyword."""

    def __init__(self) -> None:
        super().__init__(versioned=False)

    def __dlpack__(self, *, stream=None):
        return super().__dlpack__()


@pytest.mark.rule("D2")
def test_from_dlpack_retries_older_producer_without_keywords():
    older = Older()
    got = memrt.from_dlpack(older)
    assert (got[1, 2, 3], got.flags.writeable) == (23.0, False)
    assert memrt.from_dlpack(older, device="cpu")[0, 0, 1] == 1.0
    with pytest.raises(BufferError, match=r"DLPack 1\.0 or later"):
        memrt.from_dlpack(older, copy=False)


@pytest.mark.rule("D5")
def test_capsule_is_renamed_before_import_fails():
    for producer, name in [
        (Producer(ndim=-1), b"used_dltensor_versioned"),
        (Producer(versioned=False, dtype=(99, 8, 1)), b"used_dltensor"),
        (Producer(version=(2, 0)), b"used_dltensor_versioned"),
    ]:
        with pytest.raises(BufferError):
            memrt.from_dlpack(producer)
        assert (name_of(producer.given), producer.deleted) == (name, 1)


class Capsule:
    """A producer that returns the capsule from its construction."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **wishes):
        return self.capsule


@pytest.mark.rule("D5")
@pytest.mark.parametrize("versioned", [False, True])
def test_capsule_cannot_be_imported_twice(versioned):
    producer = Producer(versioned=versioned)
    capsule = producer.capsule()
    got = memrt.from_dlpack(Capsule(capsule))
    with pytest.raises(ValueError, match="unused capsule"):
        memrt.from_dlpack(Capsule(capsule))
    assert producer.deleted == 0
    del got
    assert producer.deleted == 1


@pytest.mark.rule("D5")
@pytest.mark.parametrize("name", [b"dltensor2", b"memrt.meminfo", b"used_dltensor", b"DLTENSOR"])
def test_capsule_with_wrong_name_is_refused_unchanged(name):
    producer = Producer(name=name)
    with pytest.raises(ValueError, match="dltensor"):
        memrt.from_dlpack(producer)
    assert (name_of(producer.given), producer.deleted) == (name, 0)


@pytest.mark.rule("D5")
@pytest.mark.parametrize("given_", [None, 5, "dltensor", b"dltensor", object()], ids=kind_of)
def test_non_capsule_from_producer_is_refused(given_):
    with pytest.raises(TypeError, match="capsule"):
        memrt.from_dlpack(Capsule(given_))


@pytest.mark.rule("D5")
@pytest.mark.parametrize("thing", [None, 5, "text", b"bytes", [1, 2], object()], ids=kind_of)
def test_object_without_dlpack_method_is_refused(thing):
    with pytest.raises(TypeError, match="__dlpack__"):
        memrt.from_dlpack(thing)


@pytest.mark.rule("D6")
@pytest.mark.parametrize("versioned", [False, True])
def test_import_calls_deleter_once_with_last_reference(versioned):
    producer = Producer(versioned=versioned)
    got = memrt.from_dlpack(producer)
    mi, view = memrt.meminfo(got), got[1:, :, 2]
    del got, mi
    gc.collect()
    assert producer.deleted == 0
    assert view[0, 2] == 22
    del view
    assert producer.deleted == 1


@pytest.mark.rule("D6")
@pytest.mark.parametrize("versioned", [False, True])
def test_tensor_may_have_no_deleter(versioned):
    producer = Producer(versioned=versioned, has_deleter=False)
    assert memrt.from_dlpack(producer)[0, 0, 1] == 1
    with pytest.raises(BufferError):
        memrt.from_dlpack(Producer(versioned=versioned, has_deleter=False, ndim=-1))


@pytest.mark.thread_unsafe(reason="another thread may run queued owners")
@pytest.mark.rule("D6")
@pytest.mark.parametrize("versioned", [False, True])
def test_foreign_deleter_runs_with_gil_held(versioned, probe):
    """A deleter must take the GIL itself, but not all existing deleters do."""
    producer = Producer(versioned=versioned)
    got = memrt.from_dlpack(producer)
    address = probe.hold(got)
    del got
    assert producer.deleted == 0
    probe.release_without_gil(address, 1)
    _memrt.owners()
    assert producer.deleted == 1


@pytest.mark.rule("D7")
def test_import_released_after_python_exit_causes_no_error(run_python, probe):
    result = run_python(
        "import memrt, numpy as np, probe\n"
        "probe.release_after_python(memrt.from_dlpack(np.arange(5)))\n"
    )
    assert (result.stdout, result.stderr) == ("", "")


@pytest.mark.rule("D8")
def test_foreign_deleter_keeps_pending_exception(probe):
    producer = Producer()
    kept = [memrt.from_dlpack(producer)]
    with pytest.raises(LookupError, match="pending"):
        probe.fail_and_clear(kept)
    assert producer.deleted == 1


@pytest.mark.rule("D9")
@pytest.mark.parametrize("version", [(2, 0), (0, 9), (2**32 - 1, 0)], ids=str)
def test_wrong_major_version_is_refused_with_tensor_unread(version):
    producer = Producer(version=version, data=8, shape=8, strides=8, ndim=3, dtype=(99, 99, 99))
    with pytest.raises(BufferError, match="major"):
        memrt.from_dlpack(producer)
    assert producer.deleted == 1


@pytest.mark.rule("D11")
def test_read_only_or_unversioned_import_is_read_only():
    assert memrt.from_dlpack(Producer()).flags.writeable
    for producer in (Producer(flags=READ_ONLY), Producer(versioned=False)):
        got = memrt.from_dlpack(producer)
        assert not got.flags.writeable
        assert memrt.meminfo(got).readonly
        with pytest.raises(ValueError, match="WRITEABLE"):
            got.flags.writeable = True


def test_meminfo_at_address_0_exports_no_elements():
    assert memrt.from_dlpack(memrt.wrap(0, 0)).shape == (0,)


@pytest.mark.rule("D13")
def test_from_dlpack_copy_is_writable_memrt_memory():
    producer = Producer(flags=READ_ONLY)
    got = memrt.from_dlpack(producer, copy=True)
    assert producer.deleted == 1
    assert (memrt.meminfo(got).kind, got.flags.writeable, got[1, 2, 3]) == ("inline", True, 23)


@pytest.mark.rule("D13")
def test_from_dlpack_passes_copy_false_to_producer():
    class Copying(Producer):
        def __dlpack__(self, **wishes):
            raise (
                BufferError("a copy would be needed") if wishes["copy"] is False else AssertionError
            )

    with pytest.raises(BufferError, match="would be needed"):
        memrt.from_dlpack(Copying(), copy=False)


@pytest.mark.rule("D14")
@pytest.mark.parametrize("device", ["gpu", (2, 0), (1, 1), 5, "CPU"])
def test_from_dlpack_refuses_device_other_than_cpu(device):
    with pytest.raises(ValueError, match="device"):
        memrt.from_dlpack(Producer(), device=device)


class Incomparable:
    """An object whose comparison raises KeyError."""

    __hash__ = None

    def __eq__(self, other):
        raise KeyError("eq")


def test_from_dlpack_passes_on_error_of_device_comparison():
    with pytest.raises(KeyError, match="eq"):
        memrt.from_dlpack(Producer(), device=(Incomparable(), 0))


@pytest.mark.parametrize("device", [None, "cpu", (1, 0)])
def test_from_dlpack_accepts_the_cpu_by_name_or_number(device):
    assert memrt.from_dlpack(Producer(), device=device)[1, 2, 3] == 23


@pytest.mark.parametrize("copy", [3, "yes", 0, 1.0])
def test_from_dlpack_refuses_copy_that_is_no_bool(copy):
    with pytest.raises(ValueError, match="copy must be None, True or False"):
        memrt.from_dlpack(Producer(), copy=copy)


def test_from_dlpack_keeps_attribute_error_of_producer():
    class Broken(Producer):
        def __dlpack__(self, **wishes):
            raise AttributeError("inner")

    with pytest.raises(AttributeError, match="inner"):
        memrt.from_dlpack(Broken())


@pytest.mark.rule("D14")
@pytest.mark.parametrize("device", [CUDA, ROCM, 4, 8, 12, 14, 18, 0, -1, 2**31 - 1])
def test_host_unreadable_tensor_is_refused_and_deleted_once(device):
    for versioned in (False, True):
        producer = Producer(versioned=versioned, device=(device, 0), data=8)
        with pytest.raises(BufferError, match="device"):
            memrt.from_dlpack(producer)
        assert producer.deleted == 1


@pytest.mark.rule("D18")
def test_missing_strides_are_compact_before_version_1_2():
    for producer in (
        Producer(strides=None, versioned=False),
        Producer(strides=None, version=(1, 0)),
        Producer(strides=None, version=(1, 1)),
    ):
        got = memrt.from_dlpack(producer)
        assert (got.strides, got[1, 2, 3]) == ((96, 32, 8), 23)
    producer = Producer(strides=None, version=(1, 2))
    with pytest.raises(BufferError, match="strides"):
        memrt.from_dlpack(producer)
    assert producer.deleted == 1


@pytest.mark.rule("D18")
def test_imported_strides_count_elements():
    producer = Producer(shape=(4, 3), strides=(-1, 4))
    producer.struct.tensor.data += 24
    got = memrt.from_dlpack(producer)
    assert got.tolist() == [[3, 7, 11], [2, 6, 10], [1, 5, 9], [0, 4, 8]]
    assert memrt.meminfo(got).address == ctypes.addressof(producer.memory)


@pytest.mark.rule("D22")
def test_import_honours_byte_offset():
    got = memrt.from_dlpack(Producer(shape=(3,), strides=(1,), byte_offset=40))
    assert got.tolist() == [5, 6, 7]


@pytest.mark.rule("D24")
@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize(
    "dtype",
    [(FLOAT, 64, 2), (FLOAT, 64, 0), (HANDLE, 64, 1), (INT, 4, 1), (UINT, 1, 1), (FLOAT, 128, 1),
     (BOOL, 1, 1), (17, 4, 1), (200, 64, 1), (COMPLEX, 32, 1), (INT, 0, 1), (FLOAT, 8, 1)],
    ids=str,
)  # fmt: skip
def test_unsupported_type_bits_or_lanes_are_refused(dtype, versioned):
    producer = Producer(dtype=dtype, versioned=versioned)
    with pytest.raises(BufferError):
        memrt.from_dlpack(producer)
    assert producer.deleted == 1


@pytest.mark.rule("D24")
@pytest.mark.parametrize("dtype", [(BFLOAT, 16, 1), (10, 8, 1)])
def test_type_unknown_to_numpy_is_refused_for_arrays(dtype):
    producer = Producer(dtype=dtype)
    with pytest.raises(BufferError, match="NumPy does not support"):
        memrt.from_dlpack(producer)
    assert producer.deleted == 1


HUGE = 2**63 - 1
MALFORMED = {
    "negative ndim": {"ndim": -1},
    "smallest ndim": {"ndim": -(2**31)},
    "ndim above 64": {"ndim": 65},
    "largest ndim": {"ndim": 2**31 - 1},
    "missing shape": {"ndim": 3, "shape": None},
    "a negative extent": {"shape": (2, -1, 4)},
    "the most negative extent": {"shape": (-(2**63), 0, 1)},
    "shape product overflows": {"shape": (2**31, 2**31, 2)},
    "size in bytes overflows": {"shape": (1, 2**60, 1)},
    "product beside extent 0 overflows": {"shape": (0, HUGE, HUGE)},
    "stride overflows": {"strides": (HUGE, 1, 1)},
    "the most negative stride": {"strides": (12, -(2**63), 1)},
    "sum of strides overflows": {"strides": (-(2**59), 2**58, 1)},
    "elements without data": {"data": None},
    "byte offset overflows": {"byte_offset": 2**64 - 8},
    "data at the end of memory": {"data": 2**64 - 64},
    "data before the start of memory": {"data": 16, "strides": (-12, -4, -1)},
}


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.rule("D26")
@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("fault", MALFORMED)
def test_malformed_tensor_is_refused_and_deleted_once(fault, versioned):
    producer = Producer(versioned=versioned, **MALFORMED[fault])
    before = memrt.stats()
    with pytest.raises(BufferError):
        memrt.from_dlpack(producer)
    assert producer.deleted == 1
    assert (memrt.stats() - before).mi_alloc == 0


@pytest.mark.rule("D28")
def test_unknown_flags_are_ignored():
    got = memrt.from_dlpack(Producer(flags=2**64 - 1 - READ_ONLY, version=(1, 77)))
    assert got.flags.writeable
    assert got[1, 2, 3] == 23


EDGES = [0, 1, -1, 2, 3, 2**31, -(2**31), 2**32, 2**60, 2**62, HUGE, -HUGE, -HUGE - 1]
edges = st.sampled_from(EDGES)


@given(
    versioned=st.booleans(),
    version=st.tuples(st.sampled_from([0, 1, 1, 1, 2]), st.integers(0, 4)),
    flags=st.integers(0, 2**64 - 1),
    device=st.tuples(st.integers(-1, 20), st.integers(-1, 2)),
    dtype=st.tuples(st.integers(0, 18), st.sampled_from([0, 1, 4, 8, 16, 32, 64, 128]),
                    st.sampled_from([0, 1, 1, 1, 4])),
    shape=st.lists(st.one_of(st.integers(0, 3), edges), max_size=4).map(tuple),
    strides=st.one_of(st.none(), st.just("compact"), st.lists(edges, min_size=4, max_size=4)),
    data=st.sampled_from(["memory", "memory", "memory", None, 8, 2**64 - 8]),
    byte_offset=st.sampled_from([0, 0, 8, 2**63, 2**64 - 1]),
    has_deleter=st.booleans(),
)  # fmt: skip
@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_any_tensor_is_imported_or_refused_and_deleted_once(strides, data, device, **fields):
    """The array reports the shape and item size of the tensor; memrt reads no element."""
    shape = fields["shape"]
    if strides == "compact":
        strides = compact(shape)
    elif strides is not None:
        strides = tuple(strides[: len(shape)])
    if data != "memory":
        fields["data"] = data
    producer = Producer(strides=strides, device=(min(max(device[0], 0), 3), device[1]), **fields)
    before = memrt.stats()
    try:
        got = memrt.from_dlpack(producer)
    except BufferError:
        pass
    else:
        assert got.shape == shape
        assert got.itemsize * 8 == fields["dtype"][1]
        assert producer.deleted == 0
        del got
    assert producer.deleted == int(fields["has_deleter"])
    change = memrt.stats() - before
    assert (change.mi_alloc, change.adopted) == (change.mi_free, 0)


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@given(
    wishes=st.fixed_dictionaries(
        {},
        optional={
            "stream": st.one_of(st.none(), st.integers(), st.booleans(), st.text(max_size=2)),
            "max_version": st.one_of(
                st.none(), st.tuples(st.integers(), st.integers()), st.lists(st.integers())
            ),
            "dl_device": st.one_of(st.none(), st.tuples(st.integers(), st.integers()), st.text()),
            "copy": st.one_of(st.none(), st.booleans(), st.integers()),
        },
    ),
    kind=st.sampled_from(KINDS),
)
@pytest.mark.slow
def test_dlpack_arguments_never_raise_type_error(wishes, kind):
    exporter = exporters()[kind]
    mi = meminfo_of(exporter)
    before = mi.refcount
    assert outcome(exporter.__dlpack__, **wishes) in (None, ValueError, BufferError)
    assert (mi.refcount, exports_of(mi, "dlpack")) == (before, 0)


# --- The table of functions. ---

TYPES = (memrt.MemInfo, memrt.types.Tensor)
DOUBLE = (FLOAT, 64, 1)


@pytest.mark.rule("D28")
@pytest.mark.parametrize("type_", TYPES)
def test_exchange_table_is_complete_for_header_version(type_, dlclient):
    _, *rest = dlclient.table(type_)
    assert rest == [1, 3, 5]
    assert dlclient.table(memrt.MemInfo)[0] == dlclient.table(memrt.types.Tensor)[0]
    assert dlclient.stream(type_) is None


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.rule("D28")
@pytest.mark.parametrize("on_a_thread", [False, True])
def test_exchange_table_allocates_memrt_memory(on_a_thread, dlclient):
    before = memrt.stats()
    capsule = dlclient.allocate(memrt.types.Tensor, DOUBLE, (30, 40), CPU, on_a_thread)
    change = memrt.stats() - before
    assert (change.live, change.mi_alloc) == (9600, 1)
    consumer = Consumer(capsule)
    assert (consumer.shape, consumer.strides, consumer.dtype) == ((30, 40), (40, 1), DOUBLE)
    assert consumer.tensor.data % 64 == 0
    (ctypes.c_double * 1200).from_address(consumer.tensor.data)[1199] = 1.0
    consumer.end()
    assert (memrt.stats() - before).live == 0


@pytest.mark.rule("D28")
def test_table_allocation_uses_policy_only_with_gil(dlclient):
    with memrt.Policy(name="for others", alignment=4096) as policy:
        capsule = dlclient.allocate(memrt.types.Tensor, DOUBLE, (100,), CPU, False)
        assert memrt.stats(policy).live == 800
        elsewhere = dlclient.allocate(memrt.types.Tensor, DOUBLE, (100,), CPU, True)
        assert memrt.stats(policy).live == 800
    del capsule, elsewhere


@pytest.mark.rule("D28")
@pytest.mark.parametrize("on_a_thread", [False, True])
@pytest.mark.parametrize(
    ("dtype", "shape", "device", "kind"),
    [
        ((FLOAT, 64, 2), (3,), CPU, "BufferError"),
        (DOUBLE, (-1,), CPU, "BufferError"),
        (DOUBLE, (2**62, 2), CPU, "BufferError"),
        (DOUBLE, (1,) * 65, CPU, "BufferError"),
        (DOUBLE, (3,), ROCM, "BufferError"),
        (DOUBLE, (2**58,), CPU, "MemoryError"),
    ],
    ids=str,
)
def test_failed_table_allocation_reports_single_error(
    dtype, shape, device, kind, on_a_thread, dlclient
):
    told, text = dlclient.allocate(memrt.types.Tensor, dtype, shape, device, on_a_thread)
    assert told == kind
    assert len(text) > 10


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.rule("D28")
@pytest.mark.parametrize("kind", KINDS)
def test_exchange_table_exports_and_imports_tensor(kind, dlclient):
    exporter = exporters()[kind]
    mi = meminfo_of(exporter)
    capsule = dlclient.export(type(exporter), exporter)
    assert exports_of(mi, "dlpack") == 1
    tensor = dlclient.import_(type(exporter), capsule)
    assert type(tensor) is memrt.types.Tensor
    assert tensor.meminfo.address == mi.address
    assert tensor.array.nbytes == 192
    assert (tensor.meminfo.kind, exports_of(mi, "dlpack")) == ("adopted", 1)
    del tensor
    assert exports_of(mi, "dlpack") == 0


@pytest.mark.rule("D28")
def test_exchange_table_imports_type_unknown_to_numpy(dlclient):
    producer = Producer(dtype=(BFLOAT, 16, 1), shape=(3, 4), strides=(4, 1))
    tensor = dlclient.import_(memrt.types.Tensor, producer.capsule())
    assert tensor.shape == (3, 4)
    with pytest.raises(BufferError, match="NumPy does not support"):
        _ = tensor.array
    with pytest.raises(BufferError, match="NumPy does not support"):
        tensor.__dlpack__(copy=True)
    consumer = Consumer(tensor.__dlpack__(**NEWEST))
    assert consumer.dtype == (BFLOAT, 16, 1)
    consumer.end()
    del tensor
    assert producer.deleted == 1


@pytest.mark.rule("D28")
@pytest.mark.parametrize("fault", MALFORMED)
def test_exchange_table_deletes_malformed_tensor_once(fault, dlclient):
    producer = Producer(**MALFORMED[fault])
    with pytest.raises(BufferError):
        dlclient.import_(memrt.types.Tensor, producer.capsule())
    assert producer.deleted == 1


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.rule("D28")
def test_exchange_table_borrows_tensor_without_reference(dlclient):
    array = counting()
    tensor = memrt.types.Tensor(array.transpose(2, 0, 1)[1:])
    before = tensor.meminfo.refcount
    told = dlclient.borrow(memrt.types.Tensor, tensor)
    assert told == (array.ctypes.data + 8, (1, 0), DOUBLE, (3, 2, 3), (1, 12, 4), 0)
    assert (tensor.meminfo.refcount, exports_of(tensor.meminfo, "dlpack")) == (before, 0)
    mi = memrt.alloc(77)
    assert dlclient.borrow(memrt.MemInfo, mi) == (mi.address, (1, 0), (UINT, 8, 1), (77,), (1,), 0)
    assert dlclient.borrow(memrt.MemInfo, memrt.alloc(0))[0] is None
    assert dlclient.borrow(memrt.types.Tensor, memrt.types.Tensor(memrt.zeros((2, 0))))[0] is None


@pytest.mark.rule("D28")
def test_exchange_table_refuses_to_borrow_read_only_memory(dlclient):
    array = counting()
    array.flags.writeable = False
    for thing in (readonly_meminfo(), memrt.types.Tensor(array)):
        with pytest.raises(BufferError, match="read-only"):
            dlclient.borrow(type(thing), thing)


@pytest.mark.rule("D28")
@pytest.mark.parametrize("thing", [None, 5, np.zeros(3), b"bytes"], ids=kind_of)
def test_exchange_table_refuses_foreign_objects(thing, dlclient):
    for call in (dlclient.export, dlclient.borrow):
        with pytest.raises(TypeError, match=r"memrt\.types\.Tensor"):
            call(memrt.types.Tensor, thing)


def test_exchange_table_attribute_is_immutable():
    for type_ in TYPES:
        with pytest.raises(TypeError):
            type_.__dlpack_c_exchange_api__ = None


# --- Tensors. ---


def test_tensor_attributes_describe_array():
    array = counting()[::2]
    tensor = memrt.types.Tensor(array)
    assert (tensor.shape, tensor.array.strides) == ((1, 3, 4), array.strides)
    assert tensor.meminfo == memrt.meminfo(array)
    assert repr(tensor).startswith(
        "<memrt.types.Tensor of shape (1, 3, 4) over <memrt.MemInfo of 192"
    )
    np.testing.assert_array_equal(tensor.array, array)


@needs_gil
def test_holders_and_collector_find_tensor():
    tensor = memrt.types.Tensor(counting())
    found = memrt.holders(tensor.meminfo)
    assert any("Tensor" in each.text for row in found.rows for each in row.referrers)
    assert tensor.meminfo in gc.get_referents(tensor)


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_export_counts_in_stats_until_deleted():
    before = memrt.stats()
    kept = memrt.types.Tensor(counting()).__dlpack__(**NEWEST)
    change = memrt.stats() - before
    assert (change.live, change.exported) == (192, 1)
    del kept
    change = memrt.stats() - before
    assert (change.live, change.exported) == (0, 0)


def test_import_counts_in_stats_of_given_policy():
    policy = memrt.Policy(name="imports")
    got = memrt.from_dlpack(Producer(), policy=policy)
    assert memrt.stats(policy).adopted == 192
    assert memrt.meminfo(got).policy == "imports"
    del got
    assert memrt.stats(policy).adopted == 0
    producer = Producer()
    with pytest.raises(TypeError):
        memrt.from_dlpack(producer, policy=5)
    assert producer.deleted == 0  # the tensor is still in its capsule


def shared() -> dict[str, object]:
    """Return a holder of each kind, all over the same buffer."""
    array = memrt.zeros(24)
    return {
        "NumPy": array,
        "DLPack": memrt.types.Tensor(array).__dlpack__(**NEWEST),
        "Arrow": memrt.types.Column(array).__arrow_c_array__(),
        "a buffer": memoryview(memrt.meminfo(array)),
        "C": memrt.meminfo(array).__memrt_meminfo__(),
        "memrt itself": memrt.from_dlpack(memrt.types.Tensor(array)),
    }


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_shared_buffer_is_freed_once_in_any_release_order():
    before = memrt.stats()
    for order in itertools.permutations(shared()):
        held = shared()
        for name in order:
            assert (memrt.stats() - before).live == 192
            del held[name]
        assert (memrt.stats() - before).live == 0


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_shared_buffer_is_freed_by_concurrent_releases():
    def release(number: int) -> None:
        del held[names[number]]

    before = memrt.stats()
    for _ in range(50):
        held = shared()
        names = list(held)
        on_threads(release, len(names))
    gc.collect()
    assert (memrt.stats() - before).live == 0


# --- NumPy as the other library. ---


def numpy_takes(exporter) -> np.ndarray:
    return np.from_dlpack(exporter)


@pytest.mark.parametrize("view", VIEWS)
def test_numpy_imports_tensor_without_copy(view):
    array = VIEWS[view](counting())
    if not array.flags.writeable and not numpy_knows_versions:
        with pytest.raises(BufferError):
            numpy_takes(memrt.types.Tensor(array))
        return
    got = numpy_takes(memrt.types.Tensor(array))
    np.testing.assert_array_equal(got, array)
    if array.size > 0:  # NumPy may allocate memory for an array without elements
        assert got.ctypes.data == array.ctypes.data
        assert got.flags.writeable == (array.flags.writeable and NUMPY >= (2, 2))


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_numpy_imports_meminfo_as_bytes_and_holds_export():
    mi = memrt.alloc(100)
    got = numpy_takes(mi)
    assert (got.shape, got.dtype, got.ctypes.data) == ((100,), np.uint8, mi.address)
    assert (mi.refcount, exports_of(mi, "dlpack")) == (2, 1)
    del got
    assert (mi.refcount, exports_of(mi, "dlpack")) == (1, 0)


def test_numpy_array_is_imported_without_copy():
    array = np.arange(24.0).reshape(4, 6)[::-1, 1::2]
    got = memrt.from_dlpack(array)
    assert (got.ctypes.data, got.strides) == (array.ctypes.data, array.strides)
    assert got.flags.writeable == numpy_knows_versions
    assert memrt.is_managed(got)
    del array
    gc.collect()
    assert got[0, 0] == 19


def test_ctypes_structs_have_sizes_of_header():
    assert (ctypes.sizeof(Unversioned), ctypes.sizeof(Versioned)) == (64, 80)
