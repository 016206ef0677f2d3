"""Find the MemInfo of an array through any chain of bases."""

import gc
import pickle
import sys
from collections.abc import Callable

import memrt
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided


class Sub(np.ndarray):
    pass


VIEWS: dict[str, Callable[[np.ndarray], object]] = {
    "itself": lambda a: a,
    "slice": lambda a: a[2:5],
    "slice of a slice": lambda a: a[1:][1:],
    "negative strides": lambda a: a[::-1],
    "last element": lambda a: a[-1:],
    "empty slice": lambda a: a[100:],
    "reshape": lambda a: a.reshape(2, -1),
    "transpose": lambda a: a.reshape(2, -1).T,
    "subclass": lambda a: a.view(Sub),
    "slice of a subclass": lambda a: a.view(Sub)[3:].view(np.ndarray),
    "other dtype": lambda a: a.view("u1"),
    "field": lambda a: a.view([("x", "u4"), ("y", "u4")])["y"],
    "real part": lambda a: a.view("c16").real,
    "as_strided": lambda a: as_strided(a, (3, 3), (8, 8)),
    "broadcast": lambda a: np.broadcast_to(a, (4, a.size)),
    "zero-dimensional": lambda a: a[3, ...],
    "memoryview": memoryview,
    "slice of a memoryview": lambda a: memoryview(a)[2:],
    "frombuffer of a memoryview": lambda a: np.frombuffer(memoryview(a)),
    "asarray of a memoryview": lambda a: np.asarray(memoryview(a)[::2]),
    "frombuffer": np.frombuffer,
    "cast memoryview": lambda a: np.frombuffer(memoryview(a).cast("B")),
    "pickled out of band here": lambda a: out_of_band(a),
}

SOURCES: dict[str, Callable[..., np.ndarray]] = {
    "MemInfo": lambda probe: memrt.zeros(10),
    "capsule": lambda probe: probe.make_array(80).view("f8"),
    "handler": lambda probe: by_handler(),
    "adopted": lambda probe: memrt.adopt(np.zeros(10)),
}


def by_handler():
    with memrt.Policy():
        return np.zeros(10)


def out_of_band(a):
    buffers = []
    data = pickle.dumps(a, 5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=buffers)


@pytest.fixture(params=SOURCES)
def source(request, probe):
    return SOURCES[request.param](probe)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_leads_to_the_same_meminfo(view, source, probe):
    seen = VIEWS[view](source)
    expected = memrt.meminfo(source)
    assert memrt.is_managed(seen)
    assert memrt.meminfo(seen) == expected
    assert probe.address(seen) == probe.address(source)
    assert memrt.handler_name(seen) == memrt.handler_name(source)


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("view", VIEWS)
def test_last_view_frees_the_block_once(view, make, probe):
    source = make(probe)
    start = memrt.meminfo(source).address
    seen = VIEWS[view](source)
    before = memrt.stats()
    del source
    assert (memrt.stats() - before).free == 0
    if isinstance(seen, np.ndarray):
        assert start <= seen.ctypes.data <= start + 80
    assert memrt.is_managed(seen)
    del seen
    gc.collect()
    change = memrt.stats() - before
    assert (change.free, change.mi_free) == (1, 1)


def test_distinct_meminfos_count_memory_of_views_once(source):
    views = [source[i:] for i in range(5)] + [source[::-1], source.reshape(2, -1)]
    assert sum(memrt.meminfo(view).nbytes for view in views) == 7 * 80
    assert sum(mi.nbytes for mi in {memrt.meminfo(view) for view in views}) == 80
    empty = sys.getsizeof(source.view())
    assert sys.getsizeof(source) == empty + (80 if source.flags.owndata else 0)


def test_meminfo_of_as_array_returns_the_same_object():
    mi = memrt.alloc(80)
    assert memrt.meminfo(memrt.as_array(mi)[3:]) is mi
    assert memrt.meminfo(mi) is mi


def test_lookup_leaves_the_refcount_unchanged(probe):
    a = memrt.zeros(10)
    for _ in range(100):
        probe.address(a)
        memrt.meminfo(a)
        memrt.is_managed(a)
        memrt.handler_name(a)
        a.base.__memrt_meminfo__()
    assert a.base.refcount == 1


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_is_managed_creates_no_meminfo_for_a_block():
    with memrt.Policy():
        a = np.ones(10)
    before = memrt.stats()
    assert memrt.is_managed(a)
    assert memrt.handler_name(a) == "memrt:policy"
    assert memrt.stats() == before


@pytest.mark.thread_unsafe(reason="threads share the recorder")
@pytest.mark.parametrize(
    "foreign",
    [
        lambda: np.ones(3),
        lambda: np.ones(3)[1:],
        lambda: np.frombuffer(bytes(8)),
        lambda: memoryview(bytes(8)),
        lambda: memoryview(np.ones(3)),
        lambda: 5,
        lambda: None,
        lambda: memrt.MemInfo,
        lambda: "text",
    ],
)
def test_foreign_memory_is_refused_with_advice(foreign, probe):
    thing = foreign()
    assert not memrt.is_managed(thing)
    for lookup in (memrt.meminfo, probe.address):
        with pytest.raises(ValueError, match=r"memrt\.adopt\(\)"):
            lookup(thing)


def test_released_memoryview_is_refused():
    view = memoryview(memrt.alloc(8))
    view.release()
    with pytest.raises(ValueError, match="not managed"):
        memrt.meminfo(view)


def test_writebackifcopy_array_is_not_managed(probe):
    a = memrt.zeros(4)
    assert memrt.is_managed(a)
    flags = [["readwrite", "updateifcopy"]]
    with np.nditer([a], [], flags, op_dtypes=["f4"], casting="unsafe") as it:
        copy = it.operands[0]
        assert copy.flags.writebackifcopy
        assert not memrt.is_managed(copy)
        with pytest.raises(ValueError, match="not managed"):
            probe.address(copy)


def test_owndata_set_by_an_extension_keeps_meminfo_lookup(probe):
    a = memrt.zeros(10)
    expected = a.base
    probe.set_owndata(a)
    assert memrt.meminfo(a) is expected
    assert memrt.handler_name(a) == "memrt"
    probe.clear_owndata(a)  # otherwise NumPy passes the data to the C library's free


def test_handler_name_without_an_array_returns_the_current():
    assert memrt.handler_name() == memrt.handler_name(None) == "default_allocator"
    with memrt.Policy(name="now"):
        assert memrt.handler_name() == "memrt:now"


class DummyArray:
    """A class with the name of the object that NumPy's as_strided leaves behind."""

    base: object


@pytest.mark.parametrize("detour", [False, True])
def test_circular_chain_of_bases_is_not_managed(detour):
    start = DummyArray()
    start.base = start
    if detour:
        start.__array_interface__ = np.zeros(3).__array_interface__
        start.base = np.asarray(start)
    assert not memrt.is_managed(start)
    assert memrt.handler_name(start) is None
    with pytest.raises(ValueError, match="not managed by memrt"):
        memrt.meminfo(start)
    start.base = None
