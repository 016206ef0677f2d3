"""CUDA memory by DLPack, Arrow, buffers and the array interface, always as its own kind."""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib.machinery
import importlib.util
import itertools
import os
import sys
import threading
import types
import weakref
from pathlib import Path

import memrt
import numpy as np
import pytest
from memrt import _memrt
from memrt.cuda import Array, CudaError, Stream, empty

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "support"))
from arrowarray import struct_of
from capsules import name_of
from dltensor import (
    CPU,
    CUDA,
    CUDA_HOST,
    IS_COPIED,
    MANAGED,
    READ_ONLY,
    Consumer,
    Producer,
)

NEWEST = {"max_version": (1, 3)}
ON_CPU = {"dl_device": (CPU, 0), **NEWEST}
DEVICES = {"device": CUDA, "managed": MANAGED, "pinned": CUDA_HOST}
KINDS = list(DEVICES)
HOST_KINDS = ["managed", "pinned"]
WAITS = ("cuStreamSynchronize", "cuStreamWaitEvent", "cuEventRecord")


def counting(shape=(2, 3), dtype="i4", **options) -> Array:
    array = empty(shape, dtype, **options)
    array.copy_from_host(np.arange(array.size).reshape(shape))
    return array


def exporters(array: Array) -> dict[str, object]:
    """Return all exporters over one buffer."""
    meminfo = array.meminfo
    return {"Array": array, "MemInfo": meminfo}


def array_of(consumer: Consumer) -> Array:
    """Return the array of a consumer that works on the device."""
    tensor = consumer.tensor
    assert (tensor.device_type, tensor.dtype.bits) == (CUDA, 32)

    exporter = types.SimpleNamespace(
        __cuda_array_interface__={
            "shape": consumer.shape,
            "typestr": "<i4",
            "data": (tensor.data, False),
            "strides": tuple(4 * stride for stride in consumer.strides),
            "version": 3,
        }
    )
    return memrt.from_cuda_array_interface(exporter)


# --- DLPack, export. ---


@pytest.mark.rule("D15")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exporter", ["Array", "MemInfo"])
def test_dlpack_device_matches_memory_kind(kind, exporter):
    thing = exporters(counting(kind=kind))[exporter]
    assert thing.__dlpack_device__() == (DEVICES[kind], 0)
    consumer = Consumer(thing.__dlpack__(**NEWEST))
    assert (consumer.tensor.device_type, consumer.tensor.device_id) == (DEVICES[kind], 0)
    consumer.end()


@pytest.mark.rule("D15")
def test_array_on_second_device_reports_device_1(fake):
    fake.machine(devices=2)
    array = empty(4, device=1)
    assert array.__dlpack_device__() == (CUDA, 1)
    with pytest.raises(BufferError, match="device"):
        array.__dlpack__(dl_device=(CUDA, 0))
    assert empty(4, device=1, kind="managed").__dlpack_device__() == (MANAGED, 0)


@pytest.mark.rule("D15")
def test_array_of_pinned_policy_exports_as_cuda_host():
    array = memrt.zeros(10, policy=memrt.Policy(pinned=True, name="pinned here"))
    tensor = memrt.types.Tensor(array)
    assert tensor.__dlpack_device__() == (CUDA_HOST, 0)
    theirs = np.from_dlpack(tensor)
    assert theirs.ctypes.data == array.ctypes.data


@pytest.mark.rule("D18")
@pytest.mark.parametrize("kind", KINDS)
def test_strided_array_is_exported_without_copy(kind):
    array = counting((3, 4), kind=kind)[::-1, ::2]
    consumer = Consumer(array.__dlpack__(**NEWEST))
    assert (consumer.shape, consumer.strides) == ((3, 2), (-4, 2))
    assert consumer.tensor.data == array.__cuda_array_interface__["data"][0]
    consumer.end()


@pytest.mark.rule("D21")
def test_export_without_elements_has_null_data():
    consumer = Consumer(empty((0, 3)).__dlpack__(**NEWEST))
    assert (consumer.shape, consumer.tensor.data) == ((0, 3), None)
    consumer.end()


@pytest.mark.rule("D2")
def test_export_without_max_version_is_unversioned():
    capsule = counting().__dlpack__()
    assert name_of(capsule) == b"dltensor"


@pytest.mark.rule("D10")
def test_read_only_array_is_exported_only_with_version():
    owner = counting()
    entries = {**owner.__cuda_array_interface__}
    entries["data"] = (entries["data"][0], True)
    readonly = memrt.from_cuda_array_interface(type("R", (), {"__cuda_array_interface__": entries}))
    consumer = Consumer(readonly.__dlpack__(**NEWEST))
    assert consumer.struct.flags == READ_ONLY
    consumer.end()
    with pytest.raises(BufferError, match="read-only"):
        readonly.__dlpack__()
    entries.clear()


@pytest.mark.rule("D13")
@pytest.mark.parametrize("kind", KINDS)
def test_dlpack_copy_stays_in_same_memory_kind(kind):
    array = counting((3, 4), kind=kind)[1:, 1:3]
    consumer = Consumer(array.__dlpack__(copy=True, **NEWEST))
    assert consumer.struct.flags == IS_COPIED
    assert consumer.tensor.device_type == DEVICES[kind]
    assert consumer.tensor.data != array.__cuda_array_interface__["data"][0]
    before = memrt.cuda.stats(kind).live
    if kind == "device":
        np.testing.assert_array_equal(array_of(consumer).copy_to_host(), array.copy_to_host())
    consumer.end()
    assert memrt.cuda.stats(kind).live < before


@pytest.mark.rule("D14")
def test_device_memory_is_copied_for_cpu_unless_forbidden():
    array = counting((3, 4))[::-1, ::2]
    for copy in (None, True):
        consumer = Consumer(array.__dlpack__(copy=copy, **ON_CPU))
        assert (consumer.tensor.device_type, consumer.struct.flags) == (CPU, IS_COPIED)
        consumer.end()
    with pytest.raises(BufferError, match="copy must be True or None"):
        array.__dlpack__(copy=False, **ON_CPU)


@pytest.mark.rule("D14")
def test_cpu_copy_of_device_array_has_same_elements():
    array = counting((3, 4))
    for view in (array, array[::-1, ::2], array[1], array[1, 2], array[:0]):
        theirs = memrt.from_dlpack(view, device="cpu")
        np.testing.assert_array_equal(theirs, view.copy_to_host())


@pytest.mark.rule("D14")
@pytest.mark.parametrize("kind", HOST_KINDS)
def test_host_readable_memory_exports_as_cpu_without_copy(kind):
    array = counting(kind=kind)
    consumer = Consumer(array.__dlpack__(copy=False, **ON_CPU))
    assert consumer.tensor.device_type == CPU
    assert consumer.tensor.data == array.meminfo.address
    consumer.end()


@pytest.mark.rule("D14")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", [(CUDA, 1), (10, 0), (4, 0), (1, 1)])
def test_export_to_another_device_is_refused(kind, device):
    with pytest.raises(BufferError, match="device"):
        counting(kind=kind).__dlpack__(dl_device=device)


@pytest.mark.rule("D16")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [0, -2, True, 1.0, "1", 2**64])
def test_invalid_stream_raises_value_error(kind, stream):
    with pytest.raises(ValueError, match="stream"):
        counting(kind=kind).__dlpack__(stream=stream)


@pytest.mark.rule("D16")
@pytest.mark.parametrize("stream", [1, 2])
def test_cpu_export_refuses_stream(stream):
    with pytest.raises(ValueError, match="stream"):
        counting().__dlpack__(stream=stream, **ON_CPU)


@pytest.mark.rule("D17")
@pytest.mark.parametrize("wish", [None, 1, 2, "own"])
def test_consumer_stream_waits_for_pending_work(fake, wish):
    own, theirs = Stream(), Stream()
    array = empty(100, "u1", stream=own)
    fake.launch(own.handle, array.meminfo.address, 7, 100)
    stream = theirs.handle if wish == "own" else wish
    before = fake.calls(*WAITS)
    consumer = Consumer(array.__dlpack__(stream=stream, **NEWEST))
    assert fake.calls(*WAITS) == before + 2  # an event recorded, and awaited by the stream
    handle = stream or 1
    fake.launch(handle, array.meminfo.address, 9, 50)
    _memrt.cuda_stream_synchronize(0, handle)
    array.used(handle)
    assert array.copy_to_host().tolist() == [9] * 50 + [7] * 50
    consumer.end()


@pytest.mark.rule("D17")
def test_stream_minus_1_skips_wait(fake):
    own = Stream()
    array = empty(100, "u1", stream=own)
    before = fake.calls(*WAITS)
    Consumer(array.__dlpack__(stream=-1, **NEWEST)).end()
    assert fake.calls(*WAITS) == before


@pytest.mark.rule("D17")
def test_stream_handle_2_to_63_is_not_taken_for_minus_1(fake):
    array = empty(100, "u1", stream=Stream())
    with pytest.raises(CudaError):
        array.__dlpack__(stream=2**63)
    fake.reset()  # clears the fault: no such stream exists


@pytest.mark.rule("D17")
@pytest.mark.parametrize("kind", HOST_KINDS)
@pytest.mark.parametrize("asked", [NEWEST, ON_CPU], ids=["own device", "cpu"])
def test_host_readable_export_without_stream_is_ready(machine, kind, asked):
    own = Stream()
    array = empty(1000, "u1", kind=kind, stream=own)
    machine.launch(own.handle, array.meminfo.address, 7, 1000)
    consumer = Consumer(array.__dlpack__(**asked))
    assert ctypes.string_at(consumer.tensor.data, 1000) == b"\7" * 1000
    consumer.end()


@pytest.mark.parametrize("kind", HOST_KINDS)
def test_numpy_import_waits_for_device_writes(machine, kind):
    own = Stream()
    array = empty(1000, "u1", kind=kind, stream=own)
    machine.launch(own.handle, array.meminfo.address, 7, 1000)
    assert (np.from_dlpack(array) == 7).all()


@pytest.mark.rule("D17")
def test_driver_failure_in_export_leaves_no_export(fake):
    array = counting(stream=Stream())
    fake.fail("cuEventRecord", 700)
    with pytest.raises(CudaError, match="cuEventRecord"):
        array.__dlpack__(stream=1)
    assert memrt.holders(array.meminfo).named == ()


@pytest.mark.parametrize("call", ["cuMemcpyAsync", "cuMemAlloc_v2"])
def test_driver_failure_in_copy_leaves_no_memory(fake, call):
    array = counting(stream=Stream())
    fake.fail(call, 2 if call == "cuMemAlloc_v2" else 700)
    with pytest.raises(MemoryError if call == "cuMemAlloc_v2" else CudaError):
        array.__dlpack__(copy=True, **NEWEST)
    if call == "cuMemcpyAsync":
        fake.fail(call, 700)
        with pytest.raises(CudaError):
            array.__dlpack__(**ON_CPU)


@pytest.mark.rule("D27")
def test_export_is_holder_until_deleter():
    array = counting()
    meminfo = array.meminfo
    count = meminfo.refcount
    consumer = Consumer(array.__dlpack__(**NEWEST))
    assert meminfo.refcount == count + 1
    assert [(each.name, each.kind) for each in memrt.holders(meminfo).named] == [
        ("dlpack", "export")
    ]
    array.release()
    live = memrt.cuda.stats("device").live
    del array
    assert memrt.cuda.stats("device").live == live
    consumer.end()
    assert meminfo.refcount == count


def test_released_array_is_not_exported():
    array = counting()
    array.release()
    for call in (array.__dlpack__, array.__dlpack_device__):
        with pytest.raises(ReferenceError):
            call()


@pytest.mark.rule("D23")
def test_structured_dtype_is_not_exported():
    with pytest.raises(BufferError, match="dtype"):
        empty(3, [("a", "f4"), ("b", "i4")]).__dlpack__()


@pytest.mark.rule("D19")
def test_stride_not_multiple_of_item_size_is_refused():
    with pytest.raises(BufferError, match="strides"):
        empty(3, [("a", "i4"), ("b", "u1")])["a"].__dlpack__()


# --- DLPack, import. ---


def test_device_tensor_is_imported_as_cuda_array():
    theirs = counting((3, 4), stream=Stream())
    taken = memrt.from_dlpack(theirs[::-1, 1:])
    assert type(taken) is Array
    assert (taken.shape, taken.strides, taken.kind) == ((3, 3), (-16, 4), "device")
    assert (taken.stream, taken.device, taken.readonly) == (1, 0, False)
    assert (taken.meminfo.policy, taken.meminfo.kind) == ("cuda foreign", "adopted")
    np.testing.assert_array_equal(taken.copy_to_host(), theirs.copy_to_host()[::-1, 1:])
    assert memrt.stats().exported == 1
    del taken
    assert memrt.stats().exported == 0


def test_copy_of_device_tensor_stays_on_device():
    theirs = counting((3, 4))
    own = memrt.from_dlpack(theirs[1:, ::2], copy=True)
    assert memrt.stats().exported == 0
    assert own.meminfo.policy == "cuda device"
    theirs.copy_from_host(0)
    np.testing.assert_array_equal(own.copy_to_host(), np.arange(12).reshape(3, 4)[1:, ::2])


@pytest.mark.parametrize("copy", [None, True])
def test_stream_of_imported_tensor_lives_as_long_as_the_memory(copy):
    taken = memrt.from_dlpack(counting(), copy=copy)
    stream = Stream()
    taken.used(stream)
    alive = weakref.ref(stream)
    consumer = Consumer(taken.__dlpack__(**NEWEST))
    del stream, taken
    gc.collect()
    assert alive() is not None
    consumer.end()
    gc.collect()
    assert alive() is None


def test_deleter_runs_if_the_kept_list_has_other_references():
    memory = empty(24)
    producer = Producer(device=(CUDA, 0), data=memory.meminfo.address)
    taken = memrt.from_dlpack(producer)
    kept = taken._keep
    del taken
    assert producer.deleted == 1
    assert kept == []


@pytest.mark.rule("D11")
def test_read_only_device_tensor_stays_read_only():
    memory = empty(24)
    producer = Producer(device=(CUDA, 0), data=memory.meminfo.address, flags=READ_ONLY)
    taken = memrt.from_dlpack(producer)
    assert taken.readonly
    assert taken.meminfo.readonly
    with pytest.raises(ValueError, match="read-only"):
        taken.copy_from_host(0)
    del taken
    assert producer.deleted == 1


@pytest.mark.rule("D6")
@pytest.mark.parametrize("versioned", [False, True])
def test_device_tensor_deleter_is_called_once(versioned):
    memory = empty(24)
    producer = Producer(versioned=versioned, device=(CUDA, 0), data=memory.meminfo.address)
    taken = memrt.from_dlpack(producer)
    view = taken[1]
    del taken
    assert producer.deleted == 0
    del view
    assert producer.deleted == 1


class OldProducer(Producer):
    """A library from before the keyword arguments of DLPack 1.0."""

    def __dlpack__(self) -> object:
        return self.capsule()


@pytest.mark.parametrize("library", [Producer, OldProducer])
@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("device", ["cpu", (1, 0)])
def test_device_tensor_is_refused_if_the_cpu_is_requested(library, copy, device):
    memory = empty(24)
    producer = library(device=(CUDA, 0), data=memory.meminfo.address)
    with pytest.raises(BufferError, match="CUDA device, but the CPU was requested"):
        memrt.from_dlpack(producer, device=device, copy=copy)
    assert producer.deleted == 1
    assert type(memrt.from_dlpack(producer)) is Array


def test_device_tensor_unknown_to_driver_is_refused():
    producer = Producer(device=(CUDA, 0))  # host memory, unknown to the driver
    with pytest.raises(BufferError, match="address"):
        memrt.from_dlpack(producer)
    assert producer.deleted == 1


def test_imported_tensor_counts_in_given_policy():
    policy = memrt.Policy(name="theirs")
    taken = memrt.from_dlpack(counting(), policy=policy)
    assert taken.meminfo.policy == "theirs"
    assert memrt.stats(policy).adopted == 24


@pytest.mark.rule("D24")
def test_type_unknown_to_numpy_is_refused_and_deleted_once():
    memory = empty(24)
    producer = Producer(device=(CUDA, 0), data=memory.meminfo.address, dtype=(4, 16, 1))
    with pytest.raises(BufferError, match="type 4"):
        memrt.from_dlpack(producer)
    gc.collect()
    assert producer.deleted == 1


@pytest.mark.parametrize("size", [0, 2**64])
def test_copy_beyond_buffer_is_refused(size):
    meminfo = counting().meminfo
    with pytest.raises(ValueError, match="bytes"):
        _memrt.cuda_copy(meminfo, 25 if size == 0 else 0, 0 if size == 0 else 25, [])
    with pytest.raises(ValueError, match="bytes"):
        _memrt.cuda_copy(memrt.alloc(10), 0, 1, [])


# --- Tensors, buffers, the array interface, Arrow. ---


def test_device_tensor_has_no_numpy_array():
    producer = counting()
    tensor = _memrt.take_capsule(producer.__dlpack__(**NEWEST), None)
    assert tensor.shape == (2, 3)
    with pytest.raises(BufferError, match="CUDA device"):
        _ = tensor.array


@functools.cache
def numbas_runtime():
    """Return memrt's module in place of Numba's runtime, loaded as Numba loads the runtime."""
    name, file = "runtime._nrt_python", _memrt.__file__
    loader = importlib.machinery.ExtensionFileLoader(name, file)
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def numbas_meminfo(meminfo: memrt.MemInfo) -> object:
    """Return Numba's object for a MemInfo."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    capsule = meminfo.__memrt_meminfo__()
    held = numbas_runtime()._MemInfo(ptr=pointer(capsule, b"memrt.meminfo"))
    held.acquire()  # _MemInfo() stole the capsule's reference
    return held


def in_numba(meminfo: memrt.MemInfo) -> memoryview:
    """Return the buffer of Numba's object for a MemInfo."""
    return memoryview(numbas_meminfo(meminfo))


@pytest.mark.parametrize("readonly", [False, True])
def test_numbas_buffer_is_read_only_if_the_memory_is(readonly):
    data = (ctypes.c_char * 24)()
    address = ctypes.addressof(data)
    held = numbas_meminfo(memrt.wrap(address, 24, owner=data, readonly=readonly))
    view = memoryview(held)
    assert (view.readonly, view.nbytes) == (readonly, 24)
    if readonly:
        with pytest.raises(TypeError, match="not writable"):
            (ctypes.c_char * 24).from_buffer(held)


READERS = {
    "Numba's MemInfo": in_numba,
    "a buffer": memoryview,
    "__array_interface__": lambda mi: mi.__array_interface__,
    "__array_struct__": lambda mi: mi.__array_struct__,
    "as_array": memrt.as_array,
    "bytes": bytes,
    "__arrow_c_array__": lambda mi: mi.__arrow_c_array__(),
    "parts of an Arrow array": lambda mi: _memrt.export_arrow_parts(
        ("C", "", False, 0, mi.nbytes, 0, 0, (None, (mi, 0)), (), None), False
    ),
    "from_arrow": memrt.from_arrow,
}


@pytest.mark.parametrize("reader", READERS)
def test_host_reader_of_device_memory_is_refused(reader):
    with pytest.raises(BufferError, match="CUDA device"):
        READERS[reader](counting().meminfo)


@pytest.mark.parametrize("kind", HOST_KINDS)
@pytest.mark.parametrize("reader", [each for each in READERS if each != "from_arrow"])
def test_host_reader_waits_for_stream_work(fake, kind, reader):
    own = Stream()
    array = empty(1000, "u1", kind=kind, stream=own)
    fake.launch(own.handle, array.meminfo.address, 7, 1000)
    result = READERS[reader](array.meminfo)
    assert fake.peek(array.meminfo.address + 999) == 7
    assert ctypes.string_at(array.meminfo.address, 1000) == b"\7" * 1000
    del result


@pytest.mark.parametrize("kind", KINDS)
def test_arrow_device_export_reports_memory_kind(fake, kind):
    own = Stream()
    array = empty(1000, "u1", kind=kind, stream=own)
    fake.launch(own.handle, array.meminfo.address, 7, 1000)
    schema, capsule = array.meminfo.__arrow_c_device_array__()
    device = struct_of(capsule)
    assert (device.device_type, device.device_id) == (DEVICES[kind], 0)
    assert device.sync_event is None
    assert fake.peek(array.meminfo.address + 999) == 7  # no work is pending
    del schema, capsule


def test_from_arrow_refuses_device_memory():
    with pytest.raises(BufferError, match="device"):
        memrt.from_arrow(
            type(
                "D",
                (),
                {
                    "__arrow_c_device_array__": lambda self: (
                        counting().meminfo.__arrow_c_device_array__()
                    )
                },
            )()
        )


def test_column_in_pinned_memory_exports_as_cuda_host():
    column = memrt.types.Column(
        memrt.zeros(10, policy=memrt.Policy(pinned=True, name="pinned here"))
    )
    schema, capsule = column.__arrow_c_device_array__()
    assert struct_of(capsule).device_type == CUDA_HOST
    del schema
    assert memrt.from_arrow(column).tolist() == [0] * 10


def test_forked_child_cannot_export_inherited_array(machine):
    array = counting()
    child = os.fork()
    if child == 0:
        try:
            array.__dlpack__()
        except CudaError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# --- All kinds of holders of one buffer. ---


HELD = {
    "a C reference": lambda array: array.meminfo.__memrt_meminfo__(),
    "a DLPack export": lambda array: array.__dlpack__(**NEWEST),
    "an Arrow export": lambda array: array.meminfo.__arrow_c_device_array__(),
    "a CUDA view": lambda array: memrt.from_cuda_array_interface(array[1:], owner=array[1:]),
    "an array of NumPy's": lambda array: array.as_numpy(),
    "a buffer": lambda array: memoryview(array.meminfo),
}
ON_DEVICE = list(HELD)[:4]
"""Holders that can exist for memory which the host cannot read."""


def held_in(kind: str) -> list[str]:
    return ON_DEVICE if kind == "device" else list(HELD)


def share(kind: str) -> dict[str, object]:
    array = empty((4, 5), kind=kind)
    return {name: HELD[name](array) for name in held_in(kind)}


@pytest.mark.parametrize("kind", KINDS)
def test_holders_and_refcount_agree_for_shared_buffer(kind):
    array = empty((4, 5), kind=kind)
    before = array.meminfo.refcount
    held = {name: HELD[name](array) for name in held_in(kind)}
    named = {(each.name, each.kind, each.count) for each in memrt.holders(array.meminfo).named}
    assert named == {("dlpack", "export", 1), ("arrow", "export", 1)}
    assert memrt.stats().exported == 2
    # Two exports and a capsule hold a reference each; the other holders keep a Python object.
    assert array.meminfo.refcount == before + 3
    del held
    assert memrt.holders(array.meminfo).named == ()
    assert array.meminfo.refcount == before


@pytest.mark.parametrize("kind", KINDS)
def test_buffer_is_freed_once_in_any_release_order(kind):
    for order in itertools.permutations(held_in(kind)):
        held = share(kind)
        for name in order:
            assert memrt.cuda.stats(kind).live == 160
            del held[name]
        assert memrt.cuda.stats(kind).live == 0


@pytest.mark.parametrize("kind", KINDS)
def test_buffer_is_freed_once_by_concurrent_releases(kind):
    names = held_in(kind)
    start = threading.Barrier(len(names))

    def let_go(held: dict[str, object], name: str) -> None:
        start.wait()
        del held[name]

    freed = memrt.cuda.stats(kind).free
    for _ in range(50):
        held = share(kind)
        threads = [threading.Thread(target=let_go, args=(held, name)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    gc.collect()
    assert memrt.cuda.stats(kind).free == freed + 50
