"""Processes that fork or end while threads allocate and free memory."""

from __future__ import annotations

import signal
import sys

import pytest

IGNORED = ("-W", "ignore::DeprecationWarning")  # Python 3.12 and later warn of a fork with threads

WORKING = """
import os, signal, sys, threading
import memrt, numpy as np, probe

def work(stop=None):
    while stop is None or not stop.is_set():
        np.ones(100); memrt.alloc(5000, name="busy"); np.zeros(200_000)
        with memrt.Policy(): np.ones(3)

def start(count, stop=None):
    before = memrt.stats().alloc
    threads = [threading.Thread(target=work, args=[stop], daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    while memrt.stats().alloc < before + 1000:
        pass
    return threads

memrt.enable()
"""

ENDINGS = {
    "the last line": ("", 0),
    "sys.exit": ("sys.exit(8)", 8),
    "os._exit": ("os._exit(7)", 7),
    "os.abort": ("os.abort()", -signal.SIGABRT),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM); signal.pause()", -signal.SIGTERM),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL); signal.pause()", -signal.SIGKILL),
    "SIGINT": (
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "os.kill(os.getpid(), signal.SIGINT); signal.pause()",
        -signal.SIGINT,
    ),
    "sys.exit in a signal handler": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
        "os.kill(os.getpid(), signal.SIGTERM); signal.pause()",
        9,
    ),
}


@pytest.mark.parametrize(
    ("ending", "check"), [*((ending, "0") for ending in ENDINGS), ("sys.exit", "1")]
)
def test_exit_status_is_kept_while_threads_allocate(ending, check, run_python, probe):
    """Eight daemon threads of Python stop at any point; a ninth thread belongs to C code alone."""
    code, status = ENDINGS[ending]
    result = run_python(
        WORKING + "kept = np.ones(10)\nprobe.churn()\nstart(8)\n" + code,
        env={"MEMRT_CHECK": check},
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (status, "", "")


SIGNALS = """
calls = 0
def handle(number, frame):
    global calls
    calls += 1
    kept[calls % 8] = np.full(1000 * (calls % 8) + 1, calls)
    memrt.alloc(100 + calls)
kept = [np.zeros(1)] * 8
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while calls < 300:
    mine = [np.full(n, n) for n in range(50)]
    assert all((array == n).all() for n, array in enumerate(mine))
    del mine
signal.setitimer(signal.ITIMER_REAL, 0)
for array in kept:
    assert (array == array[0]).all()
del array, kept
print(memrt.stats().live)
"""


def test_signal_handlers_may_allocate_and_free_memory(run_python, probe):
    assert run_python(WORKING + SIGNALS).stdout == "0\n"


FORK_IN_THREADS = """
stop, codes = threading.Event(), []
inherited = [np.ones(1000), memrt.zeros(1000), memrt.alloc(100)]

def fork(number):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        mine = np.ones(10_000)
        assert inherited[0].sum() == 1000 and not inherited[1].any()
        inherited.clear()
        assert memrt.meminfo(mine).nbytes == 80_000
        memrt.debug.live(); memrt.release_unused()
        os._exit(number)
    codes.append((number, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))

workers = start(8, stop)
forkers = [threading.Thread(target=fork, args=[n]) for n in range(1, 9)]
for forker in forkers: forker.start()
for thread in forkers: thread.join()
stop.set()
for thread in workers: thread.join()
assert sorted(codes) == [(n, n) for n in range(1, 9)], codes
assert inherited[0].sum() == 1000
inherited.clear()
print(memrt.stats().live)
"""


def test_concurrent_forks_from_threads_give_working_children(run_python, probe):
    result = run_python(WORKING + FORK_IN_THREADS, flags=IGNORED)
    assert (result.stdout, result.stderr) == ("0\n", "")


MULTIPROCESSING = """
import multiprocessing, sys, threading
import memrt, numpy as np

inherited = memrt.zeros(1000)

def work(number):
    with memrt.Policy(name="child") as policy:
        mine = np.full(1000, number)
    assert memrt.meminfo(mine).policy == "child" and policy.stats().live == 8000
    assert not inherited.any()
    inherited[:] = number
    memrt.alloc(3_000_000)
    inherited[:] = 0
    return mine

def churn(stop, begun):
    while not stop.is_set():
        np.ones(100); memrt.alloc(5000); np.zeros(200_000)
        begun.set()

def main(method):
    memrt.enable()
    context = multiprocessing.get_context(method)
    stop, begun = threading.Event(), threading.Event()
    thread = threading.Thread(target=churn, args=[stop, begun], daemon=True)
    thread.start(); begun.wait()
    with context.Pool(2) as pool:
        for number, array in enumerate(pool.map(work, range(20))):
            assert (array == number).all()
    one = context.Process(target=sys.exit, args=[5])
    one.start(); one.join()
    assert one.exitcode == 5, one.exitcode
    stop.set(); thread.join()
    assert not inherited.any()

if __name__ == "__main__":
    main(sys.argv[1])
    memrt.disable()
    print(memrt.stats().live)
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing_workers_leave_parent_memory_unchanged(method, run_program, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(MULTIPROCESSING)
    result = run_program(sys.executable, *IGNORED, program, method)
    assert result.stderr == ""
    assert int(result.stdout) == 8000


ANEW = """
import gc, sys, threading, memrt, numpy as np
memrt.enable()
kept = np.ones(100)
policy = memrt.Policy(name="old")
with policy:
    inside = np.ones(50)
for name in [n for n in sys.modules if n.split(".")[0] == "memrt"]:
    del sys.modules[name]
del memrt, policy
gc.collect()
import memrt
assert memrt.handler_name() == "memrt" and memrt.handler_name(inside) == "memrt:old"
assert memrt.meminfo(kept).nbytes == 800
names = []
thread = threading.Thread(target=lambda: names.append(memrt.handler_name()))
thread.start(); thread.join()
del kept, inside
gc.collect()
print(names, memrt.stats().live)
"""


def test_reimported_package_keeps_memory_and_stays_enabled(run_python):
    result = run_python(ANEW)
    assert (result.stdout, result.stderr) == ("['memrt'] 0\n", "")
