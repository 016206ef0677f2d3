"""The rules of the CUDA Array Interface. A mark on each test names the rule."""

from __future__ import annotations

import gc
import operator
import threading
import weakref

import memrt
import numpy as np
import pytest
from memrt.cuda import CudaError, Stream, empty


class Producer:
    """An object with the interface, as another library may have it."""

    def __init__(self, array: memrt.cuda.Array | None = None, **changes: object) -> None:
        entries = {} if array is None else array.__cuda_array_interface__
        self.entries = {**entries, **changes}
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict:
        return dict(self.entries)


def without(producer: Producer, *keys: str) -> Producer:
    for key in keys:
        producer.entries.pop(key, None)
    return producer


def counting(shape: tuple[int, ...], dtype: str = "i4", **options) -> memrt.cuda.Array:
    """Return an array of 0, 1, 2, ..."""
    array = empty(shape, dtype, **options)
    array.copy_from_host(np.arange(array.size).reshape(shape))
    return array


SYNCHRONIZATIONS = ("cuStreamSynchronize", "cuStreamWaitEvent", "cuEventRecord")


@pytest.mark.rule("C1")
def test_interface_is_new_dict_at_each_access():
    array = empty(3)
    first = array.__cuda_array_interface__
    assert type(first) is dict
    first.clear()
    assert array.__cuda_array_interface__["shape"] == (3,)


@pytest.mark.rule("C2")
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_interface_has_all_required_keys(shape):
    assert {"shape", "typestr", "data", "version"} <= set(empty(shape).__cuda_array_interface__)


@pytest.mark.rule("C3")
@pytest.mark.parametrize("shape", [(), 5, (0,), (np.int64(2), 3), [4]])
def test_shape_is_tuple_of_python_ints(shape):
    found = empty(shape).__cuda_array_interface__["shape"]
    assert type(found) is tuple
    assert all(type(extent) is int and extent >= 0 for extent in found)


TYPES = ["?", "i1", "u1", "<i2", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"]


@pytest.mark.rule("C4")
@pytest.mark.parametrize("dtype", TYPES)
def test_typestr_matches_numpy(dtype):
    assert empty(1, dtype).__cuda_array_interface__["typestr"] == np.dtype(dtype).str


@pytest.mark.rule("C4")
def test_structured_type_exports_descr():
    dtype = np.dtype([("a", "<f4"), ("b", "<i2", (2,))])
    found = empty(2, dtype).__cuda_array_interface__
    assert (found["typestr"], found["descr"]) == ("|V8", dtype.descr)
    assert memrt.from_cuda_array_interface(Producer(empty(2, dtype))).dtype == dtype


@pytest.mark.rule("C5")
def test_data_is_pair_of_int_and_bool():
    found = empty(3).__cuda_array_interface__["data"]
    assert type(found) is tuple
    assert [type(each) for each in found] == [int, bool]


@pytest.mark.rule("C6")
def test_address_is_first_element_with_negative_strides():
    array = counting((4, 5))
    start = array.__cuda_array_interface__["data"][0]
    turned = array[::-1, ::-1]
    assert turned.__cuda_array_interface__["data"][0] == start + 19 * 4
    assert turned.__cuda_array_interface__["strides"] == (-20, -4)
    taken = memrt.from_cuda_array_interface(turned)
    np.testing.assert_array_equal(taken.copy_to_host(), np.arange(20).reshape(4, 5)[::-1, ::-1])


@pytest.mark.rule("C7")
@pytest.mark.parametrize("array", [lambda: empty((0, 3)), lambda: empty((4, 3))[4:]])
def test_array_without_elements_has_address_0(array):
    assert array().__cuda_array_interface__["data"][0] == 0


@pytest.mark.rule("C8")
def test_read_only_import_and_views_stay_read_only():
    readonly = Producer(counting((3,)))
    readonly.entries["data"] = (readonly.entries["data"][0], True)
    taken = memrt.from_cuda_array_interface(readonly)
    for view in (taken, taken[1:], taken.T):
        assert view.__cuda_array_interface__["data"][1] is True
        with pytest.raises(ValueError, match="read-only"):
            view.copy_from_host(1)
    assert taken.meminfo.readonly


@pytest.mark.rule("C8")
def test_read_only_managed_memory_gives_read_only_array():
    readonly = Producer(counting((3,), kind="managed"))
    readonly.entries["data"] = (readonly.entries["data"][0], True)
    assert not memrt.from_cuda_array_interface(readonly).as_numpy().flags.writeable


@pytest.mark.rule("C9")
def test_version_is_int_3():
    found = empty(1).__cuda_array_interface__["version"]
    assert (found, type(found)) == (3, int)


LAYOUTS = [
    (np.s_[:], None),
    (np.s_[::2], (48, 12, 4)),
    (np.s_[:, :, ::-1], (24, 12, -4)),
    (np.s_[:1, :, :], None),
    (np.s_[1:2, ::2], None),
    (np.s_[:, :, 0:0], None),
    (np.s_[:, 1], (24, 4)),
    (np.s_[..., None], None),
]


@pytest.mark.rule("C10")
@pytest.mark.parametrize(("index", "strides"), LAYOUTS)
def test_strides_are_none_only_for_dense_arrays(index, strides):
    array = empty((4, 2, 3), "i4")[index]
    assert array.__cuda_array_interface__["strides"] == strides


@pytest.mark.rule("C11")
@pytest.mark.parametrize("strides", [..., None, (12, 4), [12, 4]])
def test_dense_array_is_imported_with_or_without_strides(strides):
    producer = Producer(counting((2, 3)), strides=strides)
    if strides is ...:
        without(producer, "strides")
    taken = memrt.from_cuda_array_interface(producer)
    assert (taken.strides, taken.__cuda_array_interface__["strides"]) == ((12, 4), None)
    np.testing.assert_array_equal(taken.copy_to_host(), [[0, 1, 2], [3, 4, 5]])


STRIDES = [((3, 2), (4, 12)), ((4,), (0,)), ((2, 3), (0, 4)), ((2,), (20,)), ((3, 2), (4, 4))]


@pytest.mark.rule("C12")
@pytest.mark.parametrize(("shape", "strides"), STRIDES)
def test_fortran_broadcast_and_overlapping_strides_work(shape, strides):
    producer = Producer(counting((6,)), shape=shape, strides=strides)
    taken = memrt.from_cuda_array_interface(producer)
    base = np.arange(6, dtype="i4")
    expected = np.lib.stride_tricks.as_strided(base, shape, strides)
    np.testing.assert_array_equal(taken.copy_to_host(), expected)
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    assert taken.meminfo.nbytes == reach + 4


@pytest.mark.rule("C12")
def test_negative_strides_are_imported():
    array = counting((6,))
    start = array.__cuda_array_interface__["data"][0]
    producer = Producer(array, shape=(3,), strides=(-8,), data=(start + 20, False))
    taken = memrt.from_cuda_array_interface(producer)
    assert (taken.meminfo.address, taken.meminfo.nbytes) == (start + 4, 20)
    np.testing.assert_array_equal(taken.copy_to_host(), [5, 3, 1])


@pytest.mark.rule("C13")
@pytest.mark.parametrize("strides", [(), (4,), (12, 4, 4)])
def test_wrong_stride_count_is_refused_without_driver_call(machine, strides):
    producer = Producer(empty((2, 3), "i4"), strides=strides)
    if not machine.is_real:
        machine.reset()
    with pytest.raises(ValueError, match="strides must have 2 entries"):
        memrt.from_cuda_array_interface(producer)
    assert machine.is_real or machine.log() == []


@pytest.mark.rule("C14")
def test_mask_none_is_accepted():
    assert memrt.from_cuda_array_interface(Producer(empty(3), mask=None)).shape == (3,)


@pytest.mark.rule("C14")
def test_mask_raises_not_implemented_error():
    with pytest.raises(NotImplementedError, match="mask"):
        memrt.from_cuda_array_interface(Producer(empty(3), mask=Producer(empty(3, "?"))))


@pytest.mark.rule("C15")
@pytest.mark.parametrize("stream", [..., None])
def test_import_without_stream_does_not_synchronize(fake, stream):
    producer = Producer(empty(3), stream=stream)
    if stream is ...:
        without(producer, "stream")
    fake.reset()
    memrt.from_cuda_array_interface(producer)
    assert fake.calls(*SYNCHRONIZATIONS) == 0


class OtherStream:
    """A stream of another library, whose handle is the attribute `name`."""

    def __init__(self, name: str, handle: object) -> None:
        setattr(self, name, handle)


NULL_STREAMS = [OtherStream("ptr", 0), OtherStream("cuda_stream", 0), OtherStream("handle", None)]


@pytest.mark.rule("C16")
@pytest.mark.parametrize("stream", [1, *NULL_STREAMS])
def test_legacy_stream_is_exported_as_1(stream):
    assert empty(3, stream=stream).__cuda_array_interface__["stream"] == 1


@pytest.mark.rule("C16")
def test_stream_is_exported_by_handle():
    stream = Stream()
    assert empty(3, stream=stream).__cuda_array_interface__["stream"] == stream.handle
    assert empty(3, stream=stream.handle).__cuda_array_interface__["stream"] == stream.handle
    assert empty(3, stream=2).__cuda_array_interface__["stream"] == 2
    assert "stream" not in empty(3).__cuda_array_interface__


@pytest.mark.rule("C17")
@pytest.mark.parametrize(
    ("stream", "error"),
    [(0, ValueError), (-1, ValueError), (2**64, ValueError), (True, TypeError), (1.0, TypeError)],
)
def test_invalid_stream_is_refused(fake, stream, error):
    array = empty(3)
    fake.reset()
    with pytest.raises(error, match="stream"):
        memrt.from_cuda_array_interface(Producer(array, stream=stream))
    with pytest.raises(error):
        empty(3, stream=stream)
    with pytest.raises(error):
        array.used(stream)
    assert fake.calls(*SYNCHRONIZATIONS) == 0


@pytest.mark.rule("C18")
@pytest.mark.parametrize("sync", [True, False])
def test_read_waits_for_producer_stream(machine, sync):
    stream = Stream()
    array = empty(1000, "u1", stream=stream)
    address = array.__cuda_array_interface__["data"][0]
    machine.launch(stream.handle, address, 7, 1000)
    taken = memrt.from_cuda_array_interface(array, sync=sync)
    np.testing.assert_array_equal(taken.copy_to_host(), np.full(1000, 7, "u1"))


@pytest.mark.rule("C18")
def test_import_waits_once_unless_sync_is_false(fake):
    stream = Stream()
    array = empty(10, "u1", stream=stream)
    fake.launch(stream.handle, array.meminfo.address, 7, 10)
    fake.reset()
    kept = memrt.from_cuda_array_interface(array, sync=False)
    assert fake.calls(*SYNCHRONIZATIONS) == 0
    assert fake.peek(array.meminfo.address) != 7
    memrt.from_cuda_array_interface(array)
    assert fake.calls("cuStreamSynchronize") == 1
    assert fake.peek(kept.meminfo.address) == 7


@pytest.mark.rule("C19")
def test_producer_stream_waits_for_consumer_work(machine):
    producers, consumers = Stream(), Stream()
    array = empty(1000, "u1", stream=producers)
    taken = memrt.from_cuda_array_interface(array)
    taken.make_ready(consumers)
    machine.launch(consumers.handle, taken.meminfo.address, 1, 1000)
    taken.used(consumers)
    machine.launch(producers.handle, taken.meminfo.address, 2, 500)
    array.synchronize()
    host = array.copy_to_host()
    assert (set(host[:500]), set(host[500:])) == ({2}, {1})


@pytest.mark.rule("C20")
def test_exported_stream_waits_for_work_in_all_streams(machine):
    streams = [Stream() for _ in range(4)]
    array = empty((4, 100), "u1", stream=streams[0])
    for number, stream in enumerate(streams):
        machine.launch(
            stream.handle, array[number].__cuda_array_interface__["data"][0], number, 100
        )
        array.used(stream)
    exported = array.__cuda_array_interface__["stream"]
    assert exported == streams[0].handle
    taken = memrt.from_cuda_array_interface(array)
    np.testing.assert_array_equal(taken.copy_to_host(), np.arange(4)[:, None].repeat(100, 1))


@pytest.mark.rule("C21")
def test_cuda_sync_option_is_on_by_default():
    assert [row.value for row in memrt.debug.options() if row.name == "MEMRT_CUDA_SYNC"] == ["1"]


@pytest.fixture
def no_sync():
    memrt.set_option("cuda_sync", 0)
    yield
    memrt.set_option("cuda_sync", 1)


@pytest.mark.rule("C21")
def test_stream_is_ignored_without_cuda_sync(fake, no_sync):
    stream = Stream()
    array = empty(3, stream=stream)
    fake.reset()
    assert "stream" not in array.__cuda_array_interface__
    taken = memrt.from_cuda_array_interface(Producer(array, stream=stream.handle))
    assert taken.stream is None
    assert fake.calls(*SYNCHRONIZATIONS) == 0


@pytest.mark.rule("C22")
def test_exported_stream_outlives_array():
    stream = Stream()
    array = empty(3, stream=stream)
    alive = weakref.ref(stream)
    meminfo = array.meminfo
    del stream, array
    gc.collect()
    assert alive() is not None
    del meminfo
    gc.collect()
    assert alive() is None


@pytest.mark.rule("C22")
def test_stream_added_by_used_lives_as_long_as_array():
    stream = Stream()
    array = empty(3)
    array.used(stream)
    alive = weakref.ref(stream)
    del stream
    gc.collect()
    assert alive() is not None
    del array
    gc.collect()
    assert alive() is None


@pytest.mark.rule("C23")
def test_reading_interface_holds_no_reference(fake):
    array = empty(3)
    before, live = array.meminfo.refcount, fake.live()
    entries = array.__cuda_array_interface__
    assert array.meminfo.refcount == before
    del array
    assert fake.live() == live - 1
    assert entries["shape"] == (3,)


@pytest.mark.rule("C23")
def test_owner_may_differ_from_producer():
    array = empty(3)
    producer, owner = Producer(array), Producer()
    gone, kept = weakref.ref(producer), weakref.ref(owner)
    taken = memrt.from_cuda_array_interface(producer, owner=owner)
    del producer, owner
    gc.collect()
    assert (gone(), kept() is not None) == (None, True)
    del taken
    gc.collect()
    assert kept() is None


@pytest.mark.rule("C23")
def test_owner_may_be_none():
    array = empty(3)
    producer = Producer(array)
    gone = weakref.ref(producer)
    taken = memrt.from_cuda_array_interface(producer, owner=None)
    del producer
    gc.collect()
    assert gone() is None
    assert taken.shape == (3,)


@pytest.mark.rule("C24")
def test_producer_is_released_once_with_last_reference():
    producer = Producer(counting((4,)))
    ends: list[str] = []
    weakref.finalize(producer, ends.append, "gone")
    taken = memrt.from_cuda_array_interface(producer)
    view, meminfo = taken[1:], taken.meminfo
    del producer, taken
    gc.collect()
    np.testing.assert_array_equal(view.copy_to_host(), [1, 2, 3])
    del view
    gc.collect()
    assert ends == []
    del meminfo
    gc.collect()
    assert ends == ["gone"]


@pytest.mark.rule("C24")
def test_producer_is_released_once_by_concurrent_threads(machine):
    ends: list[str] = []
    for _ in range(20):
        producer = Producer(empty(4))
        weakref.finalize(producer, ends.append, "gone")
        held = [memrt.from_cuda_array_interface(producer)] * 3
        del producer
        threads = [threading.Thread(target=held.pop) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
    memrt.stats()
    assert ends == ["gone"] * 20


@pytest.mark.rule("C25")
@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(
    "more", [{}, {"strides": (12, 4)}, {"strides": None}, {"descr": [("", "<i4")]}]
)
def test_older_interface_versions_are_imported(machine, version, more):
    array = counting((2, 3))
    producer = without(Producer(array, version=version, **more), "stream", "mask")
    if not machine.is_real:
        machine.reset()
    taken = memrt.from_cuda_array_interface(producer)
    assert machine.is_real or machine.calls(*SYNCHRONIZATIONS) == 0
    assert taken.__cuda_array_interface__["version"] == 3
    np.testing.assert_array_equal(taken.copy_to_host(), [[0, 1, 2], [3, 4, 5]])


@pytest.mark.rule("C25")
@pytest.mark.parametrize("address", [0, 12345])
def test_empty_array_of_version_1_may_have_any_address(address):
    producer = Producer(empty(0), version=1, data=(address, False), strides=(8,))
    assert memrt.from_cuda_array_interface(producer).size == 0


@pytest.mark.rule("C25")
def test_rmm_dict_of_version_0_is_imported():
    array = counting((6,), "u1")
    producer = Producer(
        array,
        data=(array.meminfo.address, False),
        shape=(6,),
        strides=None,
        typestr="|u1",
        version=0,
    )
    assert list(memrt.from_cuda_array_interface(producer).copy_to_host()) == list(range(6))


@pytest.mark.rule("C27")
@pytest.mark.parametrize("typestr", [">f4", ">i8", ">U3", "|O", "|O8"])
def test_foreign_byte_order_and_objects_are_refused(typestr):
    with pytest.raises(ValueError, match=r"Python objects|NumPy"):
        memrt.from_cuda_array_interface(Producer(empty(3), typestr=typestr))
    with pytest.raises(TypeError, match="Python objects"):
        empty(3, typestr)


@pytest.mark.rule("C28")
@pytest.mark.parametrize(
    "shape", [(2**62, 4), (2**32, 2**32), (2**63,), (2**70,), (0, 2**64), (2**61,)]
)
def test_shape_beyond_address_space_is_refused(shape):
    with pytest.raises(ValueError, match="address space"):
        memrt.from_cuda_array_interface(Producer(empty(3), shape=shape, typestr="<f8"))


@pytest.mark.rule("C28")
@pytest.mark.parametrize("strides", [(2**62,), (-(2**62),), (2**63,), (-(2**70),)])
def test_strides_beyond_address_space_are_refused(strides):
    with pytest.raises(ValueError, match=r"address space|no memory"):
        memrt.from_cuda_array_interface(Producer(empty(3), strides=strides))


@pytest.mark.rule("C29")
def test_address_of_another_context_is_resolved(fake):
    array = counting((3,))
    alias = fake.alias(array.meminfo.address)
    producer = Producer(array, data=(alias, False))
    taken = memrt.from_cuda_array_interface(producer)
    assert fake.calls("cuPointerGetAttribute") >= 1
    assert taken.meminfo.address == array.meminfo.address != alias
    np.testing.assert_array_equal(taken.copy_to_host(), [0, 1, 2])


@pytest.mark.rule("C29")
def test_address_unknown_to_driver_is_refused():
    host = np.zeros(3)
    with pytest.raises(
        CudaError, match="cuPointerGetAttribute failed with CUDA_ERROR_INVALID_VALUE"
    ):
        memrt.from_cuda_array_interface(Producer(empty(3), data=(host.ctypes.data, False)))


@pytest.mark.rule("C29")
@pytest.mark.parametrize("kind", ["device", "managed", "pinned"])
def test_import_takes_memory_kind_from_driver(kind):
    taken = memrt.from_cuda_array_interface(empty(3, kind=kind))
    assert (taken.kind, taken.device) == (kind, 0)


ATTRIBUTES = ["__cuda_array_interface__", "meminfo", "kind", "stream", "device", "T"]


@pytest.mark.rule("C30")
@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_released_array_has_no_address(attribute):
    array = empty(3)
    array.release()
    array.release()
    with pytest.raises(ReferenceError, match="released"):
        operator.attrgetter(attribute)(array)
    assert "released" in repr(array)
    with pytest.raises(ReferenceError):
        memrt.from_cuda_array_interface(array)


@pytest.mark.rule("C30")
def test_view_survives_release_of_array():
    array = counting((3,))
    view = array[1:]
    array.release()
    np.testing.assert_array_equal(view.copy_to_host(), [1, 2])
