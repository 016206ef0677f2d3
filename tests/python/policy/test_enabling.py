"""enable() and disable() apply to every thread that Python starts from then on."""

import asyncio
import contextvars
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from unittest import mock

import memrt
import numpy as np
import pytest
from gil import THREADS_INHERIT
from memrt import _memrt
from memrt._policy import handlers


@pytest.fixture(autouse=True)
def restored_handler_and_patches():
    handler, start = _memrt.get_handler(), vars(threading.Thread).copy()
    submit = ThreadPoolExecutor.submit
    yield
    memrt.disable()
    assert _memrt.get_handler() is handler
    assert vars(threading.Thread) == start
    assert ThreadPoolExecutor.submit is submit


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
def test_enable_reaches_every_kind_of_thread_and_task(start):
    memrt.enable(memrt.Policy(name="everywhere"))
    assert start(in_force) == "memrt:everywhere"
    memrt.disable()
    assert start(in_force) == "default_allocator"


@pytest.mark.parametrize("start", THREADS)
def test_policy_block_reaches_new_threads_only_if_they_inherit(start):
    with memrt.Policy(name="local"):
        assert start(in_force) == ("memrt:local" if THREADS_INHERIT else "default_allocator")


@pytest.mark.parametrize("start", INHERIT)
def test_policy_block_reaches_work_with_inherited_context(start):
    with memrt.Policy(name="inherited"):
        assert start(in_force) == "memrt:inherited"


def test_policy_enter_as_executor_initializer_reaches_workers():
    policy = memrt.Policy(name="workers")
    with ThreadPoolExecutor(1, initializer=policy.__enter__) as executor:
        assert executor.submit(in_force).result() == "memrt:workers"


def test_thread_started_in_policy_block_uses_enabled_policy():
    memrt.enable()
    with memrt.Policy(name="local"):
        assert by_thread(in_force) == ("memrt:local" if THREADS_INHERIT else "memrt")


def test_running_thread_uses_memrt_only_after_its_own_enable():
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


def test_single_disable_undoes_repeated_enable():
    policy = memrt.Policy(name="twice")
    before = _memrt.get_handler()
    memrt.enable(policy)
    memrt.enable(policy)
    memrt.enable()
    assert memrt.debug.enabled() is policy
    memrt.disable()
    assert memrt.debug.enabled() is None
    assert _memrt.get_handler() is before
    memrt.disable()


def test_disable_removes_the_patches_of_threads_and_executors():
    methods = threading.Thread._bootstrap_inner, ThreadPoolExecutor.submit
    for _ in range(2):
        memrt.enable()
        assert threading.Thread._bootstrap_inner is not methods[0]
        assert ThreadPoolExecutor.submit is not methods[1]
        memrt.disable()
        assert (threading.Thread._bootstrap_inner, ThreadPoolExecutor.submit) == methods


def test_enable_with_a_second_policy_raises_and_keeps_the_first():
    memrt.enable(memrt.Policy(name="one"))
    with pytest.raises(RuntimeError, match="'one' is enabled already"):
        memrt.enable(memrt.Policy(name="two"))
    assert in_force() == "memrt:one"
    with pytest.raises(TypeError, match=r"memrt\.Policy"):
        memrt.enable("fast")


def test_enable_without_a_policy_uses_the_default_policy():
    memrt.enable()
    assert memrt.debug.enabled() is memrt.debug.default_policy()
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


def test_disable_in_other_thread_keeps_handler_of_this_thread():
    memrt.enable(memrt.Policy(name="mine"))
    by_thread(memrt.disable)
    assert memrt.debug.enabled() is None
    assert in_force() == "memrt:mine"
    memrt.enable(memrt.Policy(name="new"))
    assert in_force() == "memrt:new"


def test_thread_traceback_has_no_memrt_frames(monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda e: seen.append(e.exc_traceback))
    memrt.enable()
    by_thread_error = threading.Thread(target=lambda: 1 / 0)
    by_thread_error.start()
    by_thread_error.join()
    files = {frame.filename for frame in traceback.extract_tb(seen[0])}
    assert files == {threading.__file__, __file__}
    seen.clear()


def test_enable_leaves_run_attribute_of_threads_unchanged():
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


def test_thread_stack_has_no_memrt_frames():
    memrt.enable()
    files = {frame.filename for frame in by_thread(traceback.extract_stack)}
    assert files == {threading.__file__, __file__}


class WithRunProperty(threading.Thread):
    @property
    def run(self):
        return self.work

    def work(self):
        self.seen = in_force()


class WithGuardedAttributes(threading.Thread):
    seen = None

    def __setattr__(self, name, value):
        if name == "run":
            raise AttributeError("run is read-only")
        super().__setattr__(name, value)

    def run(self):
        self.seen = in_force()


@pytest.mark.parametrize("worker", [WithRunProperty, WithGuardedAttributes])
def test_enable_reaches_threads_whose_run_cannot_be_set(worker):
    memrt.enable()
    thread = worker()
    thread.start()
    thread.join()
    assert thread.seen == "memrt"


def test_enable_and_disable_work_while_thread_start_is_mocked():
    with mock.patch.object(threading.Thread, "start"):
        memrt.enable()
    assert by_thread(in_force) == "memrt"
    with mock.patch.object(threading.Thread, "start"):
        memrt.disable()
    assert by_thread(in_force) == "default_allocator"


def scope_of_submitted():
    with ThreadPoolExecutor(1) as executor:
        executor.submit(len, "").result()  # starts the thread outside the scope
        with memrt.scope("submits") as scope:
            return executor.submit(memrt.current_scope).result() == scope


def test_enable_again_restores_a_patch_that_a_mock_removed():
    with mock.patch.object(ThreadPoolExecutor, "submit"):
        memrt.enable()
    assert not scope_of_submitted()
    memrt.enable()
    assert scope_of_submitted()
    memrt.enable()
    memrt.disable()
    assert not scope_of_submitted()


def test_thread_still_runs_if_setting_its_handler_fails(monkeypatch):
    memrt.enable()
    reported = []
    with monkeypatch.context() as patched:
        patched.setattr(sys, "unraisablehook", lambda each: reported.append(each.exc_type))
        patched.setattr(handlers, "push", mock.Mock(side_effect=MemoryError))
        # in an empty context, because a thread may inherit the handler of its creator
        assert contextvars.Context().run(by_thread, in_force) == "default_allocator"
    assert reported == [MemoryError]


def test_disable_keeps_a_foreign_handler_and_warns(recorder):
    before, foreign = _memrt.get_handler(), recorder.new(None, "foreign")
    memrt.enable()
    _memrt.set_handler(foreign)
    with pytest.warns(RuntimeWarning, match="handler 'foreign' of another library stays") as caught:
        memrt.disable()
    assert caught[0].filename == __file__
    assert _memrt.get_handler() is foreign
    assert memrt.debug.enabled() is None
    _memrt.set_handler(before)


def test_second_thread_start_raises_and_leaves_run_unset():
    memrt.enable()
    thread = threading.Thread(target=in_force)
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="once"):
        thread.start()
    assert "run" not in vars(thread)


@pytest.mark.parametrize("name", ["start", "_bootstrap_inner"])
def test_foreign_patch_around_memrt_patch_keeps_working(name):
    original = vars(threading.Thread)[name]
    memrt.enable()
    ours = getattr(threading.Thread, name)
    calls = []

    def theirs(self):
        calls.append(1)
        ours(self)

    setattr(threading.Thread, name, theirs)
    try:
        memrt.disable()
        assert getattr(threading.Thread, name) is theirs
        assert by_thread(in_force) == "default_allocator"
        memrt.enable()
        assert by_thread(in_force) == "memrt"
        memrt.disable()
    finally:
        setattr(threading.Thread, name, original)
    assert calls
