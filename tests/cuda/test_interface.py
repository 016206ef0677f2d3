"""The rules of the CUDA Array Interface, each by a test of its number."""

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
    """An object with the interface, as somebody else may have it."""

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
    """An array of 0, 1, 2, ..."""
    array = empty(shape, dtype, **options)
    array.copy_from_host(np.arange(array.size).reshape(shape))
    return array


SYNCHRONIZATIONS = ("cuStreamSynchronize", "cuStreamWaitEvent", "cuEventRecord")


def test_c01_the_attribute_is_a_fresh_dict_each_time():
    array = empty(3)
    first = array.__cuda_array_interface__
    assert type(first) is dict
    first.clear()
    assert array.__cuda_array_interface__["shape"] == (3,)


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_c02_the_keys_that_must_be_there_are(shape):
    assert {"shape", "typestr", "data", "version"} <= set(empty(shape).__cuda_array_interface__)


@pytest.mark.parametrize("shape", [(), 5, (0,), (np.int64(2), 3), [4]])
def test_c03_the_shape_is_a_tuple_of_python_ints(shape):
    found = empty(shape).__cuda_array_interface__["shape"]
    assert type(found) is tuple
    assert all(type(extent) is int and extent >= 0 for extent in found)


TYPES = ["?", "i1", "u1", "<i2", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"]


@pytest.mark.parametrize("dtype", TYPES)
def test_c04_typestr_is_numpys(dtype):
    assert empty(1, dtype).__cuda_array_interface__["typestr"] == np.dtype(dtype).str


def test_c04_a_structured_type_gives_descr_too():
    dtype = np.dtype([("a", "<f4"), ("b", "<i2", (2,))])
    found = empty(2, dtype).__cuda_array_interface__
    assert (found["typestr"], found["descr"]) == ("|V8", dtype.descr)
    assert memrt.from_cuda_array_interface(Producer(empty(2, dtype))).dtype == dtype


def test_c05_data_is_a_pair_of_an_int_and_a_bool():
    found = empty(3).__cuda_array_interface__["data"]
    assert type(found) is tuple
    assert [type(each) for each in found] == [int, bool]


def test_c06_the_address_is_of_the_first_element_for_negative_strides_too():
    array = counting((4, 5))
    start = array.__cuda_array_interface__["data"][0]
    turned = array[::-1, ::-1]
    assert turned.__cuda_array_interface__["data"][0] == start + 19 * 4
    assert turned.__cuda_array_interface__["strides"] == (-20, -4)
    taken = memrt.from_cuda_array_interface(turned)
    np.testing.assert_array_equal(taken.copy_to_host(), np.arange(20).reshape(4, 5)[::-1, ::-1])


@pytest.mark.parametrize("array", [lambda: empty((0, 3)), lambda: empty((4, 3))[4:]])
def test_c07_the_address_of_an_array_without_elements_is_0(array):
    assert array().__cuda_array_interface__["data"][0] == 0


def test_c08_a_read_only_array_says_so_and_stays_so():
    readonly = Producer(counting((3,)))
    readonly.entries["data"] = (readonly.entries["data"][0], True)
    taken = memrt.from_cuda_array_interface(readonly)
    for view in (taken, taken[1:], taken.T):
        assert view.__cuda_array_interface__["data"][1] is True
        with pytest.raises(ValueError, match="read-only"):
            view.copy_from_host(1)
    assert taken.meminfo.readonly


def test_c08_read_only_managed_memory_gives_no_writable_array_of_numpys():
    readonly = Producer(counting((3,), kind="managed"))
    readonly.entries["data"] = (readonly.entries["data"][0], True)
    assert not memrt.from_cuda_array_interface(readonly).as_numpy().flags.writeable


def test_c09_the_version_is_the_int_3():
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


@pytest.mark.parametrize(("index", "strides"), LAYOUTS)
def test_c10_strides_are_none_for_dense_arrays_alone(index, strides):
    array = empty((4, 2, 3), "i4")[index]
    assert array.__cuda_array_interface__["strides"] == strides


@pytest.mark.parametrize("strides", [..., None, (12, 4), [12, 4]])
def test_c11_dense_arrays_are_taken_whatever_says_so(strides):
    producer = Producer(counting((2, 3)), strides=strides)
    if strides is ...:
        without(producer, "strides")
    taken = memrt.from_cuda_array_interface(producer)
    assert (taken.strides, taken.__cuda_array_interface__["strides"]) == ((12, 4), None)
    np.testing.assert_array_equal(taken.copy_to_host(), [[0, 1, 2], [3, 4, 5]])


STRIDES = [((3, 2), (4, 12)), ((4,), (0,)), ((2, 3), (0, 4)), ((2,), (20,)), ((3, 2), (4, 4))]


@pytest.mark.parametrize(("shape", "strides"), STRIDES)
def test_c12_fortran_broadcast_and_overlapping_strides_are_taken(shape, strides):
    producer = Producer(counting((6,)), shape=shape, strides=strides)
    taken = memrt.from_cuda_array_interface(producer)
    base = np.arange(6, dtype="i4")
    expected = np.lib.stride_tricks.as_strided(base, shape, strides)
    np.testing.assert_array_equal(taken.copy_to_host(), expected)
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    assert taken.meminfo.size == reach + 4


def test_c12_negative_strides_are_taken():
    array = counting((6,))
    start = array.__cuda_array_interface__["data"][0]
    producer = Producer(array, shape=(3,), strides=(-8,), data=(start + 20, False))
    taken = memrt.from_cuda_array_interface(producer)
    assert (taken.meminfo.data, taken.meminfo.size) == (start + 4, 20)
    np.testing.assert_array_equal(taken.copy_to_host(), [5, 3, 1])


@pytest.mark.parametrize("strides", [(), (4,), (12, 4, 4)])
def test_c13_strides_that_do_not_fit_the_shape_are_refused_without_a_read(machine, strides):
    producer = Producer(empty((2, 3), "i4"), strides=strides)
    if not machine.is_real:
        machine.reset()
    with pytest.raises(ValueError, match="strides do not fit 2 dimensions"):
        memrt.from_cuda_array_interface(producer)
    assert machine.is_real or machine.log() == []


def test_c14_a_mask_of_none_is_no_mask():
    assert memrt.from_cuda_array_interface(Producer(empty(3), mask=None)).shape == (3,)


def test_c14_a_mask_is_not_implemented():
    with pytest.raises(NotImplementedError, match="mask"):
        memrt.from_cuda_array_interface(Producer(empty(3), mask=Producer(empty(3, "?"))))


@pytest.mark.parametrize("stream", [..., None])
def test_c15_without_a_stream_nothing_is_synchronized(fake, stream):
    producer = Producer(empty(3), stream=stream)
    if stream is ...:
        without(producer, "stream")
    fake.reset()
    memrt.from_cuda_array_interface(producer)
    assert fake.calls(*SYNCHRONIZATIONS) == 0


class OtherStream:
    """A stream of another library, by the name that it has its handle under."""

    def __init__(self, name: str, handle: object) -> None:
        setattr(self, name, handle)


NULL_STREAMS = [OtherStream("ptr", 0), OtherStream("cuda_stream", 0), OtherStream("handle", None)]


@pytest.mark.parametrize("stream", [1, *NULL_STREAMS])
def test_c16_the_legacy_stream_is_exported_as_1(stream):
    assert empty(3, stream=stream).__cuda_array_interface__["stream"] == 1


def test_c16_other_streams_are_exported_by_their_handles():
    stream = Stream()
    assert empty(3, stream=stream).__cuda_array_interface__["stream"] == stream.handle
    assert empty(3, stream=stream.handle).__cuda_array_interface__["stream"] == stream.handle
    assert empty(3, stream=2).__cuda_array_interface__["stream"] == 2
    assert "stream" not in empty(3).__cuda_array_interface__


@pytest.mark.parametrize(
    ("stream", "error"),
    [(0, ValueError), (-1, ValueError), (2**64, ValueError), (True, TypeError), (1.0, TypeError)],
)
def test_c17_streams_that_are_none_are_refused(fake, stream, error):
    array = empty(3)
    fake.reset()
    with pytest.raises(error, match="stream"):
        memrt.from_cuda_array_interface(Producer(array, stream=stream))
    with pytest.raises(error):
        empty(3, stream=stream)
    with pytest.raises(error):
        array.used(stream)
    assert fake.calls(*SYNCHRONIZATIONS) == 0


@pytest.mark.parametrize("sync", [True, False])
def test_c18_work_in_the_producers_stream_is_done_before_it_is_read(machine, sync):
    stream = Stream()
    array = empty(1000, "u1", stream=stream)
    address = array.__cuda_array_interface__["data"][0]
    machine.launch(stream.handle, address, 7, 1000)
    taken = memrt.from_cuda_array_interface(array, sync=sync)
    np.testing.assert_array_equal(taken.copy_to_host(), np.full(1000, 7, "u1"))


def test_c18_sync_waits_once_and_its_opposite_not_at_all(fake):
    stream = Stream()
    array = empty(10, "u1", stream=stream)
    fake.launch(stream.handle, array.meminfo.data, 7, 10)
    fake.reset()
    kept = memrt.from_cuda_array_interface(array, sync=False)
    assert fake.calls(*SYNCHRONIZATIONS) == 0
    assert fake.peek(array.meminfo.data) != 7
    memrt.from_cuda_array_interface(array)
    assert fake.calls("cuStreamSynchronize") == 1
    assert fake.peek(kept.meminfo.data) == 7


def test_c19_later_work_in_the_producers_stream_waits_for_the_consumers(machine):
    producers, consumers = Stream(), Stream()
    array = empty(1000, "u1", stream=producers)
    taken = memrt.from_cuda_array_interface(array)
    taken.make_ready(consumers)
    machine.launch(consumers.handle, taken.meminfo.data, 1, 1000)
    taken.used(consumers)
    machine.launch(producers.handle, taken.meminfo.data, 2, 500)
    array.synchronize()
    host = array.copy_to_host()
    assert (set(host[:500]), set(host[500:])) == ({2}, {1})


def test_c20_the_exported_stream_waits_for_work_in_all_streams(machine):
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


def test_c21_the_switch_is_on_unless_somebody_turns_it_off():
    assert [row.value for row in memrt.options() if row.name == "MEMRT_CUDA_SYNC"] == ["1"]


@pytest.fixture
def no_sync():
    memrt.set_option("cuda_sync", 0)
    yield
    memrt.set_option("cuda_sync", 1)


def test_c21_without_it_the_stream_is_neither_exported_nor_waited_for(fake, no_sync):
    stream = Stream()
    array = empty(3, stream=stream)
    fake.reset()
    assert "stream" not in array.__cuda_array_interface__
    taken = memrt.from_cuda_array_interface(Producer(array, stream=stream.handle))
    assert taken.stream is None
    assert fake.calls(*SYNCHRONIZATIONS) == 0


def test_c22_the_exported_stream_outlives_the_array_that_exported_it():
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


def test_c22_a_stream_that_came_later_lives_as_long():
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


def test_c23_reading_the_attribute_keeps_nothing(fake):
    array = empty(3)
    before, live = array.meminfo.refcount, fake.live()
    entries = array.__cuda_array_interface__
    assert array.meminfo.refcount == before
    del array
    assert fake.live() == live - 1
    assert entries["shape"] == (3,)


def test_c23_the_owner_can_be_another_than_the_producer():
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


def test_c23_the_owner_can_be_nobody():
    array = empty(3)
    producer = Producer(array)
    gone = weakref.ref(producer)
    taken = memrt.from_cuda_array_interface(producer, owner=None)
    del producer
    gc.collect()
    assert gone() is None
    assert taken.shape == (3,)


def test_c24_the_memory_stays_while_anybody_holds_it_and_goes_once():
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


def test_c24_it_goes_once_on_whatever_thread(machine):
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


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(
    "more", [{}, {"strides": (12, 4)}, {"strides": None}, {"descr": [("", "<i4")]}]
)
def test_c25_older_versions_are_taken(machine, version, more):
    array = counting((2, 3))
    producer = without(Producer(array, version=version, **more), "stream", "mask")
    if not machine.is_real:
        machine.reset()
    taken = memrt.from_cuda_array_interface(producer)
    assert machine.is_real or machine.calls(*SYNCHRONIZATIONS) == 0
    assert taken.__cuda_array_interface__["version"] == 3
    np.testing.assert_array_equal(taken.copy_to_host(), [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize("address", [0, 12345])
def test_c25_an_older_array_without_elements_has_any_address(address):
    producer = Producer(empty(0), version=1, data=(address, False), strides=(8,))
    assert memrt.from_cuda_array_interface(producer).size == 0


def test_c25_rmms_dictionary_of_version_0_is_taken():
    array = counting((6,), "u1")
    producer = Producer(
        array, data=(array.meminfo.data, False), shape=(6,), strides=None, typestr="|u1", version=0
    )
    assert list(memrt.from_cuda_array_interface(producer).copy_to_host()) == list(range(6))


@pytest.mark.parametrize("typestr", [">f4", ">i8", ">U3", "|O", "|O8"])
def test_c27_elements_that_mean_nothing_on_a_device_are_refused(typestr):
    with pytest.raises(ValueError, match=r"device|NumPy"):
        memrt.from_cuda_array_interface(Producer(empty(3), typestr=typestr))
    with pytest.raises(TypeError, match="device"):
        empty(3, typestr)


@pytest.mark.parametrize(
    "shape", [(2**62, 4), (2**32, 2**32), (2**63,), (2**70,), (0, 2**64), (2**61,)]
)
def test_c28_sizes_beyond_the_address_space_are_refused(shape):
    with pytest.raises(ValueError, match="address space"):
        memrt.from_cuda_array_interface(Producer(empty(3), shape=shape, typestr="<f8"))


@pytest.mark.parametrize("strides", [(2**62,), (-(2**62),), (2**63,), (-(2**70),)])
def test_c28_strides_beyond_the_address_space_are_refused(strides):
    with pytest.raises(ValueError, match=r"address space|no memory"):
        memrt.from_cuda_array_interface(Producer(empty(3), strides=strides))


def test_c29_an_address_of_another_context_is_resolved(fake):
    array = counting((3,))
    alias = fake.alias(array.meminfo.data)
    producer = Producer(array, data=(alias, False))
    taken = memrt.from_cuda_array_interface(producer)
    assert fake.calls("cuPointerGetAttribute") >= 1
    assert taken.meminfo.data == array.meminfo.data != alias
    np.testing.assert_array_equal(taken.copy_to_host(), [0, 1, 2])


def test_c29_an_address_that_the_driver_does_not_know_is_refused():
    host = np.zeros(3)
    with pytest.raises(
        CudaError, match="cuPointerGetAttribute failed with CUDA_ERROR_INVALID_VALUE"
    ):
        memrt.from_cuda_array_interface(Producer(empty(3), data=(host.ctypes.data, False)))


@pytest.mark.parametrize("kind", ["device", "managed", "pinned"])
def test_c29_the_driver_says_what_memory_it_is(kind):
    taken = memrt.from_cuda_array_interface(empty(3, kind=kind))
    assert (taken.kind, taken.device) == (kind, 0)


ATTRIBUTES = ["__cuda_array_interface__", "meminfo", "kind", "stream", "device", "T"]


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_c30_a_released_array_has_no_address(attribute):
    array = empty(3)
    array.release()
    array.release()
    with pytest.raises(ReferenceError, match="released"):
        operator.attrgetter(attribute)(array)
    assert "released" in repr(array)
    with pytest.raises(ReferenceError):
        memrt.from_cuda_array_interface(array)


def test_c30_a_view_stays_when_its_array_was_released():
    array = counting((3,))
    view = array[1:]
    array.release()
    np.testing.assert_array_equal(view.copy_to_host(), [1, 2])
