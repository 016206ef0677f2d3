"""wrap(): foreign memory under a MemInfo, and what gives it back."""

import contextlib
import ctypes
import gc
import sys
import threading
import weakref

import memrt
import numpy as np
import pytest
from memrt import _memrt


class Owner:
    """Something to keep alive, with bytes to point at."""

    def __init__(self, size=64):
        self.bytes = ctypes.create_string_buffer(size)
        self.address = ctypes.addressof(self.bytes)


def wrapped(size=64, **options):
    owner = Owner(size)
    return memrt.wrap(owner.address, size, owner=owner, **options), weakref.ref(owner)


def test_the_owner_lives_as_long_as_the_last_view():
    mi, owner = wrapped()
    assert mi.parent is owner()
    view = memrt.as_array(mi)[10:20][::-1]
    del mi
    gc.collect()
    assert owner() is not None
    view[:] = 5
    del view
    assert owner() is None


def test_the_dtor_gets_address_and_size_once_and_before_the_owner_goes():
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


def test_a_function_of_the_c_library_can_be_the_dtor():
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    address = libc.malloc(100)
    a = memrt.as_array(memrt.wrap(address, 100, libc.free))
    a[:] = 7
    assert a.sum() == 700


def test_wrapped_memory_counts_as_adopted_with_its_real_size():
    before = memrt.stats()
    mi, _ = wrapped(1000)
    change = memrt.stats() - before
    assert mi.size == 1000
    assert mi.kind == "adopted"
    assert (change.adopted, change.live, change.mi_alloc) == (1000, 0, 1)


def test_what_a_dtor_raises_goes_to_the_unraisable_hook(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append((u.exc_type, u.object)))

    def dtor(address, nbytes):
        raise KeyError("lost")

    mi, owner = wrapped(dtor=dtor)
    del mi
    assert seen == [(KeyError, dtor)]
    assert owner() is None


def test_a_dtor_with_the_wrong_signature_is_reported_and_the_owner_let_go(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append(u.exc_type))
    mi, owner = wrapped(dtor=lambda: None)
    del mi
    assert seen == [TypeError]
    assert owner() is None


def test_a_dtor_may_make_and_drop_managed_memory_itself():
    seen = []

    def dtor(address, nbytes):
        inner, _ = wrapped(dtor=lambda *_: seen.append("inner"))
        seen.append(int(memrt.zeros(10).sum()))
        del inner
        seen.append("outer")

    mi, _ = wrapped(dtor=dtor)
    del mi
    assert seen == [0, "inner", "outer"]


def test_a_pending_exception_survives_a_dtor_that_runs_python(probe):
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


def test_a_pending_exception_survives_a_dtor_that_raises(probe, monkeypatch):
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
def test_a_pending_exception_survives_the_end_of_memory(kind, probe):
    before = memrt.stats()
    kept = [DROPPED[kind](probe)]
    with pytest.raises(LookupError, match="pending"):
        probe.fail_and_clear(kept)
    change = memrt.stats() - before
    assert (change.alloc, change.free) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 1), ValueError, "no memory"),
        ((-1, 1), ValueError, "0 or more"),
        ((2**64, 1), ValueError, "address space"),
        ((2**64 - 1, 2), ValueError, "no memory"),
        ((4096, -1), ValueError, "0 or more"),
        ((4096, 2**64), MemoryError, "address space"),
        (("here", 1), TypeError, "integer"),
        ((4096, 1, "free"), TypeError, "callable"),
        ((4096, 1, None, None, False, "n" * 64), ValueError, "63 bytes"),
        ((4096, 1, None, None, False, None, "default"), TypeError, "memrt.Policy"),
    ],
)
def test_nonsense_is_refused_and_the_memory_stays_the_callers(arguments, error, message):
    before = memrt.stats()
    with pytest.raises(error, match=message):
        memrt.wrap(*arguments)
    assert memrt.stats().mi_alloc == before.mi_alloc


def test_a_failed_wrap_runs_no_dtor_and_keeps_no_owner():
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


def test_a_cycle_through_the_owner_is_collected():
    mi, owner = wrapped()
    owner().myself = mi
    del mi
    assert owner() is not None
    gc.collect()
    assert owner() is None


def test_a_cycle_through_the_dtor_is_collected_and_the_dtor_runs():
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


def test_a_cycle_is_left_alone_while_somebody_else_holds_the_memory(probe):
    mi, owner = wrapped()
    owner().myself = mi
    held = probe.hold(mi)
    del mi
    gc.collect()
    assert owner() is not None
    owner().myself = None
    probe.release(held)
    assert owner() is None


def test_a_cycle_with_an_array_of_an_object_is_collected():
    class Holder:
        pass

    mi, owner = wrapped()
    holder = Holder()
    holder.array, holder.myself = memrt.as_array(mi), holder
    del mi, holder
    gc.collect()
    assert owner() is None


@pytest.mark.parametrize("kind", DROPPED)
def test_memory_in_a_cycle_of_other_objects_is_freed_by_the_collector(kind, probe):
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


def test_two_objects_over_one_memory_do_not_let_the_collector_take_it(probe):
    mi, owner = wrapped()
    second = memrt.meminfo(probe.to_array(mi, (64,), "u1", None, 0, 0))
    owner().myself = mi
    del mi
    gc.collect()
    assert owner() is not None
    owner().myself = None
    del second
    assert owner() is None


def test_a_release_without_the_gil_does_not_wait_for_it(probe):
    before = _memrt.owners()
    seen = []
    mi, owner = wrapped(dtor=lambda *_: seen.append(threading.current_thread()))
    held = probe.hold(mi)
    del mi
    probe.release_without_gil(held, True)
    after = _memrt.owners()  # a call of the module runs what waits
    assert after["queued"] - before["queued"] == 1
    assert after["run"] - before["run"] == 1
    assert seen == [threading.main_thread()]
    assert owner() is None


def test_owners_that_wait_run_soon_without_a_call_of_memrt(probe):
    mi, owner = wrapped()
    held = probe.hold(mi)
    del mi
    probe.release_without_gil(held, False)
    for _ in range(10**6):  # the interpreter looks at pending calls between bytecodes
        if owner() is None:
            break
    assert owner() is None


def test_owners_that_waited_run_in_the_order_of_their_release(probe):
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


def test_an_owner_may_be_released_on_any_python_thread():
    seen = []
    mi, owner = wrapped(dtor=lambda *_: seen.append(threading.current_thread().name))
    box = [mi]
    del mi
    thread = threading.Thread(target=box.clear, name="other")
    thread.start()
    thread.join()
    assert seen == ["other"]
    assert owner() is None


def test_an_owner_with_other_holders_is_let_go_at_once_and_counted(probe):
    owner = Owner()
    count, before = sys.getrefcount(owner), _memrt.owners()
    kept = [memrt.as_array(memrt.wrap(owner.address, 64, owner=owner))]
    assert sys.getrefcount(owner) == count + 1
    with pytest.raises(LookupError, match="pending"):
        probe.fail_and_clear(kept)
    assert sys.getrefcount(owner) == count
    assert _memrt.owners()["run"] - before["run"] == 1


def test_more_owners_than_are_kept_for_reuse_come_and_go():
    seen = []
    for _ in range(2):
        with_dtor = [wrapped(dtor=lambda *_: seen.append(1)) for _ in range(200)]
        without = [wrapped() for _ in range(200)]
        assert all(mi.parent is owner() for mi, owner in with_dtor + without)
        gone = [owner for _, owner in with_dtor + without]
        del with_dtor, without
        assert all(owner() is None for owner in gone)
    assert len(seen) == 400
