"""enable() and disable(): every thread that Python starts from then on."""

import asyncio
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import memrt
import numpy as np
import pytest
from memrt import _memrt


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    handler, start = _memrt.get_handler(), threading.Thread.start
    yield
    memrt.disable()
    assert _memrt.get_handler() is handler
    assert threading.Thread.start is start


def in_force():
    return memrt.handler_name(np.ones(3))


def by_thread(function):
    box = []
    thread = threading.Thread(target=lambda: box.append(function()))
    thread.start()
    thread.join()
    return box[0]


def by_subclass(function):
    class Worker(threading.Thread):
        def run(self):
            self.result = function()

    worker = Worker()
    worker.start()
    worker.join()
    return worker.result


def by_timer(function):
    box = []
    timer = threading.Timer(0, lambda: box.append(function()))
    timer.start()
    timer.join()
    return box[0]


def by_executor(function):
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(function).result()


def by_thread_pool(function):
    with ThreadPool(1) as pool:
        result = pool.apply(function)
        pool.close()
        pool.join()
    return result


def by_to_thread(function):
    return asyncio.run(asyncio.to_thread(function))


def by_run_in_executor(function):
    async def main():
        return await asyncio.get_running_loop().run_in_executor(None, function)

    return asyncio.run(main())


def by_task(function):
    async def body():
        return function()

    return asyncio.run(body())


THREADS = [by_thread, by_subclass, by_timer, by_executor, by_thread_pool, by_run_in_executor]
INHERIT = [by_to_thread, by_task]


@pytest.mark.parametrize("start", THREADS + INHERIT)
def test_enable_reaches_threads_and_tasks_however_they_are_started(start):
    memrt.enable(memrt.Policy(name="everywhere"))
    assert start(in_force) == "memrt:everywhere"
    memrt.disable()
    assert start(in_force) == "default_allocator"


@pytest.mark.parametrize("start", THREADS)
def test_a_policy_alone_does_not_reach_a_thread(start):
    with memrt.Policy():
        assert start(in_force) == "default_allocator"


@pytest.mark.parametrize("start", INHERIT)
def test_a_policy_reaches_what_inherits_the_context(start):
    with memrt.Policy(name="inherited"):
        assert start(in_force) == "memrt:inherited"


def test_a_policy_reaches_an_executor_as_its_initializer():
    policy = memrt.Policy(name="workers")
    with ThreadPoolExecutor(1, initializer=policy.__enter__) as executor:
        assert executor.submit(in_force).result() == "memrt:workers"


def test_a_thread_started_inside_a_policy_gets_the_enabled_one():
    memrt.enable()
    with memrt.Policy(name="local"):
        assert by_thread(in_force) == "memrt"


def test_threads_that_run_already_are_not_reached_but_can_join_in():
    ready, go, seen = threading.Event(), threading.Event(), []

    def body():
        ready.set()
        go.wait(30)
        seen.append(in_force())
        memrt.enable()
        seen.append(in_force())

    thread = threading.Thread(target=body)
    thread.start()
    ready.wait(30)
    memrt.enable(memrt.Policy(name="late"))
    go.set()
    thread.join()
    assert seen == ["default_allocator", "memrt:late"]


def test_enable_again_changes_nothing_and_one_disable_undoes_all():
    policy = memrt.Policy(name="twice")
    before = _memrt.get_handler()
    memrt.enable(policy)
    memrt.enable(policy)
    memrt.enable()
    assert memrt.enabled() is policy
    memrt.disable()
    assert memrt.enabled() is None
    assert _memrt.get_handler() is before
    memrt.disable()


def test_enable_with_another_policy_is_refused_and_changes_nothing():
    memrt.enable(memrt.Policy(name="one"))
    with pytest.raises(RuntimeError, match="'one' is enabled already"):
        memrt.enable(memrt.Policy(name="two"))
    assert in_force() == "memrt:one"
    with pytest.raises(TypeError, match=r"memrt\.Policy"):
        memrt.enable("fast")


def test_enable_takes_the_default_policy_when_none_is_named():
    memrt.enable()
    assert memrt.enabled() is memrt.default_policy()
    assert in_force() == "memrt"


def test_enable_and_policies_may_be_undone_in_any_order():
    policy = memrt.Policy(name="inner")
    before = _memrt.get_handler()
    memrt.enable()
    policy.__enter__()
    memrt.disable()
    assert in_force() == "memrt:inner"
    policy.__exit__()
    assert _memrt.get_handler() is before
    policy.__enter__()
    memrt.enable()
    policy.__exit__()
    assert in_force() == "memrt"
    memrt.disable()
    assert _memrt.get_handler() is before


def test_disable_in_another_thread_leaves_this_context_until_it_says_so_too():
    memrt.enable(memrt.Policy(name="mine"))
    by_thread(memrt.disable)
    assert memrt.enabled() is None
    assert in_force() == "memrt:mine"
    memrt.enable(memrt.Policy(name="new"))
    assert in_force() == "memrt:new"


def test_the_traceback_of_a_thread_shows_the_program_alone(monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda e: seen.append(e.exc_traceback))
    memrt.enable()
    by_thread_error = threading.Thread(target=lambda: 1 / 0)
    by_thread_error.start()
    by_thread_error.join()
    files = {frame.filename for frame in traceback.extract_tb(seen[0])}
    assert files == {threading.__file__, __file__}
    seen.clear()


def test_a_thread_keeps_no_trace_of_memrt_after_its_start():
    class Worker(threading.Thread):
        def run(self):
            self.seen = dict(vars(self))

    memrt.enable()
    worker = Worker()
    worker.start()
    worker.join()
    assert "run" not in worker.seen
    replaced = threading.Thread()
    replaced.run = mine = lambda: None
    replaced.start()
    replaced.join()
    assert replaced.run is mine


def test_a_thread_that_cannot_start_is_as_it_was():
    memrt.enable()
    thread = threading.Thread(target=in_force)
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="once"):
        thread.start()
    assert "run" not in vars(thread)


def test_another_librarys_patch_around_ours_keeps_working():
    original = threading.Thread.start
    memrt.enable()
    ours = threading.Thread.start
    calls = []

    def theirs(self):
        calls.append(1)
        ours(self)

    threading.Thread.start = theirs
    try:
        memrt.disable()
        assert threading.Thread.start is theirs
        assert by_thread(in_force) == "default_allocator"
        memrt.enable()
        assert by_thread(in_force) == "memrt"
        memrt.disable()
    finally:
        threading.Thread.start = original
    assert calls
