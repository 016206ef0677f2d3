"""Functions that free memory before memrt refuses an allocation."""

import gc
import threading
import weakref

import memrt
import numpy as np
import pytest
from atonce import on_threads

MIB = 1 << 20


@pytest.fixture
def room():
    """Limit the process to 8 MiB more than now, and use memrt for NumPy."""
    gc.collect()
    memrt.release_unused()
    memrt.limit(memrt.stats().live + 8 * MIB)
    memrt.enable()
    yield
    memrt.disable()
    memrt.limit(None)


class Node:
    """Object in a reference cycle that holds an array."""

    def __init__(self, nbytes):
        self.array = np.ones(nbytes, "u1")
        self.itself = self


def test_collection_frees_arrays_in_cycles_for_an_allocation(room):
    gc.disable()
    try:
        with memrt.debug.on_refusal(gc.collect):
            for _ in range(20):
                Node(3 * MIB)
            assert np.zeros(6 * MIB, "u1").sum() == 0
        Node(6 * MIB)
        with pytest.raises(MemoryError):
            np.zeros(6 * MIB, "u1")
    finally:
        gc.enable()


@pytest.mark.parametrize("allocate", [np.empty, np.zeros, memrt.empty, memrt.zeros], ids=str)
def test_function_gets_wanted_bytes_and_frees_an_array(room, allocate):
    cache, wanted = [np.ones(7 * MIB, "u1")], []

    def drop(nbytes):
        wanted.append(nbytes)
        cache.clear()

    with memrt.debug.on_refusal(drop):
        array = allocate(6 * MIB, "u1")
    assert array.nbytes == 6 * MIB
    assert wanted == [6 * MIB]


def test_resize_succeeds_after_the_function(room):
    cache = [np.ones(4 * MIB, "u1")]
    array = np.ones(3 * MIB, "u1")
    with memrt.debug.on_refusal(lambda wanted: cache.clear()):
        array.resize(7 * MIB, refcheck=False)
    assert array.sum() == 3 * MIB


def test_functions_run_by_priority_until_the_array_fits(room):
    cache, ran = [np.ones(7 * MIB, "u1")], []

    def drop(wanted):
        ran.append("second")
        cache.clear()

    with (
        memrt.debug.on_refusal(lambda wanted: ran.append("third"), priority=9),
        memrt.debug.on_refusal(drop, priority=5),
        memrt.debug.on_refusal(lambda wanted: ran.append("first"), -3),
    ):
        np.empty(6 * MIB, "u1")
        assert ran == ["first", "second"]
        with pytest.raises(MemoryError):
            np.empty(9 * MIB, "u1")
    assert ran == ["first", "second", "first", "second", "third"]


def test_refusal_inside_the_function_fails_at_once(room):
    depth, refused = [0], []

    def allocate(wanted):
        depth[0] += 1
        np.empty(MIB, "u1")
        try:
            np.empty(20 * MIB, "u1")
        except MemoryError:
            refused.append(depth[0])

    with memrt.debug.on_refusal(allocate), pytest.raises(MemoryError):
        np.empty(9 * MIB, "u1")
    assert refused == [1]


def test_exception_goes_to_the_hook_and_the_error_follows(room, unraisable):
    def fail(wanted):
        raise ValueError(wanted)

    with memrt.debug.on_refusal(fail), pytest.raises(memrt.OutOfMemoryError):
        memrt.empty(9 * MIB, "u1")
    assert [type(error) for error in unraisable] == [ValueError]
    assert unraisable[0].args == (9 * MIB,)


@pytest.mark.parametrize("how", ["with the GIL", "without the GIL", "with an exception"])
def test_function_runs_only_where_python_may_run(room, probe, how):
    cache = [np.ones(7 * MIB, "u1")]
    with memrt.debug.on_refusal(lambda wanted: cache.clear()):
        assert probe.allocates(6 * MIB, how) == (how == "with the GIL")
    assert bool(cache) == (how != "with the GIL")


def test_function_may_set_the_limit_and_close_itself(room):
    handles = []

    def raise_limit(wanted):
        memrt.limit(memrt.stats().live + wanted + MIB)
        handles[0].close()

    handles.append(memrt.debug.on_refusal(raise_limit))
    assert np.empty(20 * MIB, "u1").nbytes == 20 * MIB
    with pytest.raises(MemoryError):
        np.empty(40 * MIB, "u1")


def test_closed_function_is_dropped_and_never_runs(room):
    def count(wanted):
        ran.append(wanted)

    ran, function = [], weakref.ref(count)
    handle = memrt.debug.on_refusal(count)
    handle.close()
    handle.close()
    with pytest.raises(MemoryError):
        np.empty(9 * MIB, "u1")
    assert ran == []
    del handle, count
    assert function() is None


def test_function_stays_while_its_object_is_dropped(room):
    ran = []
    memrt.debug.on_refusal(ran.append)
    with pytest.raises(MemoryError):
        np.empty(9 * MIB, "u1")
    [handle] = [each for each in gc.get_objects() if isinstance(each, memrt.debug.on_refusal)]
    assert ran == [9 * MIB]
    assert handle.callback == ran.append
    assert handle.priority == 0
    assert repr(handle) == f"<on_refusal {ran.append!r}, priority 0>"
    handle.close()
    assert repr(handle).endswith("priority 0, closed>")


def test_close_waits_for_a_call_in_another_thread(room):
    entered, leave, order = threading.Event(), threading.Event(), []

    def stay(wanted):
        entered.set()
        leave.wait()
        np.empty(MIB, "u1")  # no lock of memrt is held
        order.append("left")

    def refuse():
        with pytest.raises(MemoryError):
            np.empty(9 * MIB, "u1")

    handle = memrt.debug.on_refusal(stay)
    thread = threading.Thread(target=refuse)
    thread.start()
    entered.wait()
    memrt.empty(MIB, "u1")  # the other thread holds no lock
    threading.Timer(0.1, leave.set).start()
    handle.close()
    order.append("closed")
    thread.join()
    assert order == ["left", "closed"]


def test_close_in_a_callback_that_another_thread_runs_ends_it(room):
    entered, leave, ran = threading.Event(), threading.Event(), []

    def twice(wanted):
        ran.append(threading.current_thread().name)
        if len(ran) == 1:
            entered.set()
            leave.wait()
        else:
            handle.close()  # cannot wait inside of a callback
            leave.set()

    def refuse():
        with pytest.raises(MemoryError):
            np.empty(9 * MIB, "u1")

    handle = memrt.debug.on_refusal(twice)
    first = threading.Thread(target=refuse, name="first")
    first.start()
    entered.wait()
    second = threading.Thread(target=refuse, name="second")
    second.start()
    first.join()
    second.join()
    assert ran == ["first", "second"]
    refuse()
    assert ran == ["first", "second"]
    assert memrt._memrt.reclaim_remove(handle)


def test_many_threads_run_the_function_at_once(room):
    caught = []

    def work(_number):
        for _ in range(20):
            try:
                np.empty(9 * MIB, "u1")
            except MemoryError:
                caught.append(1)

    with memrt.debug.on_refusal(lambda wanted: np.empty(1000).sum()):
        on_threads(work, 4)
    assert len(caught) == 80


def test_bad_arguments_and_too_many_functions_are_refused():
    with pytest.raises(TypeError, match="callback must be callable, got 5"):
        memrt.debug.on_refusal(5)
    with pytest.raises(TypeError):
        memrt.debug.on_refusal(len, "first")
    handles = []
    with pytest.raises(RuntimeError, match="of at most 64"):
        handles.extend(memrt.debug.on_refusal(len) for _ in range(65))
    with pytest.raises(RuntimeError, match="of at most 64"):
        memrt.debug.on_refusal(len)
    assert len(handles) in (62, 64)  # volatile arrays of other tests have two
    for handle in handles:
        handle.close()


FINALIZING = """
import os, sys, memrt
def show(text, write=os.write):  # sys.stdout may be closed during finalization
    write(1, text.encode())
class Late:
    def __init__(self):
        self.empty, self.show, self.over = memrt.empty, show, sys.is_finalizing
    def __del__(self):
        try:
            self.empty(9 << 20, "u1")
        except MemoryError:
            self.show(f"refused while finalizing: {self.over()}\\n")
def callback(wanted, show=show):
    show("called\\n")
memrt.empty(1, "u1")
memrt.limit("8 MiB")
memrt.debug.on_refusal(callback)
sys.late = Late()
Late().__del__()
"""


def test_function_does_not_run_during_finalization(run_python):
    result = run_python(FINALIZING)
    assert result.stdout.splitlines() == [
        "called",
        "refused while finalizing: False",
        "called",
        "refused while finalizing: False",
        "refused while finalizing: True",
    ]


def test_child_after_fork_can_use_the_function(run_python):
    result = run_python(
        "import os, memrt\n"
        "memrt.limit('8 MiB')\n"
        "cache = [memrt.empty(7 << 20, 'u1')]\n"
        "def drop(wanted):\n"
        "    children.append(os.fork())\n"
        "    cache.clear()\n"
        "children = []\n"
        "handle = memrt.debug.on_refusal(drop)\n"
        "memrt.empty(6 << 20, 'u1')\n"
        "handle.close()\n"
        "try:\n"
        "    memrt.empty(9 << 20, 'u1')\n"
        "except MemoryError:\n"
        "    os.write(1, b'refused\\n')\n"
        "if children[0] != 0:\n"
        "    print('status', os.waitpid(children[0], 0)[1])\n",
        flags=("-W", "ignore::DeprecationWarning"),
    )
    assert result.stdout == "refused\nrefused\nstatus 0\n"
