"""Hooks in Python: functions that are called with allocations, resizes and frees."""

from __future__ import annotations

import gc
import math
import sys
import threading
import time
from collections import Counter, deque

import memrt
import numpy as np
import pytest
from atonce import on_threads, threads_repeat
from gil import GIL_IS_OFF
from memrt import _memrt

QUEUE = 4096


def hook_all(callback, **options):
    return memrt.debug.hook(callback, sample=None, **options)


def shapes(events):
    return [(event.type, event.nbytes) for event in events]


@pytest.fixture
def unraisable(monkeypatch):
    """Return the reports that go to sys.unraisablehook."""
    caught = []
    monkeypatch.setattr(sys, "unraisablehook", caught.append)
    return caught


def test_events_describe_a_block_from_allocation_to_free():
    events = []
    policy = memrt.Policy(name="images")
    before = time.monotonic()
    with hook_all(events.append), policy, memrt.scope("load"), memrt.scope("page"):
        array = np.ones(1000, "u1")
        address = array.ctypes.data
        array.resize(300_000, refcheck=False)
        moved = array.ctypes.data
        del array
    events = [event for event in events if event.nbytes >= 1000]  # NumPy makes small arrays too
    made, resized, freed = events
    assert shapes(events) == [("allocate", 1000), ("resize", 300_000), ("free", 300_000)]
    assert [event.weight for event in events] == [1.0, 0.0, 0.0]
    assert (made.address, resized.old_address) == (address, address)
    assert (resized.address, freed.address) == (moved, moved)
    assert [event.old_nbytes for event in events] == [0, 1000, 0]
    assert {event.policy for event in events} == {"images"}
    assert {event.scope for event in events} == {"load/page"}
    assert {event.thread for event in events} == {threading.get_native_id()}
    times = [event.time for event in events]
    assert before <= times[0] <= times[1] <= times[2] <= time.monotonic()


def test_main_thread_calls_the_function_between_instructions():
    events, threads = [], []

    def note(event):
        events.append(event)
        threads.append(threading.current_thread())

    with hook_all(note):
        mi = memrt.alloc(1000)
        end = time.monotonic() + 10
        while not events and time.monotonic() < end:
            pass
        assert shapes(events) == [("allocate", 1000)]
    assert threads == [threading.main_thread()]
    del mi


def test_tracked_allocation_has_its_source_line(untracked):
    events = []
    with hook_all(events.append):
        memrt.alloc(1000)
        with memrt.debug.tracking():
            memrt.alloc(1000)
    untold, _, made, freed = events
    assert made.place.file == __file__
    assert made.site.frames[0].line == made.place.line
    assert [event.place for event in (untold, freed)] == [None, None]
    assert [event.site for event in (untold, freed)] == [None, None]


def test_refused_request_is_an_event():
    events = []
    with hook_all(events.append), pytest.raises(MemoryError):
        memrt.alloc(1 << 60)
    assert [(event.type, event.nbytes, event.address) for event in events] == [
        ("failure", 1 << 60, 0)
    ]


# n draws of probability p estimate n buffers with a standard deviation of sqrt(n (1 - p) / p). Six
# deviations are exceeded once in 500 million runs.
def test_weights_of_a_sample_estimate_the_allocated_bytes():
    events = []
    count, nbytes, sample = 20_000, 1000, 10_000
    with memrt.debug.hook(events.append, sample=sample):
        for _ in range(count):
            memrt.alloc(nbytes)
    p = -math.expm1(-nbytes / sample)
    estimate = sum(event.weight * event.nbytes for event in events) / nbytes
    assert abs(estimate - count) < 6 * math.sqrt(count * (1 - p) / p)
    types = Counter(event.type for event in events)
    assert types["allocate"] == types["free"] < count / 5


def test_events_of_all_blocks_add_up_to_the_statistics():
    live, allocated = {}, 0.0

    def account(event):
        nonlocal allocated
        allocated += event.weight
        if event.type == "resize":
            del live[event.old_address]
        if event.type == "free":
            assert live.pop(event.address) == event.nbytes
        else:
            live[event.address] = event.nbytes

    gc.collect()
    policy = memrt.Policy(name="books")
    with hook_all(account, policy=policy) as hook, policy:
        kept = []
        for n in range(1, 500):
            kept.append(np.ones(n * 100, "u1"))
            if n % 3 == 0:
                kept[-1].resize(n * 300, refcheck=False)
            if n % 2 == 0:
                kept.pop(0)
        hook.deliver()
        assert sum(live.values()) == policy.stats().live
        assert allocated == policy.stats().alloc
        kept.clear()
    assert live == {}
    assert hook.dropped == 0


def test_hook_of_a_policy_gets_its_events_in_all_scopes_only():
    events = []
    policy = memrt.Policy(name="hooked")
    with memrt.scope("outer"), hook_all(events.append, policy=policy):
        memrt.alloc(100, policy=policy)
        memrt.alloc(200)
        with memrt.scope("inner"):
            memrt.alloc(300, policy=policy)
    assert shapes(events) == [("allocate", 100), ("free", 100), ("allocate", 300), ("free", 300)]
    assert [event.scope for event in events[1:3]] == ["outer", "outer/inner"]


OUTLIVED = """
import memrt
def make():
    with memrt.scope("brief"):
        return memrt.alloc(5000, policy=memrt.Policy(name="brief"))
events = []
hook = memrt.debug.hook(events.append, sample=None)
mi = make()
del mi
hook.close()
for event in events:
    print(event.type, event.nbytes, event.policy, event.scope)
"""


@pytest.mark.parametrize("check", ["0", "1"])
def test_event_outlives_its_policy_and_scope(check, run_python):
    result = run_python(OUTLIVED, env={"MEMRT_CHECK": check})
    assert result.stdout.splitlines() == [
        "allocate 5000 brief brief",
        "free 5000 brief brief",
    ]


def test_exception_goes_to_unraisablehook_and_calls_continue(unraisable):
    seen = []

    def fail(event):
        seen.append(event.type)
        raise ValueError(event.nbytes)

    with hook_all(fail) as hook:
        memrt.alloc(1000)
    assert seen == ["allocate", "free"]
    assert [report.exc_value.args for report in unraisable] == [(1000,), (1000,)]
    assert unraisable[0].object is hook


def test_allocations_of_the_function_have_no_events():
    events, kept = [], [memrt.alloc(50)]

    def allocate(event):
        events.append(event)
        kept.append(memrt.alloc(70_000 + len(kept)))
        with pytest.raises(MemoryError):
            memrt.alloc(1 << 60)

    with hook_all(allocate):
        mi = memrt.alloc(1000)
        del mi
        end = time.monotonic() + 10
        while len(events) < 2 and time.monotonic() < end:
            pass
        kept.clear()
    assert shapes(events) == [("allocate", 1000), ("free", 1000)]


def test_frees_inside_of_the_function_have_events():
    events, cache = [], []

    def drop(event):
        events.append(event)
        cache.clear()

    with hook_all(drop):
        mi = memrt.alloc(3000)
        cache.append(mi)
        del mi
        memrt.alloc(100)
    assert ("free", 3000) in shapes(events)


def test_function_may_close_its_hook_and_then_gets_no_event():
    events = []

    def close(event):
        events.append(event)
        hook.close()

    hook = hook_all(close)
    [memrt.alloc(1000) for _ in range(5)]
    hook.deliver()
    hook.close()
    assert shapes(events) == [("allocate", 1000)]
    assert not hook.is_open


def test_function_may_open_and_close_other_hooks():
    inner, opened = [], []

    def open_or_close(event):
        if opened:
            opened.pop().close()
        else:
            opened.append(hook_all(inner.append))

    with hook_all(open_or_close) as hook:
        memrt.alloc(1000)
        hook.deliver()
        while opened:
            memrt.alloc(2000)
            hook.deliver()
    assert set(shapes(inner)) <= {("allocate", 2000), ("free", 2000), ("free", 1000)}


def test_full_queue_counts_dropped_events():
    events = []
    count = 3 * QUEUE

    def allocate():
        for _ in range(count):
            memrt.alloc(100)

    with hook_all(events.append) as hook:
        thread = threading.Thread(target=allocate)
        thread.start()
        thread.join()  # the main thread calls no function meanwhile
        assert hook.dropped > 0
    mine = [event for event in events if event.nbytes == 100]
    assert len(events) - len(mine) <= 10
    assert len(events) + hook.dropped >= 2 * count
    dropped = hook.dropped
    memrt.alloc(100)
    assert hook.dropped == dropped


def test_events_without_the_gil_arrive(probe):
    events = []
    with hook_all(events.append):
        assert probe.allocates(5000, "without the GIL")
        assert probe.allocates(6000, "with an exception")
    assert shapes(events) == [
        *[("allocate", 5000), ("free", 5000)],
        *[("allocate", 6000), ("free", 6000)],
    ]


def test_other_thread_delivers_while_the_main_thread_waits():
    names = []

    def work():
        memrt.alloc(1000)
        hook.deliver()

    with hook_all(lambda event: names.append(threading.current_thread().name)) as hook:
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
    assert len(names) >= 2
    # Without the GIL, the main thread may deliver before the thread waits.
    assert GIL_IS_OFF or names[:2] == ["worker", "worker"]


def test_close_waits_for_a_call_in_another_thread():
    entered, leave, order = threading.Event(), threading.Event(), []

    def stay(event):
        if threading.current_thread() is not threading.main_thread() and not entered.is_set():
            entered.set()
            leave.wait()
        order.append(event.type)

    hook = hook_all(stay)

    def work():
        memrt.alloc(1000)
        hook.deliver()

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    threading.Timer(0.1, leave.set).start()
    hook.close()
    order.append("closed")
    thread.join()
    assert order[-1] == "closed"
    assert order.count("allocate") >= 1


def test_threads_allocate_while_hooks_come_and_go():
    with threads_repeat(lambda: memrt.alloc(200), 3):
        for _ in range(10):
            counts = Counter()
            with hook_all(lambda event, counts=counts: counts.update([event.type])) as hook:
                [memrt.alloc(300) for _ in range(20)]
            assert counts["allocate"] + hook.dropped >= 20


def test_main_thread_goes_on_beside_threads_with_many_events():
    calls = []
    steps = 0

    def call_slowly(event):
        calls.append(sum(range(1000)))

    with threads_repeat(lambda: memrt.alloc(200), 3), hook_all(call_slowly):
        while steps < 200 and len(calls) <= 4 * QUEUE:  # Python runs pending calls at each step
            steps += 1
    assert steps == 200


def test_threads_open_deliver_and_close_at_once():
    failures = []

    def use(_number):
        for _ in range(40):
            try:
                with hook_all(lambda event: None) as hook:
                    memrt.alloc(100)
                    hook.deliver()
            except RuntimeError as error:
                failures.append(str(error))

    on_threads(use, 4)
    assert failures == []
    with hook_all(len) as hook:
        assert hook.is_open


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="callback must be callable, got 5"):
        memrt.debug.hook(5)
    for sample in (0, -1):
        with pytest.raises(ValueError, match=f"positive number of bytes, got {sample}"):
            memrt.debug.hook(len, sample=sample)
    with pytest.raises(ValueError, match="got 'often'"):
        memrt.debug.hook(len, sample="often")
    with pytest.raises(TypeError):
        _memrt.hook_add(len, 0, "policy")
    for call in (_memrt.hook_remove, _memrt.hook_deliver, _memrt.hook_dropped):
        with pytest.raises(TypeError):
            call("first")
    assert _memrt.hook_remove(0) is None
    assert _memrt.hook_deliver(0) is None
    assert _memrt.hook_dropped(0) == 0


def test_ninth_hook_is_refused_and_a_closed_place_is_reused():
    hooks = [hook_all(len) for _ in range(8)]
    refused = deque().append
    counts = sys.getrefcount(refused)
    with pytest.raises(RuntimeError, match="at most 8 hooks can be open"):
        hook_all(refused)
    gc.collect()
    assert sys.getrefcount(refused) == counts  # no exit handler keeps the function
    numbers = {hook._number for hook in hooks}
    for reused in range(1, 4):  # a late event of a closed hook must not reach another one
        hooks.pop(3).close()
        hooks.insert(3, hook_all(len))
        numbers.add(hooks[3]._number)
        assert len(numbers) == 8 + reused
    for hook in hooks:
        hook.close()
        hook.close()
        hook.deliver()


def test_hook_shows_its_settings():
    policy = memrt.Policy(name="shown")
    with memrt.debug.hook(len, sample="2 MiB", policy=policy) as hook:
        assert (hook.callback, hook.sample, hook.policy) == (len, 2 << 20, policy)
        assert hook.is_open
        assert repr(hook).endswith("sample 2.0 MiB, policy 'shown'>")
    with hook_all(len) as hook:
        assert hook.sample is None
    assert repr(hook).endswith("all, closed>")


def test_last_events_arrive_at_the_end_of_the_interpreter(run_python):
    code = (
        "import memrt\n"
        "memrt.debug.hook(lambda event: print(event.type, event.nbytes), sample=None)\n"
        "kept = memrt.alloc(1000); memrt.alloc(2000)\n"
    )
    result = run_python(code, flags=("-X", "dev", "-W", "error"))
    assert result.stdout == "allocate 1000\nallocate 2000\nfree 2000\n"
    assert result.stderr == ""


LATE = """
import memrt
class Late:
    def __init__(self): self.alloc, self.hook = memrt.alloc, memrt.debug.hook
    def __del__(self):
        hook = self.hook(print, sample=None)
        self.kept = self.alloc(1000)
late = Late()
import sys
sys.late = Late()
"""


def test_hook_opened_during_finalization_is_silent(run_python):
    result = run_python(LATE, flags=("-X", "dev"))
    assert result.stderr == ""


FORK = r"""
import os, memrt, threading
def show(event):
    events.append((event.type, event.nbytes))
events = []
hook = memrt.debug.hook(show, sample=None)
def work():
    before = memrt.alloc(1000)
    child = os.fork()
    memrt.alloc(2000 if child else 3000)
    hook.close()
    os.write(1, f"{events} {hook.is_open}\n".encode())
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
work()
"""


def test_child_gets_its_own_events_only(run_python):
    result = run_python(FORK, flags=("-W", "ignore::DeprecationWarning"))
    child = "[('allocate', 3000), ('free', 3000)] False"
    parent = "[('allocate', 1000), ('allocate', 2000), ('free', 2000)] False"
    lines = sorted(result.stdout.splitlines())
    # The first event may be delivered before the fork, and is then in the list of the child.
    assert lines[0] == parent
    assert lines[1] in (child, f"[('allocate', 1000), {child[1:]}")


FORK_INSIDE = """
import os, memrt
def fork(event):
    global child
    if event.type == "allocate" and child is None:
        child = os.fork()
    seen.append(event.nbytes)
child, seen = None, []
with memrt.debug.hook(fork, sample=None) as hook:
    memrt.alloc(1000); memrt.alloc(2000)
    hook.deliver()
    memrt.alloc(3000)
if child == 0:
    assert 3000 in seen, seen
    os._exit(7)
assert seen == [1000, 1000, 2000, 2000, 3000, 3000], seen
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_function_may_fork(run_python):
    run_python(FORK_INSIDE, flags=("-W", "ignore::DeprecationWarning"))


FORK_BESIDE = """
import os, memrt, threading
stop = threading.Event()
def allocate():
    while not stop.is_set():
        memrt.alloc(100)
threads = [threading.Thread(target=allocate) for _ in range(2)]
seen = []
hook = memrt.debug.hook(lambda event: seen.append(event.nbytes), sample=None)
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        seen.clear()
        memrt.alloc(5000)
        hook.close()
        os._exit(0 if 5000 in seen or hook.dropped else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
hook.close()
"""


def test_child_delivers_after_a_fork_beside_busy_threads(run_python):
    run_python(FORK_BESIDE, flags=("-W", "ignore::DeprecationWarning"))


SUBINTERPRETER = """
import sys, memrt
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
names = set()
def note(event):
    names.add(event.nbytes)
inner = interpreters.create()
with memrt.debug.hook(note, sample=None):
    assert interpreters.run_string(inner, "import core; core.churn(100)") is None
    memrt.alloc(70)
interpreters.destroy(inner)
assert names == {1000, 70}, names
"""


def test_events_of_a_subinterpreter_reach_main_interpreter(run_python, core):
    run_python(SUBINTERPRETER)
