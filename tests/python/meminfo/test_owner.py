"""wrap(): foreign memory under a MemInfo, and the owner or destructor that frees the memory."""

import contextlib
import ctypes
import gc
import sys
import threading
import weakref

import arrowarray
import dltensor
import memrt
import numpy as np
import pytest
from elsewhere import created_elsewhere
from gil import GIL_IS_OFF
from memrt import _memrt


class Owner:
    """An owner object with bytes to point at."""

    def __init__(self, size=64):
        self.bytes = ctypes.create_string_buffer(size)
        self.address = ctypes.addressof(self.bytes)


def wrapped(size=64, **options):
    owner = Owner(size)
    return memrt.wrap(owner.address, size, owner=owner, **options), weakref.ref(owner)


def test_last_view_keeps_the_owner_alive():
    mi, owner = wrapped()
    assert mi.parent is owner()
    view = memrt.as_array(mi)[10:20][::-1]
    del mi
    gc.collect()
    assert owner() is not None
    view[:] = 5
    del view
    assert owner() is None


def test_dtor_runs_once_before_the_owner_is_released():
    seen = []
    owner = Owner()
    alive = weakref.ref(owner)
    address = owner.address
    mi = memrt.wrap(
        address, 64, lambda *arguments: seen.append((arguments, alive() is not None)), owner
    )
    del owner
    assert seen == []
    del mi
    assert seen == [((address, 64), True)]
    assert alive() is None


LIBC_FREE_AS_DTOR = """
import ctypes, os, memrt
counter = ctypes.CDLL(os.environ["LD_PRELOAD"])
counter.watch.argtypes = [ctypes.c_void_p]
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
address = libc.malloc(100)
counter.watch(address)
a = memrt.as_array(memrt.wrap(address, 100, libc.free))
a[:] = 7
assert a.sum() == 700
view = a[10:]
del a
assert counter.count() == 0, "freed while a view holds it"
del view
print(counter.count())
"""


def test_libc_free_as_dtor_frees_the_memory_once(libc_malloc, run_python, watchfree):
    result = run_python(LIBC_FREE_AS_DTOR, env={"LD_PRELOAD": str(watchfree)})
    assert result.stdout == "1\n"


def test_wrapped_memory_counts_as_adopted_with_its_size():
    before = memrt.stats()
    mi, _ = wrapped(1000)
    change = memrt.stats() - before
    assert mi.nbytes == 1000
    assert mi.kind == "adopted"
    assert (change.adopted, change.live, change.mi_alloc) == (1000, 0, 1)


def test_exception_in_dtor_goes_to_the_unraisable_hook(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append((u.exc_type, u.object)))

    def dtor(address, nbytes):
        raise KeyError("lost")

    mi, owner = wrapped(dtor=dtor)
    del mi
    assert seen == [(KeyError, dtor)]
    assert owner() is None


def test_dtor_type_error_is_reported_and_owner_released(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append(u.exc_type))
    mi, owner = wrapped(dtor=lambda: None)
    del mi
    assert seen == [TypeError]
    assert owner() is None


def test_dtor_can_allocate_and_free_managed_memory():
    seen = []

    def dtor(address, nbytes):
        inner, _ = wrapped(dtor=lambda *_: seen.append("inner"))
        seen.append(int(memrt.zeros(10).sum()))
        del inner
        seen.append("outer")

    mi, _ = wrapped(dtor=dtor)
    del mi
    assert seen == [0, "inner", "outer"]


def test_pending_exception_survives_a_dtor_that_runs_python(probe):
    seen = []

    def dtor(address, nbytes):
        seen.append(sys.exc_info())
        with contextlib.suppress(KeyError):
            raise KeyError("inside the dtor")

    kept = [memrt.as_array(wrapped(dtor=dtor)[0])]
    with pytest.raises(LookupError, match="pending"):
        probe.fail_and_clear(kept)
    assert seen == [(None, None, None)]
    assert kept == []


def test_pending_exception_survives_a_dtor_that_raises(probe, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(unraisable.exc_type))
    kept = [wrapped(dtor=lambda address, nbytes: 1 / 0)[0]]
    with pytest.raises(LookupError, match="pending"):
        probe.fail_and_clear(kept)
    assert seen == [ZeroDivisionError]


DROPPED = {
    "MemInfo": lambda probe: memrt.alloc(1000),
    "array": lambda probe: memrt.zeros(100)[3:],
    "array of a handler": lambda probe: by_handler(),
    "array over a capsule": lambda probe: probe.make_array(100)[1:],
    "adopted array": lambda probe: memrt.adopt(np.ones(100)),
    "array over an owner": lambda probe: memrt.as_array(wrapped()[0]),
    "memoryview": lambda probe: memoryview(memrt.alloc(10)),
}


def by_handler():
    with memrt.Policy():
        return np.empty(100)


@pytest.mark.parametrize("kind", DROPPED)
def test_pending_exception_survives_a_free(kind, probe):
    before = memrt.stats()
    kept = [DROPPED[kind](probe)]
    with pytest.raises(LookupError, match="pending"):
        probe.fail_and_clear(kept)
    change = memrt.stats() - before
    assert (change.alloc, change.free) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 1), ValueError, "must lie in the address space"),
        ((-1, 1), ValueError, "0 or more"),
        ((2**64, 1), ValueError, "address space"),
        ((2**64 - 1, 2), ValueError, "must lie in the address space"),
        ((4096, -1), ValueError, "0 or more"),
        ((4096, 2**64), MemoryError, "address space"),
        (("here", 1), TypeError, "integer"),
        ((4096, 1, "free"), TypeError, "callable"),
        ((4096, 1, None, None, False), TypeError, "positional"),
    ],
)
def test_bad_wrap_arguments_raise_and_create_no_meminfo(arguments, error, message):
    before = memrt.stats()
    with pytest.raises(error, match=message):
        memrt.wrap(*arguments)
    with pytest.raises(ValueError, match="63 bytes"):
        memrt.wrap(4096, 1, name="n" * 64)
    with pytest.raises(TypeError, match=r"memrt\.Policy"):
        memrt.wrap(4096, 1, policy="default")
    assert memrt.stats().mi_alloc == before.mi_alloc


def test_failed_wrap_runs_no_dtor_and_keeps_no_owner():
    calls = []
    owner = Owner()
    alive = weakref.ref(owner)
    with memrt.testing.fail_allocations(every=1), pytest.raises(MemoryError):
        memrt.wrap(owner.address, 64, lambda *_: calls.append(1), owner)
    del owner
    assert alive() is None
    assert calls == []


def test_read_only_memory_never_becomes_writeable(probe):
    mi, _ = wrapped(readonly=True)
    array = memrt.as_array(mi)
    again = memrt.meminfo(probe.to_array(mi, (64,), "u1", None, 0, 0x400))
    for view in (array, array[3:], array.view("i4"), memrt.as_array(again)):
        assert not view.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        memrt.as_array(mi, writeable=True)


def test_cycle_through_the_owner_is_collected():
    mi, owner = wrapped()
    owner().myself = mi
    del mi
    assert owner() is not None
    gc.collect()
    assert owner() is None


def test_cycle_through_the_dtor_is_collected_and_the_dtor_runs():
    seen = []

    class Freer:
        def __call__(self, address, nbytes):
            seen.append(nbytes)

    freer = Freer()
    owner = Owner()
    freer.mi = memrt.wrap(owner.address, 64, freer, owner)
    del freer, owner
    gc.collect()
    assert seen == [64]


@pytest.mark.parametrize("owned", [False, True])
def test_dtor_in_a_cycle_runs_before_its_objects_are_cleared(owned):
    freed = []

    class Library:
        def __init__(self):
            self.memory = ctypes.create_string_buffer(64)
            self.state = {"open": [self.memory]}
            address = ctypes.addressof(self.memory)
            self.mi = memrt.wrap(address, 64, self.free, self.memory if owned else None)
            self.state["mi"] = self.mi

        def free(self, address, nbytes):
            assert self.state["open"] == [self.memory]
            freed.append((address == ctypes.addressof(self.memory), nbytes))

    before = memrt.stats()
    for _ in range(3):  # later rounds reuse the memory of earlier objects
        Library()
        assert freed == []
        gc.collect()
        assert freed == [(True, 64)]
        freed.clear()
    change = memrt.stats() - before
    assert (change.mi_alloc, change.mi_free, change.adopted) == (3, 3, 0)


def test_meminfo_resurrected_by_a_finalizer_is_released():
    """A finalizer of the cycle may make the MemInfo reachable again, after the destructor ran."""
    saved, freed = [], []

    class Holder:
        def free(self, address, nbytes):
            freed.append(nbytes)

        def __del__(self):
            saved.append(self.mi)

    owner = Owner()
    holder = Holder()
    holder.mi = memrt.wrap(owner.address, 64, holder.free)
    del holder
    gc.collect()
    assert freed == [64]
    assert repr(saved[0]) == "<memrt.MemInfo, released>"
    with pytest.raises(ReferenceError, match="reference cycle"):
        saved[0].nbytes  # noqa: B018
    saved.clear()
    gc.collect()
    assert freed == [64]


def test_memory_with_only_a_destructor_has_no_parent():
    assert memrt.wrap(4096, 8, lambda address, nbytes: None).parent is None


@pytest.fixture
def released():
    """Return a MemInfo whose memory went with a cycle, and a Tensor over this MemInfo."""
    saved = []

    class Holder:
        def free(self, address, nbytes):
            pass

        def __del__(self):
            saved.extend((self.mi, self.tensor))

    owner, holder = Owner(), Holder()
    holder.mi = memrt.wrap(owner.address, 64, holder.free, owner)
    holder.tensor = _memrt.tensor_over(holder.mi, np.dtype("u1"), (64,), (1,), 0, False)
    del holder
    gc.collect()
    return saved


USES = {
    "address": lambda mi: mi.address,
    "name": lambda mi: mi.name,
    "refcount": lambda mi: mi.refcount,
    "readonly": lambda mi: mi.readonly,
    "kind": lambda mi: mi.kind,
    "policy": lambda mi: mi.policy,
    "parent": lambda mi: mi.parent,
    "external_allocator": lambda mi: mi.external_allocator,
    "set name": lambda mi: setattr(mi, "name", "x"),
    "array": memrt.as_array,
    "memoryview": memoryview,
    "array interface": lambda mi: mi.__array_interface__,
    "array struct": lambda mi: mi.__array_struct__,
    "capsule": lambda mi: mi.__memrt_meminfo__(),
    "DLPack": lambda mi: mi.__dlpack__(),
    "DLPack device": lambda mi: mi.__dlpack_device__(),
    "Arrow schema": lambda mi: mi.__arrow_c_schema__(),
    "Arrow array": lambda mi: mi.__arrow_c_array__(),
    "Arrow device array": lambda mi: mi.__arrow_c_device_array__(),
    "Arrow export": lambda mi: _memrt.export_arrow((mi, 0, "C", 1, 0, "n", None, -1), 0),
    "Arrow bitmap": lambda mi: _memrt.export_arrow((memrt.alloc(8), 0, "C", 1, 0, "n", mi, -1), 0),
    "tensor": lambda mi: _memrt.tensor_over(mi, np.dtype("u1"), (3,), (1,), 0, False),
    "holders": memrt.holders,
    "handler name": memrt.handler_name,
    "CUDA information": _memrt.cuda_info,
    "CUDA use": lambda mi: _memrt.cuda_used(mi, 0),
    "CUDA read": lambda mi: _memrt.cuda_read(mi, 0, bytearray(4), 0),
    "CUDA copy": lambda mi: _memrt.cuda_copy(mi, 0, 0, []),
}


@pytest.mark.parametrize("use", USES)
def test_released_meminfo_raises_reference_error(use, released):
    with pytest.raises(ReferenceError, match="reference cycle"):
        USES[use](released[0])


def test_tensor_over_released_meminfo_raises_reference_error(released):
    tensor = released[1]
    for call in (lambda: tensor.array, tensor.__dlpack__, tensor.__dlpack_device__):
        with pytest.raises(ReferenceError, match="reference cycle"):
            call()


def test_exchange_table_refuses_released_meminfo(released, dlclient):
    for call in (dlclient.export, dlclient.borrow):
        with pytest.raises(ReferenceError, match="reference cycle"):
            call(memrt.MemInfo, released[0])


def test_released_meminfo_equals_only_itself(released):
    mi, other = released[0], memrt.alloc(8)
    assert mi == mi
    assert mi != other
    assert other != mi
    assert len({mi, other}) == 2


def test_dtor_in_a_cycle_runs_after_the_memoryview_is_freed():
    """A finalizer of the cycle may read the view: the destructor runs after the view is freed."""
    read, freed = [], []

    class Holder:
        def __del__(self):
            read.append(self.view[0])

    memory = ctypes.create_string_buffer(b"abcd", 64)
    holder = Holder()

    class Free:  # not a function: the collector may clear the defaults of a function first
        def __init__(self, kept):
            self.kept = kept

        def __call__(self, address, nbytes):
            freed.append(nbytes)
            ctypes.memset(memory, 0, nbytes)

    free = Free(holder)
    holder.mi = memrt.wrap(ctypes.addressof(memory), 64, free)
    holder.view = memoryview(holder.mi)
    del holder, free
    gc.collect()
    assert (read, freed) == ([ord("a")], [64])


def test_cycle_is_not_collected_while_c_code_holds_the_memory(probe):
    mi, owner = wrapped()
    owner().myself = mi
    held = probe.hold(mi)
    del mi
    gc.collect()
    assert owner() is not None
    owner().myself = None
    probe.release(held)
    assert owner() is None


def test_cycle_that_holds_an_array_is_collected():
    class Holder:
        pass

    mi, owner = wrapped()
    holder = Holder()
    holder.array, holder.myself = memrt.as_array(mi), holder
    del mi, holder
    gc.collect()
    assert owner() is None


@pytest.mark.parametrize("kind", DROPPED)
def test_memory_in_a_python_cycle_is_freed_by_the_collector(kind, probe):
    class Node:
        pass

    before = memrt.stats()
    node = Node()
    node.myself, node.kept = node, DROPPED[kind](probe)
    del node
    assert (memrt.stats() - before).free == 0
    gc.collect()
    change = memrt.stats() - before
    assert change.alloc == change.free == 1
    assert (change.live, change.adopted) == (0, 0)


def test_cycle_is_not_collected_while_a_second_meminfo_exists(probe):
    mi, owner = wrapped()
    second = memrt.meminfo(probe.to_array(mi, (64,), "u1", None, 0, 0))
    owner().myself = mi
    del mi
    gc.collect()
    assert owner() is not None
    owner().myself = None
    del second
    assert owner() is None


def test_release_without_gil_queues_the_owner_for_main_thread(probe):
    before = _memrt.owners()
    seen = []
    mi, owner = wrapped(dtor=lambda *_: seen.append(threading.current_thread()))
    held = probe.hold(mi)
    del mi
    probe.release_without_gil(held, True)
    after = _memrt.owners()  # a call of the module runs queued owners
    assert after["queued"] - before["queued"] == 1
    assert after["run"] - before["run"] == 1
    assert seen == [threading.main_thread()]
    assert owner() is None


def test_queued_owner_is_released_without_a_memrt_call(probe):
    mi, owner = wrapped()
    held = probe.hold(mi)
    del mi
    probe.release_without_gil(held, False)
    for _ in range(10**6):  # the interpreter checks pending calls between bytecodes
        if owner() is None:
            break
    assert owner() is None


def test_queued_owners_run_in_the_order_of_release(probe):
    seen = []
    held = []
    for i in range(5):
        mi, _ = wrapped(dtor=lambda *_, i=i: seen.append(i))
        held.append(probe.hold(mi))
        del mi
    for address in held:
        probe.release_without_gil(address, True)
    _memrt.owners()
    assert seen == [0, 1, 2, 3, 4]


def produce(producer):
    return producer.__dlpack__(max_version=(1, 3))


# Calls that run queued owners, before they return or before they allocate memory.
DRAINING = {
    "memrt.stats": lambda known: memrt.stats(),
    "Scope.stats": lambda known: known["scope"].stats(),
    "memrt.alloc": lambda known: memrt.alloc(1),
    "memrt.wrap": lambda known: memrt.wrap(known["owner"].address, 64, owner=known["owner"]),
    "memrt.from_dlpack": lambda known: memrt.from_dlpack(dltensor.Producer()),
    "memrt.from_arrow": lambda known: memrt.from_arrow(arrowarray.Producer()),
    "Tensor.__dlpack__": lambda known: produce(known["tensor"]),
    "MemInfo.__dlpack__": lambda known: produce(known["tensor"].meminfo),
}


@pytest.fixture
def one_thread_at_a_time():
    """Let a thread keep the GIL until the thread blocks, by a switch interval of 100 seconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(100)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("name", DRAINING)
def test_queued_owners_run_before_the_call_returns(name, one_thread_at_a_time, probe):
    """Use a second thread, since the interpreter itself runs queued owners on the main thread."""
    with memrt.scope("queued") as scope:
        known = {"scope": scope, "owner": Owner(), "tensor": memrt.types.Tensor(memrt.zeros(3))}
    alive = []

    def release_and_call():
        mi, owner = wrapped()
        held = probe.hold(mi)
        del mi
        probe.release_without_gil(held, True)
        alive.append(owner() is not None)
        DRAINING[name](known)
        alive.append(owner() is not None)

    thread = threading.Thread(target=release_and_call)
    thread.start()
    thread.join()
    assert alive[0] or GIL_IS_OFF  # without the GIL, the main thread may run the owner earlier
    assert not alive[1]


def test_scope_statistics_leave_out_queued_buffers(probe):
    figures = []
    with memrt.scope("queued buffers") as scope:
        pass

    def release_and_read():
        with scope_again():
            array = memrt.alloc(1000)
        outer = memrt.wrap(Owner().address, 64, owner=array)
        held = probe.hold(outer)
        del array, outer
        probe.release_without_gil(held, True)
        figures.append(scope.live)

    def scope_again():
        return memrt.scope("queued buffers")

    thread = threading.Thread(target=release_and_read)
    thread.start()
    thread.join()
    assert figures == [0]


def test_dtor_runs_on_the_python_thread_that_drops_the_meminfo():
    seen = []
    box = created_elsewhere(
        lambda: wrapped(dtor=lambda *_: seen.append(threading.current_thread().name))
    )
    owner = box[0][1]
    thread = threading.Thread(target=box.clear, name="other")
    thread.start()
    thread.join()
    assert seen == ["other"]
    assert owner() is None


def test_owner_with_more_references_is_released_at_once(probe):
    owner = Owner()
    count, before = sys.getrefcount(owner), _memrt.owners()
    kept = [memrt.as_array(memrt.wrap(owner.address, 64, owner=owner))]
    assert sys.getrefcount(owner) == count + 1
    with pytest.raises(LookupError, match="pending"):
        probe.fail_and_clear(kept)
    assert sys.getrefcount(owner) == count
    assert _memrt.owners()["run"] - before["run"] == 1


def test_more_owners_than_the_free_list_holds_are_released():
    seen = []
    for _ in range(2):
        with_dtor = [wrapped(dtor=lambda *_: seen.append(1)) for _ in range(200)]
        without = [wrapped() for _ in range(200)]
        assert all(mi.parent is owner() for mi, owner in with_dtor + without)
        gone = [owner for _, owner in with_dtor + without]
        del with_dtor, without
        assert all(owner() is None for owner in gone)
    assert len(seen) == 400


class MallInfo(ctypes.Structure):
    """``struct mallinfo2`` of glibc 2.33."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks")] + [
        (name, ctypes.c_size_t)
        for name in ("hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    ]


def bytes_in_use_by_malloc():
    read = ctypes.CDLL(None).mallinfo2
    read.restype = MallInfo
    return read().uordblks


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
@pytest.mark.parametrize("shared", [False, True], ids=["only owner", "owner with a reference"])
def test_ended_owners_leave_no_memory_of_malloc(shared):
    owner = Owner()

    def wrap_many():
        for _ in range(20_000):
            memrt.wrap(owner.address, 64, owner=owner if shared else (owner,))

    wrap_many()
    before = bytes_in_use_by_malloc()
    wrap_many()
    assert bytes_in_use_by_malloc() - before < 200_000
