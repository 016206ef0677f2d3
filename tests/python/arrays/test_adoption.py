"""Every way an array can own or borrow memory: its handler name, the result of adopt(), and the
allocator that frees the memory.
"""

from __future__ import annotations

import gc
import io
import mmap
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import memrt
import numpy as np
import pytest
from memrt import _memrt


class Sub(np.ndarray):
    """A subclass with an attribute."""

    note = "kept"


@dataclass(frozen=True)
class Way:
    """A way to obtain an array. `make` gets the probe module, a recorder handler and a folder."""

    name: str
    make: Callable[[Any, Any, Any], np.ndarray]
    handler: str | None  # handler_name before adoption: the allocator that frees the memory
    adopted: str  # adopt() returns: "itself" (already managed), "in place", "copied"


DEFAULT, FOREIGN = "default_allocator", "foreign"


def under(handler, make):
    before = _memrt.set_handler(handler)
    try:
        return make()
    finally:
        _memrt.set_handler(before)


def under_policy(make):
    with memrt.Policy(name="mine"):
        return make()


def memmapped(folder):
    np.arange(100, dtype="u1").tofile(folder / "m")
    return np.memmap(folder / "m", "u1", "r+")


def mapped(folder):
    (folder / "m").write_bytes(bytes(100))
    with open(folder / "m", "r+b") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0), "u1")


def loaded(folder):
    np.save(folder / "a.npy", np.arange(100))
    return np.load(folder / "a.npy")


def unpickled(protocol, size, **options):
    source = np.arange(size, dtype="u1")
    buffers = []
    if options.get("out_of_band"):
        data = pickle.dumps(source, protocol, buffer_callback=buffers.append)
        return pickle.loads(data, buffers=[bytes(b) for b in buffers])
    return pickle.loads(pickle.dumps(source, protocol))


def resized(make):
    a = make()
    a.resize(777, refcheck=False)
    return a


def objects():
    return np.array([{}, [1]], object)


WAYS = [
    Way("default handler", lambda p, r, f: np.arange(100), DEFAULT, "in place"),
    Way("zeros", lambda p, r, f: np.zeros((3, 4)), DEFAULT, "in place"),
    Way("another library's handler", lambda p, r, f: under(r, lambda: np.ones(9)), FOREIGN,
        "in place"),
    Way("resized, default handler", lambda p, r, f: resized(lambda: np.ones(3)), DEFAULT,
        "in place"),
    Way("resized, another handler", lambda p, r, f: under(r, lambda: resized(lambda: np.ones(3))),
        FOREIGN, "in place"),
    Way("resized, memrt's handler", lambda p, r, f: under_policy(lambda: resized(
        lambda: np.ones(3))), "memrt:mine", "itself"),
    Way("OWNDATA over malloc, no handler", lambda p, r, f: p.malloced(100), None, "in place"),
    Way("OWNDATA over malloc, no bytes", lambda p, r, f: p.malloced(0), None, "in place"),
    Way("memrt's handler", lambda p, r, f: under_policy(lambda: np.ones(9)), "memrt:mine",
        "itself"),
    Way("memrt's default handler", lambda p, r, f: under(_memrt.default_handler(), lambda: np.ones(
        9)), "memrt", "itself"),
    Way("MemInfo as base", lambda p, r, f: memrt.zeros(9), "memrt", "itself"),
    Way("capsule as base", lambda p, r, f: p.make_array(100), "memrt", "itself"),
    Way("buffer of a MemInfo", lambda p, r, f: np.frombuffer(memrt.alloc(80, zero=True)), "memrt",
        "itself"),
    Way("bytes", lambda p, r, f: np.frombuffer(bytes(80)), None, "copied"),
    Way("bytearray", lambda p, r, f: np.frombuffer(bytearray(80)), None, "copied"),
    Way("memoryview of bytes", lambda p, r, f: np.asarray(memoryview(bytes(80))), None, "copied"),
    Way("capsule of another library", lambda p, r, f: foreign_capsule_array(p), None, "copied"),
    Way("DLPack by memrt", lambda p, r, f: memrt.from_dlpack(np.ones(9)), "memrt", "itself"),
    Way("DLPack by NumPy", lambda p, r, f: np.from_dlpack(np.ones(9)), None, "copied"),
    Way("no owner at all", lambda p, r, f: unowned(p), None, "copied"),
    Way("array interface", lambda p, r, f: np.asarray(Interface()), None, "copied"),
    Way("memmap", lambda p, r, f: memmapped(f), None, "over"),
    Way("mmap", lambda p, r, f: mapped(f), None, "over"),
    Way("np.load", lambda p, r, f: loaded(f), DEFAULT, "in place"),
    Way("np.load with memmap", lambda p, r, f: (loaded(f), np.load(f / "a.npy", mmap_mode="r"))[1],
        None, "over"),
    Way("part of a memmap", lambda p, r, f: memmapped(f)[::2], None, "copied"),
    Way("fromfile", lambda p, r, f: (loaded(f), np.fromfile(f / "a.npy", "u1"))[1], DEFAULT,
        "in place"),
    Way("pickle 4, small", lambda p, r, f: unpickled(4, 100), DEFAULT, "in place"),
    Way("pickle 4, large", lambda p, r, f: unpickled(4, 8000), None, "copied"),
    Way("pickle 5, in band", lambda p, r, f: unpickled(5, 8000), None, "copied"),
    Way("pickle 5, out of band", lambda p, r, f: unpickled(5, 8000, out_of_band=True), None,
        "copied"),
    Way("subclass", lambda p, r, f: np.ndarray.__new__(Sub, (3, 3)), DEFAULT, "in place"),
    Way("view of a subclass", lambda p, r, f: np.ones(9).view(Sub), DEFAULT, "in place"),
    Way("masked array", lambda p, r, f: np.ma.masked_array(np.ones(9), [0, 1, 0] * 3), DEFAULT,
        "in place"),
    Way("structured", lambda p, r, f: np.zeros(5, [("a", "u1"), ("b", "f8")]), DEFAULT,
        "in place"),
    Way("objects", lambda p, r, f: objects(), DEFAULT, "copied"),
    Way("objects by memrt's handler", lambda p, r, f: under_policy(objects), "memrt:mine",
        "itself"),
    Way("structured with objects", lambda p, r, f: np.zeros(5, [("a", object)]), DEFAULT,
        "copied"),
    Way("zero size", lambda p, r, f: np.empty((2, 0, 2)), DEFAULT, "in place"),
    Way("zero size, another handler", lambda p, r, f: under(r, lambda: np.empty(0)), FOREIGN,
        "in place"),
    Way("zero-dimensional", lambda p, r, f: np.array(5.0), DEFAULT, "in place"),
    Way("negative strides", lambda p, r, f: np.arange(9)[::-1], DEFAULT, "in place"),
    Way("transposed", lambda p, r, f: np.arange(12).reshape(3, 4).T, DEFAULT, "in place"),
    Way("broadcast", lambda p, r, f: np.broadcast_to(np.arange(3), (4, 3)), DEFAULT, "in place"),
    Way("slice of memrt's", lambda p, r, f: memrt.zeros((9, 9))[2:7, ::-3], "memrt", "itself"),
    Way("view of memrt's handler array", lambda p, r, f: under_policy(lambda: np.ones(
        (9, 9)))[2:7].view(Sub), "memrt:mine", "itself"),
    Way("read-only", lambda p, r, f: frozen(np.arange(9)), DEFAULT, "in place"),
    Way("Fortran order", lambda p, r, f: np.ones((3, 4), order="F"), DEFAULT, "in place"),
]  # fmt: skip


class Interface:
    """An object that exposes memory through __array_interface__."""

    def __init__(self):
        self.kept = bytearray(8)
        address = np.frombuffer(self.kept, "u1").ctypes.data
        self.__array_interface__ = {
            "shape": (8,), "typestr": "|u1", "data": (address, False), "version": 3
        }  # fmt: skip


def frozen(a):
    a.flags.writeable = False
    return a


def foreign_capsule_array(probe):
    """Return an array whose base is a capsule of another library."""
    data = probe.malloced(64)
    view = np.ndarray((64,), "u1", data)
    capsule = probe.foreign_capsule("somebody.else")
    orphan = probe.unowned(view)
    probe.set_base(orphan, capsule)
    KEPT.append(data)
    return orphan


KEPT: list[np.ndarray] = []


def unowned(probe):
    data = np.ones(64, "u1")
    KEPT.append(data)
    return probe.unowned(data)


@pytest.fixture
def foreign(recorder):
    yield recorder.new(None, "foreign")
    KEPT.clear()


@pytest.fixture(params=WAYS, ids=lambda way: way.name)
def way(request):
    return request.param


@pytest.fixture
def made(way, probe, foreign, tmp_path):
    with np.errstate(all="ignore"):
        return way.make(probe, foreign, tmp_path)


def is_same(a, b):
    return np.array_equal(a, b) and (a.dtype, a.shape) == (b.dtype, b.shape)


@pytest.mark.filterwarnings("error")
def test_handler_name_reports_the_freeing_allocator(way, made):
    assert memrt.handler_name(made) == way.handler
    assert memrt.is_managed(made) == (way.adopted == "itself")
    if way.adopted == "itself":
        assert memrt.meminfo(made).nbytes >= 0
    else:
        with pytest.raises(ValueError, match=r"memrt\.adopt\(\)"):
            memrt.meminfo(made)


@pytest.mark.filterwarnings("error")
def test_adopt_takes_over_in_place_or_returns_an_aligned_copy(way, made):
    contents, address = np.array(made), made.__array_interface__["data"][0]
    writeable = made.flags.writeable
    result = memrt.adopt(made)
    assert (result is made) == (way.adopted not in ("copied", "over"))
    assert memrt.is_managed(result)
    assert memrt.adopt(result) is result
    assert is_same(result, contents)
    assert result.flags.writeable == writeable
    assert type(result) is np.ndarray or result is made
    if way.adopted == "copied":
        assert result.ctypes.data % (64 if result.nbytes > 64 else 16) == 0
    else:
        assert result.__array_interface__["data"][0] == address
    mi = memrt.meminfo(result)
    del made, result
    gc.collect()
    assert mi.refcount >= 1


@pytest.mark.filterwarnings("error")
def test_adopt_copy_false_raises_if_a_copy_is_needed(way, made):
    if way.adopted == "copied":
        with pytest.raises(ValueError, match="copy=False"):
            memrt.adopt(made, copy=False)
        assert memrt.handler_name(made) == way.handler
    else:
        assert (memrt.adopt(made, copy=False) is made) == (way.adopted != "over")


@pytest.mark.filterwarnings("error")
def test_adopt_copy_true_leaves_the_source_unchanged(way, made):
    contents, before = np.array(made), memrt.handler_name(made)
    policy = memrt.Policy(alignment=256, name="copies")
    result = memrt.adopt(made, copy=True, policy=policy)
    assert memrt.handler_name(made) == before
    assert memrt.handler_name(result) == "memrt:copies"
    assert not np.shares_memory(made, result)
    assert result.ctypes.data % 256 == 0
    assert is_same(result, contents)


@pytest.mark.thread_unsafe(reason="threads share the recorder")
def test_adoption_makes_existing_views_managed(foreign):
    for a in (np.arange(10.0), under(foreign, lambda: np.arange(10.0))):
        view = a[3:7]
        memrt.adopt(a)
        assert memrt.meminfo(view) == memrt.meminfo(a)
        del a
        assert view.tolist() == [3, 4, 5, 6]


def test_adopting_a_view_adopts_its_base_array():
    a = np.arange(10.0)
    view = a[::-2]
    assert memrt.adopt(view) is view
    assert memrt.is_managed(a)
    assert not a.flags.owndata
    assert memrt.meminfo(a).nbytes == 80


@dataclass
class Rebasing:
    """A policy object whose handler look-up gives a view other memory."""

    view: np.ndarray
    policy: memrt.Policy

    @property
    def _handler(self) -> object:
        self.view.__setstate__((1, self.view.shape, self.view.dtype, False, bytes(8000)))
        return self.policy._handler


def test_base_that_ends_during_an_adoption_is_not_adopted():
    view = np.arange(1000.0)[:]
    assert not _memrt.take_over(view, Rebasing(view, memrt.Policy()))
    assert not memrt.is_managed(view)
    assert view.sum() == 0


@pytest.mark.thread_unsafe(reason="threads share the recorder")
def test_adopted_foreign_memory_is_freed_once_with_same_size(foreign, recorder):
    shapes = [(), 0, 1, 100, (3, 4), (2, 0, 2)]
    for shape in shapes:
        expected = sizes_freed(foreign, recorder, shape, adopt=False)
        assert sizes_freed(foreign, recorder, shape, adopt=True) == expected
        assert len(expected) == 1


def sizes_freed(foreign, recorder, shape, adopt):
    a = under(foreign, lambda: np.empty(shape))
    recorder.events(foreign)
    if adopt:
        mi = memrt.meminfo(memrt.adopt(a))
        del a
        assert recorder.events(foreign) == []
        assert mi.kind == "adopted"
        assert isinstance(mi.parent, np.ndarray)
        del mi
    else:
        del a
    return [size for op, _, _, size, *_ in recorder.events(foreign) if op == "free"]


def test_adopted_bytes_count_in_the_given_policy():
    policy = memrt.Policy(name="account")
    a = memrt.adopt(np.zeros(1000, "u1"), policy=policy)
    assert policy.stats().adopted == 1000
    assert memrt.meminfo(a).policy == "account"
    del a
    assert policy.stats().adopted == 0


def test_adopted_array_writeable_flag_can_be_toggled():
    for a in (memrt.adopt(np.ones(5)), memrt.adopt(frozen(np.ones(5)))):
        a.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 8
        a.flags.writeable = True
        a[0] = 9
        assert a[0] == 9


def test_resizing_an_adopted_array_raises():
    a = memrt.adopt(np.ones(5))
    with pytest.raises(ValueError, match="does not own"):
        a.resize(10, refcheck=False)


@pytest.mark.thread_unsafe(reason="threads share the recorder")
def test_failed_adoption_leaves_array_unchanged(probe, foreign):
    for make in (lambda: np.ones(9), lambda: probe.malloced(9),
                 lambda: under(foreign, lambda: np.ones(9))):  # fmt: skip
        a = make()
        before = memrt.handler_name(a)
        with memrt.testing.fail_allocations(every=1), pytest.raises(MemoryError):
            memrt.adopt(a)
        assert a.flags.owndata
        assert a.base is None
        assert memrt.handler_name(a) == before
        assert memrt.adopt(a) is a


@pytest.mark.parametrize("nonsense", [None, 5, [1, 2], b"abc", memoryview(b"abc"), np.float64(3)])
def test_adopt_of_a_non_array_raises_type_error(nonsense):
    with pytest.raises(TypeError, match=r"numpy\.ndarray"):
        memrt.adopt(nonsense)


def test_adopted_object_array_keeps_and_drops_references(probe):
    class Thing:
        pass

    import weakref

    thing = Thing()
    ref = weakref.ref(thing)
    original = np.array([thing, None])
    adopted = memrt.adopt(original)
    assert adopted[0] is thing
    del thing, original
    assert ref() is not None
    del adopted
    assert ref() is None


NO_POLICY_WARNING = """
import sys, warnings
warnings.simplefilter("error")
import gc, memrt, numpy as np, probe

def fail(unraisable):
    print(unraisable.exc_type, unraisable.exc_value, file=sys.stderr)
    sys.exit_code = 1

sys.exit_code = 0
sys.unraisablehook = fail
a = memrt.zeros(10); del a
b = probe.make_array(100)[3:]; del b
with memrt.Policy():
    c = np.ones(10); d = c[2:]; del c, d
memrt.adopt(probe.malloced(100))
memrt.adopt(np.ones(10))
memrt.adopt(np.frombuffer(bytes(80)))
with memrt.Policy():
    e = np.ones(10)
mi = memrt.meminfo(e); f = memrt.as_array(mi); del e, mi, f
gc.collect()
assert sys.exit_code == 0
probe.malloced(100)   # the one that must warn, so that the check can fail
assert sys.exit_code == 1
"""


def test_memrt_arrays_never_warn_of_a_missing_memory_policy(run_python, probe):
    run_python(NO_POLICY_WARNING, env={"NUMPY_WARN_IF_NO_MEM_POLICY": "1"})


def test_numpy_warns_if_owndata_is_set_on_memrt_memory(libc_malloc, run_python, probe):
    """memrt cannot make the case safe: the C library frees an address of another allocator."""
    result = run_python(
        "import memrt, probe; a = memrt.zeros(10); probe.set_owndata(a); del a",
        env={"NUMPY_WARN_IF_NO_MEM_POLICY": "1"},
        check=False,
    )
    assert "a memory policy is not set" in result.stderr


FREED_BY_LIBC = """
import ctypes, os, memrt, numpy as np, probe
counter = ctypes.CDLL(os.environ["LD_PRELOAD"])
counter.watch.argtypes = [ctypes.c_void_p]

def freed(make, drop):
    a = make()
    counter.watch(a.ctypes.data)
    box = [a]; del a
    drop(box)
    return counter.count()

def just_drop(box):
    box.clear()

def adopt_and_drop(box):
    mi = memrt.meminfo(memrt.adopt(box[0]))
    box.clear()
    assert counter.count() == 0, "freed while a MemInfo holds it"
    del mi

def adopt_view_and_drop(box):
    view = box[0][1:]
    memrt.adopt(view)
    box.clear()
    assert counter.count() == 0, "freed while a view holds it"
    del view

def free_twice(box):
    counter.free.argtypes = [ctypes.c_void_p]
    counter.free(box[0].ctypes.data)
    box.clear()

malloced = lambda: probe.malloced(5000)
assert freed(malloced, free_twice) == 2  # a second free is seen
for drop in (just_drop, adopt_and_drop, adopt_view_and_drop):
    assert freed(malloced, drop) == 1, drop
assert freed(lambda: memrt.zeros(100), just_drop) == 0  # the data is not where the block starts
print("freed once")
"""


def test_memory_without_handler_is_freed_by_libc_once(libc_malloc, run_python, probe, watchfree):
    result = run_python(FREED_BY_LIBC, env={"LD_PRELOAD": str(watchfree)})
    assert result.stdout == "freed once\n"


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_arrays_created_before_import_can_be_adopted(run_python):
    run_python(
        "import numpy as np\n"
        "a = np.arange(100); b = np.frombuffer(bytes(80))\n"
        "import memrt\n"
        "assert not memrt.is_managed(a)\n"
        "assert memrt.handler_name(a) == 'default_allocator'\n"
        "assert memrt.adopt(a) is a and memrt.is_managed(a)\n"
        "assert memrt.adopt(b) is not b\n"
        "del a, b\n"
        "assert memrt.stats().mi_alloc == memrt.stats().mi_free == 2\n"
    )


def test_loadtxt_under_a_policy_uses_the_policy():
    with memrt.Policy(name="read"):
        a = np.loadtxt(io.StringIO("1 2\n3 4"))
    assert memrt.handler_name(a) == "memrt:read"
