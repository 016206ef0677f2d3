"""Statistics of a forked child: inherited amounts and the child's own."""

import sys

import pytest

pytestmark = pytest.mark.slow

IGNORED = ("-W", "ignore::DeprecationWarning")  # Python 3.12 and later warn of a fork with threads

HEAD = """
import os, sys, threading, traceback
import memrt, numpy as np

def in_child(act):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

def own(stats):
    return stats.live - stats.inherited
"""


def test_unforked_process_has_no_inherited_bytes(run_python):
    result = run_python(HEAD + "kept = memrt.alloc(100)\nprint(memrt.stats().inherited)")
    assert result.stdout == "0\n"


ACCOUNTS = """
policy = memrt.Policy(name="p")
with memrt.scope("stage") as stage:
    inherited = [memrt.alloc(1000), memrt.zeros(5000, np.uint8, policy=policy)]
with policy:
    inherited.append(np.ones(100, np.uint8))

def child():
    accounts = [memrt.stats, policy.stats, stage.stats]
    assert [a().inherited for a in accounts] == [6100, 5100, 6000]
    assert [a().inherited_blocks for a in accounts] == [3, 2, 2]
    assert [own(a()) for a in accounts] == [0, 0, 0]
    with memrt.scope("stage"):
        mine = [memrt.alloc(20), memrt.alloc(3, policy=policy)]
    with policy:
        mine.append(np.ones(7, np.uint8))
    assert [own(a()) for a in accounts] == [30, 10, 23]
    assert [memrt.meminfo(a[2]).policy for a in (inherited, mine)] == ["p", "p"]
    inherited.clear()
    assert [a().inherited for a in accounts] == [0, 0, 0]
    assert [a().live for a in accounts] == [30, 10, 23]
    assert memrt.stats().inherited_error == 0

in_child(child)
assert memrt.stats().inherited == 0
"""


def test_child_counts_inherited_and_own_bytes_separately(run_python):
    run_python(HEAD + ACCOUNTS)


THREADS = """
memrt.enable()
policy = memrt.Policy(name="busy")
kept = [np.ones(1000), memrt.alloc(3000, policy=policy)]
stop, begun = threading.Event(), threading.Barrier(3)

def churn():
    begun.wait()
    while not stop.is_set():
        np.ones(100); memrt.alloc(5000, policy=policy); np.zeros(10**6)

def child():
    assert own(memrt.stats()) == own(policy.stats()) == 0
    mine = [memrt.alloc(12345), memrt.alloc(678, policy=policy)]
    assert own(memrt.stats()) == 13023 and own(policy.stats()) == 678
    kept.clear()
    assert own(memrt.stats()) == 13023 and own(policy.stats()) == 678
    mine.clear()
    assert own(memrt.stats()) == own(policy.stats()) == 0

threads = [threading.Thread(target=churn) for _ in range(2)]
for thread in threads: thread.start()
begun.wait()
for _ in range(20): in_child(child)
stop.set()
for thread in threads: thread.join()
kept.clear()
print(memrt.stats().live)
"""


def test_child_own_bytes_are_exact_if_parent_threads_allocate(run_python):
    assert run_python(HEAD + THREADS, flags=IGNORED).stdout == "0\n"


MULTIPROCESSING = """
import multiprocessing, sys
import memrt, numpy as np

kept = memrt.zeros(1000, np.uint8)

def work(number):
    made = memrt.alloc(number)
    stats = memrt.stats()
    return stats.inherited, stats.live - stats.inherited

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        for number, (inherited, own) in enumerate(pool.map(work, range(1, 9)), 1):
            assert inherited == (1000 if sys.argv[1] == "fork" else 0), inherited
            assert own == number + (1000 - inherited), own
    print(memrt.stats().inherited)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_workers_inherit_only_if_forked(method, run_program, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(MULTIPROCESSING)
    result = run_program(sys.executable, *IGNORED, program, method)
    assert result.stdout == "0\n"


LISTED = """
def own():
    return sorted((b.nbytes, b.name) for b in memrt.debug.live() if not b.inherited)

unnamed = memrt.alloc(500)
with memrt.debug.tracking():
    kept = memrt.alloc(5000)
assert [b.inherited for b in memrt.debug.live()] == [False]

def grandchild():
    assert own() == []
    assert sorted(b.nbytes for b in memrt.debug.live()) == [300, 500, 5000]

def child():
    global kept
    assert own() == []
    (row,) = memrt.debug.live()
    assert row.inherited and repr(row).endswith(", inherited>") and row.to_dict()["inherited"]
    with memrt.debug.tracking():
        mine = memrt.alloc(300)
    unnamed.name = "allocated before"
    assert own() == [(300, None)]
    assert not repr(memrt.debug.live()[1]).endswith("inherited>")
    in_child(grandchild)
    kept = None
    rows = sorted((b.nbytes, b.inherited) for b in memrt.debug.live())
    assert rows == [(300, False), (500, True)]

in_child(child)
assert [b.inherited for b in memrt.debug.live()] == [False]
"""


def test_live_marks_inherited_buffers_in_a_child(run_python):
    run_python(HEAD + LISTED, env={"MEMRT_CHECK": "0", "MEMRT_TRACK": "0"})


STEPS = """
import contextvars, signal
from concurrent.futures import ThreadPoolExecutor

SOURCES = os.path.dirname(memrt.__file__)
policy = memrt.Policy(name="everywhere")

def by_thread(function):
    box = []
    thread = threading.Thread(target=lambda: box.append(function()))
    contextvars.Context().run(thread.start)  # a thread may inherit the context of its creator
    thread.join()
    return box[0]

def in_force():
    return memrt.handler_name(np.ones(1))

def is_carried():
    with ThreadPoolExecutor(1) as executor:
        executor.submit(len, "").result()  # starts the thread outside the scope
        with memrt.scope("submits") as scope:
            return executor.submit(memrt.current_scope).result() == scope

def peak_in_force():
    return next(option.value for option in memrt.debug.options() if option.name == "MEMRT_PEAK")

def use_exact_peak():
    with memrt.debug.exact_peak():
        pass

def put_patches_back():
    memrt.enable()
    memrt.disable()

CALLS = [lambda: memrt.enable(policy), memrt.disable, put_patches_back, use_exact_peak]

def run_to_step(call, step, act):
    # Call act() once, where the call runs the given line of memrt; False: there are fewer lines.
    left = step
    def look(frame, event, argument):
        nonlocal left
        if not frame.f_code.co_filename.startswith(SOURCES):
            return None
        if event in ("line", "return"):
            left -= 1
            if left == 0:
                act()
        return look
    sys.settrace(look)
    try:
        call()
    finally:
        sys.settrace(None)
    return left <= 0

def expect_working_calls():
    wanted = memrt.debug.enabled()
    names = {None: "default_allocator", policy: "memrt:everywhere"}
    assert by_thread(in_force) == names.get(wanted, "memrt")
    assert is_carried() == (wanted is not None)
    memrt.enable(wanted)
    with memrt.debug.exact_peak():
        assert peak_in_force() == "exact"
    assert by_thread(in_force) == in_force() != "default_allocator"
    assert is_carried()
    memrt.disable()
    assert memrt.debug.enabled() is None
    assert by_thread(in_force) == "default_allocator"
    assert not is_carried()
"""

FORKED = """
def child():
    signal.alarm(50)  # kills the child where a call waits for a thread that is not there
    expect_working_calls()

def fork_meanwhile(call, step):
    reached, forked = threading.Event(), threading.Event()
    found = []
    def wait():
        reached.set()
        forked.wait()
    def work():
        found.append(run_to_step(call, step, wait))
        reached.set()
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    reached.wait()
    in_child(child)
    forked.set()
    worker.join()
    return found[0]

steps = []
for call in CALLS:
    memrt.disable()
    if call is memrt.disable:
        memrt.enable(policy)
    step = 1
    while fork_meanwhile(call, step):
        step += 1
        memrt.disable()
        if call is memrt.disable:
            memrt.enable(policy)
    steps.append(step)
print(min(steps[:-1]) > 20, steps[-1] > 1)
"""


def test_child_forked_at_any_step_of_enabling_works(run_python):
    assert run_python(HEAD + STEPS + FORKED, flags=IGNORED).stdout == "True True\n"


SIGNALLED = """
def handle(number, frame):
    with memrt.debug.exact_peak():
        assert peak_in_force() == "exact"
    handled()

def enable_and_disable():
    memrt.enable()
    memrt.disable()

signal.signal(signal.SIGUSR1, handle)
before = peak_in_force()
for call in CALLS:
    for handled in (lambda: None, enable_and_disable, memrt.disable):
        step = 1
        while True:
            memrt.disable()
            if call is memrt.disable:
                memrt.enable(policy)
            try:
                more = run_to_step(call, step, lambda: signal.raise_signal(signal.SIGUSR1))
            except RuntimeError as error:  # the handler enabled memrt first, and so it is enabled
                assert handled is enable_and_disable and "is enabled already" in str(error)
                more = True
            assert peak_in_force() == before
            expect_working_calls()
            if not more:
                break
            step += 1
print("done")
"""


def test_signal_handler_at_any_step_of_enabling_works(run_python):
    assert run_python(HEAD + STEPS + SIGNALLED).stdout == "done\n"


COMPUTED = """
import signal

with memrt.debug.trace(sys.argv[1]):
    memrt.debug.mark("here")
slow, other = memrt.debug.Trace(sys.argv[1]), memrt.debug.Trace(sys.argv[1])
reached, forked = threading.Event(), threading.Event()
text = slow._text

def wait(number):
    reached.set()
    forked.wait()
    return text(number)

def child():
    signal.alarm(50)
    assert [mark.name for mark in other.marks] == ["here"]

slow._text = wait
worker = threading.Thread(target=lambda: slow.marks, daemon=True)
worker.start()
reached.wait()
in_child(child)
forked.set()
worker.join()
assert slow.marks is slow.marks == other.marks
"""


def test_child_forked_during_a_trace_read_can_read_the_trace(run_python, tmp_path):
    run_python(HEAD + COMPUTED, str(tmp_path / "trace"), flags=IGNORED)


LOCKS = """
import _thread, types

KINDS = (_thread.LockType, type(threading.RLock()))

def locks():
    modules = [m for name, m in sys.modules.items() if name.split(".")[0] in PACKAGES]
    return {
        f"{module.__name__}.{name}": value
        for module in modules for name, value in vars(module).items() if isinstance(value, KINDS)
    }

PACKAGES = ("memrt", "pytest_memrt")
import memrt.cuda, memrt.testing, memrt.numba, memrt.commands.run, memrt.pytest_plugin
for public in (memrt, memrt.debug, memrt.telemetry, memrt.types):
    for name in public.__all__: getattr(public, name)
held, end = threading.Event(), threading.Event()

def hold():
    for lock in locks().values(): lock.acquire()
    held.set()
    end.wait()

def child():
    for name, lock in locks().items():
        assert lock.acquire(blocking=False), name

threading.Thread(target=hold, daemon=True).start()
held.wait()
in_child(child)
end.set()
print(sorted(locks()))
"""


def test_locks_of_the_package_are_free_in_a_child(run_python):
    stdout = run_python(HEAD + LOCKS, flags=IGNORED).stdout
    assert stdout.split() == [
        "['memrt._arrays.freezing._lock',",
        "'memrt._policy.enabling._lock',",
        "'memrt._tracking.debug_info._lock']",
    ]
