"""without_policy() keeps NumPy's own handler for a block or thread while memrt is enabled."""

import asyncio
import contextvars
import ctypes
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import memrt
import numpy as np
import pytest
from memrt import _memrt

NUMPYS = "default_allocator"
INHERITS = bool(getattr(sys.flags, "thread_inherit_context", 0))  # new threads copy the context


@pytest.fixture(autouse=True)
def enabled():
    before = _memrt.get_handler()
    memrt.enable(memrt.Policy(name="everywhere"))
    yield
    memrt.disable()
    assert _memrt.get_handler() is before


def in_force():
    return memrt.handler_name(np.ones(3))


def run_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def without(function):
    with memrt.debug.without_policy():
        return function()


def test_thread_keeps_numpys_handler_while_enabled():
    assert run_thread(lambda: (without(in_force), in_force())) == (NUMPYS, "memrt:everywhere")
    assert in_force() == "memrt:everywhere"


def test_threads_share_one_object_and_other_threads_stay_enabled():
    block, entered, leave = memrt.debug.without_policy(), threading.Barrier(5), threading.Event()
    seen = []

    def work():
        with block:
            entered.wait(30)
            leave.wait(30)
            inside = in_force()
        seen.append((inside, in_force()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    entered.wait(30)
    assert in_force() == run_thread(in_force) == "memrt:everywhere"
    leave.set()
    for thread in threads:
        thread.join()
    assert seen == [(NUMPYS, "memrt:everywhere")] * 4


def test_initializer_of_executor_exempts_its_threads():
    with ThreadPoolExecutor(2, initializer=memrt.debug.without_policy().__enter__) as executor:
        assert set(executor.map(lambda _: in_force(), range(8))) == {NUMPYS}


def test_block_reaches_tasks_and_threads_with_its_context():
    async def task():
        return in_force()

    with memrt.debug.without_policy():
        assert run_thread(in_force) == (NUMPYS if INHERITS else "memrt:everywhere")
        assert asyncio.run(task()) == NUMPYS


def test_array_made_before_the_block_stays_with_memrt():
    array = np.ones(1000)
    with memrt.debug.without_policy():
        inner = np.ones(1000)
        array.resize(2000, refcheck=False)
    assert (memrt.is_managed(array), memrt.is_managed(inner)) == (True, False)


def test_own_functions_use_the_default_policy_inside_the_block():
    with memrt.debug.without_policy():
        array = memrt.empty(10)
        assert memrt.meminfo(array).policy == "default"


def test_policy_inside_the_block_has_effect():
    with memrt.debug.without_policy():
        with memrt.Policy(name="inner"):
            assert in_force() == "memrt:inner"
        assert in_force() == NUMPYS
    assert in_force() == "memrt:everywhere"


def test_enable_inside_the_block_has_effect_after_the_block():
    memrt.disable()

    def work():
        with memrt.debug.without_policy(), memrt.debug.without_policy():
            memrt.enable(memrt.Policy(name="inside"))
            inside = in_force(), run_thread(in_force)
        after = in_force()
        memrt.disable()
        return inside, after, in_force()

    of_thread = NUMPYS if INHERITS else "memrt:inside"
    assert run_thread(work) == ((NUMPYS, of_thread), "memrt:inside", NUMPYS)


def test_disable_inside_the_block_leaves_numpys_handler():
    with memrt.debug.without_policy():
        memrt.disable()
        assert in_force() == NUMPYS
    assert in_force() == NUMPYS


def test_block_and_policy_are_left_in_any_order():
    block, policy = memrt.debug.without_policy(), memrt.Policy(name="other")
    block.__enter__()
    policy.__enter__()
    block.__exit__()
    assert in_force() == "memrt:other"
    block.__enter__()
    policy.__exit__()
    assert in_force() == NUMPYS
    block.__exit__()
    assert in_force() == "memrt:everywhere"


def test_scopes_change_inside_and_around_the_block():
    with memrt.scope("outer") as outer:
        with memrt.debug.without_policy():
            with memrt.scope("inner") as inner:
                array = np.ones(1000)
                assert (memrt.is_managed(array), inner.live) == (False, 0)
            assert in_force() == NUMPYS
        array = np.ones(1000)
        assert outer.live == array.nbytes
    assert in_force() == "memrt:everywhere"


def test_enable_inside_block_and_scope_counts_for_the_scope():
    memrt.disable()
    with memrt.scope("around") as around:
        with memrt.debug.without_policy():
            memrt.enable()
        array = np.ones(1000)
        assert around.live == array.nbytes


def test_handler_set_by_another_library_stays_with_a_warning(recorder):
    foreign, before = recorder.new(None, "foreign"), _memrt.get_handler()
    block = memrt.debug.without_policy()
    block.__enter__()
    _memrt.set_handler(foreign)
    with pytest.warns(RuntimeWarning, match=r"after memrt\.debug\.without_policy\(\) was left"):
        block.__exit__()
    assert _memrt.get_handler() is foreign
    _memrt.set_handler(before)


def test_handler_of_another_library_is_back_after_the_block(recorder):
    foreign, before = recorder.new(None, "foreign"), _memrt.get_handler()
    _memrt.set_handler(foreign)
    with memrt.debug.without_policy():
        assert in_force() == NUMPYS
    assert _memrt.get_handler() is foreign
    _memrt.set_handler(before)


def test_leaving_in_another_context_warns_and_changes_nothing():
    block = memrt.debug.without_policy()
    contextvars.copy_context().run(block.__enter__)
    with pytest.warns(RuntimeWarning, match="was not entered in this context"):
        block.__exit__()
    assert in_force() == "memrt:everywhere"


def test_pending_exception_is_not_replaced_by_the_warning(recorder):
    foreign, before = recorder.new(None, "foreign"), _memrt.get_handler()

    def fail():
        with memrt.debug.without_policy():
            _memrt.set_handler(foreign)
            raise KeyError

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyError):
            fail()
    _memrt.set_handler(before)


def test_child_of_fork_stays_in_the_block():
    expected = (NUMPYS, NUMPYS if INHERITS else "memrt:everywhere")
    with memrt.debug.without_policy():
        child = os.fork()
        if child == 0:
            os._exit(0 if (in_force(), run_thread(in_force)) == expected else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def run_c_thread(function, times=1):
    """Call `function` from a thread that pthread_create() starts, `times` times in sequence."""
    results = []

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    def call(_):
        results.append(function())

    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    for _ in range(times):
        assert libc.pthread_create(ctypes.byref(thread), None, call, None) == 0
        assert libc.pthread_join(thread, None) == 0
    return results


def test_callback_of_c_thread_begins_with_numpys_handler():
    assert run_c_thread(in_force) == [NUMPYS]


def test_enable_in_callback_of_c_thread_lasts_for_the_callback():
    def callback():
        before = in_force()
        memrt.enable()
        return before, in_force(), without(in_force), in_force()

    expected = (NUMPYS, "memrt:everywhere", NUMPYS, "memrt:everywhere")
    assert run_c_thread(callback, times=2) == [expected] * 2


def test_inner_callback_of_c_thread_keeps_the_handler():
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def callback():
        memrt.enable()
        seen, items = [], (ctypes.c_int * 2)(2, 1)
        ctypes.CDLL(None).qsort(items, 2, 4, compare(lambda *_: seen.append(in_force()) or 0))
        return set(seen)

    assert run_c_thread(callback) == [{"memrt:everywhere"}]
