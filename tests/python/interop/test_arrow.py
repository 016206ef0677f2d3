"""Arrow arrays between memrt and other libraries, by the C data, device or PyCapsule interface."""

from __future__ import annotations

import ctypes
import errno
import gc
import itertools
import threading

import hypothesis.strategies as st
import memrt
import numpy as np
import pytest
from arrowarray import (
    CPU,
    CUDA_HOST,
    MANAGED,
    ROCM_HOST,
    Array,
    Producer,
    Schema,
    StreamProducer,
    release,
    struct_of,
)
from atonce import on_threads
from capsules import name_of
from exported import exports_of
from hypothesis import given
from memrt import _memrt

BOOL8 = b"\x01\0\0\0\x14\0\0\0ARROW:extension:name\x0b\0\0\0arrow.bool8"


def counting(dtype=float) -> np.ndarray:
    """Return an array of 24 elements in memrt's memory."""
    array = memrt.empty(24, dtype)
    array[...] = np.arange(24).astype(dtype)
    return array


def exporters() -> dict[str, object]:
    """Return an exporter of each type."""
    return {"MemInfo": memrt.alloc(192, zero=True), "Column": memrt.types.Column(counting())}


KINDS = sorted(exporters())
METHODS = ("__arrow_c_array__", "__arrow_c_device_array__")


def meminfo_of(exporter) -> memrt.MemInfo:
    return exporter if isinstance(exporter, memrt.MemInfo) else memrt.meminfo(exporter.array)


def export(exporter, method="__arrow_c_array__"):
    """Return the capsules of an export, and both structs in the capsules."""
    capsules = getattr(exporter, method)()
    return capsules, struct_of(capsules[0]), struct_of(capsules[1])


class Again:
    """Export the same capsules at each call."""

    def __init__(self, exporter) -> None:
        self.capsules = exporter.__arrow_c_array__()

    def __arrow_c_array__(self, requested_schema=None):
        return self.capsules


# --- Export.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_export_describes_memory_without_copy(kind, method):
    exporter = exporters()[kind]
    capsules, schema, struct = export(exporter, method)
    array = struct if method == METHODS[0] else struct.array
    assert [name_of(capsule) for capsule in capsules] == [
        b"arrow_schema",
        b"arrow_array" if method == METHODS[0] else b"arrow_device_array",
    ]
    assert array.buffers[1] == meminfo_of(exporter).address
    assert (schema.format, array.length) == ((b"C", 192) if kind == "MemInfo" else (b"g", 24))
    assert (array.null_count, array.offset, array.n_buffers, array.n_children) == (0, 0, 2, 0)
    assert array.buffers[0] is None
    if method == METHODS[1]:
        assert (struct.device_type, struct.device_id, struct.sync_event) == (CPU, -1, None)


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.parametrize("kind", KINDS)
def test_schema_export_holds_no_memory(kind):
    exporter = exporters()[kind]
    capsule = exporter.__arrow_c_schema__()
    assert name_of(capsule) == b"arrow_schema"
    assert struct_of(capsule).format == (b"C" if kind == "MemInfo" else b"g")
    assert exports_of(meminfo_of(exporter), "arrow") == 0


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_deleting_unused_capsules_releases_export(kind, method):
    exporter = exporters()[kind]
    mi = meminfo_of(exporter)
    before = mi.refcount
    capsules = getattr(exporter, method)()
    assert (mi.refcount, exports_of(mi, "arrow")) == (before + 1, 1)
    del capsules
    assert (mi.refcount, exports_of(mi, "arrow")) == (before, 0)


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.parametrize("kind", KINDS)
def test_moved_array_outlives_capsules_and_frees_memory_once(kind):
    exporter = exporters()[kind]
    mi = meminfo_of(exporter)
    before = memrt.stats()
    capsules, _, struct = export(exporter)
    moved = Array.from_buffer_copy(struct)
    struct.release = None  # a consumer marks a moved struct so, as Arrow requires
    del capsules, struct, exporter
    gc.collect()
    assert exports_of(mi, "arrow") == 1
    del mi
    ctypes.memset(moved.buffers[1], 7, 192)
    release(moved)
    assert not moved.release
    gc.collect()
    assert (memrt.stats() - before).mi_free == 1


@pytest.mark.parametrize("kind", KINDS)
def test_export_is_released_on_any_thread_without_gil(kind):
    exporter = exporters()[kind]
    capsules, _, struct = export(exporter)
    moved = Array.from_buffer_copy(struct)
    struct.release = None
    del exporter, capsules, struct
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(moved.release)  # ctypes releases the GIL
    thread = threading.Thread(target=free, args=(ctypes.addressof(moved),))
    thread.start()
    thread.join()
    assert not moved.release


@pytest.mark.parametrize("kind", KINDS)
def test_requested_schema_does_not_change_format(kind):
    exporter = exporters()[kind]
    wish = memrt.alloc(1).__arrow_c_schema__()
    for method in METHODS:
        for schema in (None, wish):
            capsules = getattr(exporter, method)(schema)
            assert struct_of(capsules[0]).format == (b"C" if kind == "MemInfo" else b"g")
            getattr(exporter, method)(requested_schema=schema)
        with pytest.raises(TypeError):
            getattr(exporter, method)(None, None)
    with pytest.raises(TypeError):
        exporter.__arrow_c_array__(wanted=None)


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_device_export_keyword_must_be_none(kind):
    exporter = exporters()[kind]
    exporter.__arrow_c_device_array__(requested_schema=None, stream=None)
    with pytest.raises(NotImplementedError, match="'stream'"):
        exporter.__arrow_c_device_array__(stream=1)


DTYPES = {
    "i1": b"c",
    "u1": b"C",
    "i2": b"s",
    "u2": b"S",
    "i4": b"i",
    "u4": b"I",
    "i8": b"l",
    "u8": b"L",
    "f2": b"e",
    "f4": b"f",
    "f8": b"g",
    "?": b"c",
    "M8[s]": b"tss:",
    "M8[ms]": b"tsm:",
    "M8[us]": b"tsu:",
    "M8[ns]": b"tsn:",
    "m8[s]": b"tDs",
    "m8[ms]": b"tDm",
    "m8[us]": b"tDu",
    "m8[ns]": b"tDn",
    "V5": b"w:5",
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_survives_export_and_import(dtype):
    array = counting("i8").view("u1")[:15].view("V5") if dtype == "V5" else counting(dtype)
    column = memrt.types.Column(array, "numbers")
    capsules, schema, _ = export(column)
    assert (schema.format, schema.name) == (DTYPES[dtype], b"numbers")
    del capsules, schema
    back = memrt.from_arrow(column)
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    assert back.ctypes.data == array.ctypes.data


def test_bytes_array_is_imported_as_void_dtype():
    array = memrt.array([b"one", b"three"])
    back = memrt.from_arrow(memrt.types.Column(array))
    assert back.dtype == "V5"
    assert back.view("S5").tolist() == [b"one", b"three"]


@pytest.mark.parametrize(
    "dtype",
    [
        ">f8",
        "c16",
        "g",
        "U3",
        "M8[D]",
        "M8",
        "M8[2s]",
        "m8[h]",
        [("x", "i4")],
        "V0",
        ">i2",
        ">M8[s]",
    ],
)
def test_dtype_without_arrow_format_is_refused(dtype):
    array = memrt.zeros(3, dtype) if dtype != "V0" else memrt.as_array(memrt.alloc(0), (3,), "V0")
    with pytest.raises(BufferError, match=r"Arrow has no format|for Arrow"):
        memrt.types.Column(array)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::2],
        lambda a: a[::-1],
        lambda a: a.reshape(2, 12).T,
        lambda a: a[3:4].reshape(()),
        lambda a: np.broadcast_to(a[:1], 5),
    ],
)
def test_column_needs_contiguous_elements(view):
    with pytest.raises(BufferError, match=r"contiguous|one dimension"):
        memrt.types.Column(view(counting()))


def test_column_needs_array_managed_by_memrt():
    with pytest.raises(ValueError, match="not managed by memrt"):
        memrt.types.Column(np.arange(3.0))
    with pytest.raises(TypeError, match="must be a numpy"):
        memrt.types.Column([1.0])
    with pytest.raises(BufferError):
        memrt.types.Column(memrt.array([{}], object))


def test_column_attributes_describe_array():
    array = counting()
    column = memrt.types.Column(array, name="x")
    assert column.array is array
    assert (column.name, len(column), repr(column)) == (
        "x",
        24,
        "<memrt.types.Column of 24 float64>",
    )
    with pytest.raises(AttributeError):
        column.other = 1


def test_column_keeps_data_when_array_is_resized():
    with memrt.Policy(name="columns"):
        array = np.arange(2000.0)
    column = memrt.types.Column(array)
    array.resize(4000, refcheck=False)
    back = memrt.from_arrow(column)
    assert (len(column), len(back), back[-1]) == (2000, 2000, 1999)


@pytest.mark.parametrize("part", [slice(5, 12), slice(0, 0), slice(24, 30), slice(23, 24)])
def test_slice_is_exported_without_copy(part):
    array = counting()
    _capsules, _, struct = export(memrt.types.Column(array[part]))
    assert struct.length == len(array[part])
    if struct.length:
        assert struct.buffers[1] == array[part].ctypes.data


def test_array_allocated_by_numpy_is_exported_without_copy():
    with memrt.Policy(name="columns"):
        array = np.arange(2000.0)
    back = memrt.from_arrow(memrt.types.Column(array))
    assert back.ctypes.data == array.ctypes.data
    address = array.ctypes.data
    del array
    assert (back.sum(), back.ctypes.data) == (1999000.0, address)


def test_masked_elements_are_exported_as_nulls():
    array = np.ma.MaskedArray(counting(), np.arange(24) % 3 == 0, copy=False)
    column = memrt.types.Column(array)
    capsules, schema, struct = export(column)
    assert (struct.null_count, schema.flags) == (8, 2)
    assert ctypes.string_at(struct.buffers[0], 3) == bytes([0b10110110, 0b01101101, 0b11011011])
    del capsules, schema, struct
    back = memrt.from_arrow(column, masked=True)
    assert (back.mask == array.mask).all()
    assert back.compressed().tolist() == array.compressed().tolist()
    assert _memrt.address(back.data) == _memrt.address(array.data)
    with pytest.raises(BufferError, match="8 of 24 elements are null"):
        memrt.from_arrow(column)


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_validity_bitmap_lives_as_long_as_export():
    before = memrt.stats()
    capsules = memrt.types.Column(
        np.ma.MaskedArray(counting(), [True] * 24, copy=False)
    ).__arrow_c_array__()
    gc.collect()
    struct = struct_of(capsules[1])
    assert (memrt.stats() - before).mi_free == 0
    assert ctypes.string_at(struct.buffers[0], 3) == bytes(3)
    del capsules, struct
    assert (memrt.stats() - before).mi_free == 2


@pytest.mark.parametrize("mask", [np.ma.nomask, [False] * 24])
def test_array_without_masked_elements_has_no_bitmap(mask):
    column = memrt.types.Column(np.ma.MaskedArray(counting(), mask, copy=False))
    capsules, schema, struct = export(column)
    assert (struct.null_count, struct.buffers[0], schema.flags) == (0, None, 0)
    del capsules
    assert memrt.from_arrow(column, masked=True).mask is np.ma.nomask


HOLDERS = {
    "an array": lambda mi: memrt.as_array(mi),
    "a buffer": memoryview,
    "an array by the array interface": lambda mi: mi.__array_struct__,
    "an export": lambda mi: mi.__arrow_c_array__(),
    "an export to a device": lambda mi: mi.__arrow_c_device_array__(),
    "an export that came back": memrt.from_arrow,
}


def shared() -> list[list]:
    """Return a list per kind of holder. All holders keep the same buffer, and no other reference
    exists.
    """
    mi = memrt.alloc(64)
    return [[hold(mi)] for hold in HOLDERS.values()]


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_buffer_is_freed_with_last_holder_in_any_order():
    for order in itertools.permutations(range(len(HOLDERS))):
        holders = shared()
        before = memrt.stats()
        for i in order[:-1]:
            holders[i].clear()
        assert (memrt.stats() - before).alloc == 0
        assert memrt.stats().live == before.live
        holders[order[-1]].clear()
        assert before.live - memrt.stats().live == 64


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_concurrent_releases_free_buffer_once():
    for _ in range(100):
        holders = shared()
        before = memrt.stats()
        on_threads(lambda number: holders[number].clear(), len(holders))  # noqa: B023
        _memrt.owners()
        assert before.live - memrt.stats().live == 64


# --- Import.


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_import_is_read_only_without_copy_and_released_once():
    producer = Producer()
    before = memrt.stats()
    array = memrt.from_arrow(producer)
    assert array.ctypes.data == ctypes.addressof(producer.memory)
    assert array.tolist() == list(range(24))
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True
    mi = memrt.meminfo(array)
    assert (mi.kind, mi.readonly, mi.nbytes, mi.refcount) == ("adopted", True, 192, 1)
    assert (memrt.stats() - before).adopted == 192
    part = array[3:]
    del array, mi
    assert producer.released == 0
    del part
    assert producer.released == 1


def test_import_belongs_to_current_or_given_policy():
    with memrt.Policy(name="theirs") as policy:
        array = memrt.from_arrow(Producer())
    assert memrt.meminfo(array).policy == "theirs"
    assert memrt.meminfo(memrt.from_arrow(Producer(), policy=policy)).policy == "theirs"
    assert memrt.meminfo(memrt.from_arrow(Producer())).policy == "default"


def test_offset_applies_to_elements_and_validity_bits():
    producer = Producer(
        offset=10, length=14, null_count=-1, validity=[0xFF, 0b10111011, 0xFF], schema_format=b"l"
    )
    array = memrt.from_arrow(producer, masked=True)
    assert _memrt.address(array.data) == ctypes.addressof(producer.memory) + 80
    assert np.flatnonzero(array.mask).tolist() == [0, 4]
    assert array.dtype == np.int64


@pytest.mark.thread_unsafe(reason="another thread may run queued owners")
def test_imported_array_is_released_with_gil_held(probe):
    producer = Producer()
    mi = memrt.meminfo(memrt.from_arrow(producer))
    held = probe.hold(mi)
    del mi
    probe.release_without_gil(held, True)
    _memrt.owners()
    assert producer.released == 1


@pytest.mark.parametrize("device", [CPU, CUDA_HOST, ROCM_HOST, MANAGED])
def test_host_readable_device_memory_is_imported(device):
    producer = Producer(device=device)
    array = memrt.from_arrow(producer)
    assert array.sum() == 276
    del array
    assert producer.released == 1


def refused(error, match, producer, **options):
    """Verify that an import fails, adopts nothing, and leaves the array to the producer to release
    once.
    """
    before = memrt.stats()
    with pytest.raises(error, match=match):
        memrt.from_arrow(producer, **options)
    gc.collect()
    assert (memrt.stats() - before).adopted == 0
    producer.end()
    assert producer.released == 1


@pytest.mark.parametrize(
    "device", [*sorted({*range(-1, 17)} - {CPU, CUDA_HOST, ROCM_HOST, MANAGED}), 99]
)
def test_memory_of_unsupported_device_is_refused(device):
    refused(BufferError, "device", Producer(device=device))


def test_array_with_pending_event_is_refused():
    refused(BufferError, "event", Producer(device=CUDA_HOST, event=8))


def test_array_cannot_be_imported_twice():
    producer = Producer()
    array = memrt.from_arrow(producer)
    with pytest.raises(BufferError, match="array was released"):
        memrt.from_arrow(producer)
    del array
    assert producer.released == 1


def test_capsules_cannot_be_imported_twice():
    exporter = Again(memrt.types.Column(counting()))
    array = memrt.from_arrow(exporter)
    with pytest.raises(BufferError, match="array was released"):
        memrt.from_arrow(exporter)
    assert array.sum() == 276


EXCHANGED = {
    b"tdm": "M8[ms]",
    b"ttu": "m8[us]",
    b"ttn": "m8[ns]",
    b"tsn:Asia/Tokyo": "M8[ns]",
    b"tss:UTC": "M8[s]",
    b"w:7": "V7",
    b"tiD": [("days", "i4"), ("milliseconds", "i4")],
    b"tin": [("months", "i4"), ("days", "i4"), ("nanoseconds", "i8")],
}


@pytest.mark.parametrize("format", EXCHANGED)
def test_format_gives_matching_numpy_dtype(format):
    producer = Producer(schema_format=format, length=12)
    assert memrt.from_arrow(producer).dtype == np.dtype(EXCHANGED[format])


@pytest.mark.parametrize("format", [b"tdD", b"tts", b"ttm", b"tiM", b"d:9,2", b"b", b"u", b"n"])
def test_format_without_dtype_is_refused(format):
    refused(BufferError, "NumPy has no dtype", Producer(length=3, schema_format=format))


@pytest.mark.parametrize(
    "format", [b"", b"+r", b"+s", b"w:x", b"w:0", b"tsx:", b"gg", b"d:0,1", b"\xff", None]
)
def test_format_without_layout_is_refused(format):
    refused(BufferError, "format", Producer(schema_format=format))


def test_bool8_extension_gives_bool_dtype():
    metadata = ctypes.create_string_buffer(BOOL8)
    producer = Producer(schema_format=b"c", schema_metadata=ctypes.addressof(metadata))
    assert memrt.from_arrow(producer).dtype == bool
    producer = Producer(schema_format=b"g", schema_metadata=ctypes.addressof(metadata))
    refused(BufferError, "truth", producer)


RELEASED = Schema()
BAD = {
    "a negative length": {"length": -1},
    "the most negative length": {"length": -(2**63)},
    "a length beyond the address space": {"length": 2**62},
    "a negative offset": {"offset": -1},
    "an offset beyond the address space": {"offset": 2**63 - 1},
    "a negative number of nulls": {"null_count": -2},
    "more nulls than elements": {"null_count": 25},
    "nulls without a bitmap": {"null_count": 1},
    "a bitmap at the end of the address space": {"null_count": 1, "validity": 2**64 - 1},
    "no data": {"data": None},
    "data at the end of the address space": {"data": 2**64 - 100},
    "no buffers": {"buffers": None},
    "one buffer": {"n_buffers": 1},
    "three buffers": {"n_buffers": 3},
    "a negative number of buffers": {"n_buffers": -1},
    "a child": {"n_children": 1},
    "a dictionary": {"dictionary": 8},
    "a released array": {"release": None},
    "a schema with a child": {"schema_n_children": 1},
    "a schema with a released dictionary": {"schema_dictionary": ctypes.addressof(RELEASED)},
    "a released schema": {"schema_release": None},
}


@pytest.mark.parametrize("what", BAD)
def test_malformed_array_is_refused(what):
    producer = Producer(**BAD[what])
    if not producer.array.release:
        producer.released = 1
    refused(BufferError, "cannot take", producer)


@pytest.mark.parametrize("what", [None, 3, [], np.arange(3), memrt])
def test_object_without_arrow_method_is_refused(what):
    with pytest.raises(TypeError, match="__arrow_c_array__"):
        memrt.from_arrow(what)


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (None, ValueError),
        ((), ValueError),
        ((1, 2, 3), ValueError),
        ([1, 2], ValueError),
        ((1, 2), TypeError),
        ((None, None), TypeError),
    ],
)
def test_producer_result_without_capsules_is_refused(returned, error):
    class Bad:
        def __arrow_c_array__(self):
            return returned

    with pytest.raises(error):
        memrt.from_arrow(Bad())


def test_producer_exception_propagates():
    class Bad:
        def __arrow_c_array__(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        memrt.from_arrow(Bad())


NAMES = (b"arrow_schema", b"arrow_array", b"arrow_device_array", b"", b"dltensor", None)


@pytest.mark.parametrize("names", list(itertools.product(NAMES, NAMES)))
def test_capsules_with_wrong_names_are_refused(names):
    producer = Producer(names=names)
    if names in {(b"arrow_schema", b"arrow_array"), (b"arrow_schema", b"arrow_device_array")}:
        assert memrt.from_arrow(producer).sum() == 276
    else:
        refused(ValueError, "capsule", producer)


edges = st.sampled_from(sorted({sign * (2**power) + step for power in (0, 3, 31, 60, 61, 62, 63)
                               for sign in (1, -1) for step in (-1, 0, 1)
                               if -(2**63) <= sign * 2**power + step < 2**63}))  # fmt: skip
some = st.one_of(st.integers(-2, 30), edges)
formats = st.one_of(
    st.sampled_from([*DTYPES.values(), *EXCHANGED, b"d:5,2", b"w:0", b"u", b"+s", b"n"]),
    st.text("cCsSdwtDn:,-0123456789", max_size=25).map(str.encode),
)


@given(
    st.fixed_dictionaries(
        {"schema_format": formats},
        optional={
            "length": some,
            "offset": some,
            "null_count": some,
            "n_buffers": st.integers(1, 3),
            "n_children": st.integers(-1, 1),
            "data": st.sampled_from([None, 2**64 - 1, 2**64 - 256]),
            "schema_n_children": st.integers(-1, 1),
        },
    ),
    st.booleans(),
)
def test_any_array_is_imported_or_refused_and_released_once(fields, masked):
    producer = Producer(**fields, validity=[0xAA] * 8)
    wild = producer.array.offset + producer.array.length > 24  # elements lie beyond the memory
    try:
        if wild and producer.array.null_count != 0:
            producer.array.null_count = 0
        array = memrt.from_arrow(producer, masked=masked)
    except BufferError:
        pass
    else:
        assert len(array) == producer.array.length
        base = producer.buffers[1] or 0
        if len(array):
            first = base + producer.array.offset * array.itemsize
            assert _memrt.address(np.ma.getdata(array)) == first
            assert first + array.nbytes <= 2**64
        del array
    producer.end()
    assert producer.released == 1


# --- Streams. ---


def test_single_chunk_of_stream_is_imported_without_copy():
    chunk = Producer()
    stream = StreamProducer(chunk)
    array = memrt.from_arrow(stream)
    assert _memrt.address(array) == ctypes.addressof(chunk.memory)
    assert (stream.released, chunk.released) == (1, 0)
    del array
    assert chunk.released == 1


def test_stream_without_chunks_gives_empty_array():
    stream = StreamProducer()
    array = memrt.from_arrow(stream)
    assert (array.shape, array.dtype, stream.released) == ((0,), np.float64, 1)


def test_stream_with_several_chunks_is_refused_without_copy():
    stream = StreamProducer(Producer(), Producer())
    with pytest.raises(BufferError, match="chunks"):
        memrt.from_arrow(stream)
    gc.collect()
    assert (stream.released, [chunk.released for chunk in stream.chunks]) == (1, [1, 1])


@pytest.mark.parametrize("call", [0, 1, 2])
@pytest.mark.parametrize("message", [b"the disk is gone", None])
def test_failing_stream_raises_buffer_error_with_message(call, message):
    stream = StreamProducer(Producer(), fails=call, message=message)
    with pytest.raises(BufferError, match="the disk is gone" if message else "error"):
        memrt.from_arrow(stream)
    gc.collect()
    assert (stream.released, stream.chunks[0].released) == (1, int(call == 2))


@pytest.mark.parametrize("call", [0, 1, 2])
def test_stream_without_memory_raises_memory_error(call):
    stream = StreamProducer(Producer(), fails=call, error=errno.ENOMEM)
    with pytest.raises(MemoryError, match="stream of Arrow arrays failed"):
        memrt.from_arrow(stream)
    gc.collect()
    assert (stream.released, stream.chunks[0].released) == (1, int(call == 2))


def test_stream_cannot_be_imported_twice():
    stream = StreamProducer(Producer())
    memrt.from_arrow(stream)
    with pytest.raises(BufferError, match="stream of Arrow arrays was released"):
        memrt.from_arrow(stream)


def test_invalid_stream_capsule_is_refused():
    with pytest.raises(ValueError, match="arrow_array_stream"):
        memrt.from_arrow(StreamProducer(name=b"arrow_stream"))
    with pytest.raises(TypeError, match="arrow_array_stream"):
        _memrt.arrays_of_stream(None)
