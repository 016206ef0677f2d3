"""Memory that outlives its module, its thread, its interpreter or its process's parent."""

import sys

import memrt
import pytest

PLACES = {
    "module globals": "kept = {made}",
    "sys": "import sys; sys.kept = {made}",
    "a cycle": "class C: pass\nc = C(); c.me, c.kept = c, {made}; del c",
    "a C static": "probe.keep({made})",
    "a default argument": "def f(x={made}): pass",
    "a daemon thread's frame": (
        "import threading\n"
        "inside = threading.Event()\n"
        "def body():\n"
        "    kept = {made}\n"
        "    inside.set()\n"
        "    threading.Event().wait()\n"
        "threading.Thread(target=body, daemon=True).start(); inside.wait()"
    ),
    "atexit": "import atexit\natexit.register(lambda: globals().update(kept={made}))",
    "a __del__ at the end": (
        "class Late:\n    def __del__(self, make=lambda: {made}): self.kept = make()\nlate = Late()"
    ),
}

MADE = {
    "MemInfo": "memrt.alloc(1000)",
    "array": "memrt.zeros(100)[3:]",
    "handler array": "under()",
    "C array": "probe.make_array(100)",
    "owned by Python": "wrapped()",
    "adopted": "memrt.adopt(np.ones(100))",
}

HEAD = """
import ctypes, memrt, numpy as np, probe
class Owner: pass
def under():
    with memrt.Policy(): return np.ones(100)
def wrapped():
    data = ctypes.create_string_buffer(64)
    return memrt.as_array(memrt.wrap(ctypes.addressof(data), 64, lambda *a: None, (data, Owner())))
"""


@pytest.mark.parametrize("place", PLACES)
def test_a_process_ends_quietly_wherever_memory_is_kept(place, run_python, probe):
    everything = "[" + ", ".join(MADE.values()) + "]"
    result = run_python(
        HEAD + PLACES[place].format(made=everything) + "\n", flags=("-X", "dev", "-W", "error")
    )
    assert result.stderr == ""


@pytest.mark.parametrize("checker", [{"PYTHONMALLOC": "debug"}, {"MEMRT_CHECK": "1"}])
def test_a_process_ends_quietly_under_checking_allocators(checker, run_python, probe):
    everything = "[" + ", ".join(MADE.values()) + "]"
    lines = "\n".join(PLACES[place].format(made=everything) for place in PLACES)
    result = run_python(HEAD + lines + "\n", env=checker)
    assert result.stderr == ""


def test_arrays_outlive_the_package(run_python, probe):
    run_python(
        HEAD + "import gc, sys\n"
        f"kept = [{', '.join(MADE.values())}]\n"
        "for name in [n for n in sys.modules if n.split('.')[0] == 'memrt']:\n"
        "    del sys.modules[name]\n"
        "del memrt; gc.collect()\n"
        "kept[1][:] = 5; kept[2][:] = 6; kept[5][:] = 7\n"
        "assert kept[0].size == 1000 and kept[1].sum() == 485\n"
        "view = kept[2][5:]\n"
        "kept.clear(); gc.collect()\n"
        "assert view.sum() == 95 * 6\n"
        "import memrt\n"
        "assert memrt.meminfo(view).size == 800\n"
        "del view\n"
        "assert memrt.stats().live == 0\n"
    )


def test_a_dtor_of_a_module_global_still_runs_at_exit(run_python):
    result = run_python(
        "import ctypes, memrt\n"
        "data = ctypes.create_string_buffer(64)\n"
        "mi = memrt.wrap(ctypes.addressof(data), 64, lambda a, n: print('freed', n), data)\n"
    )
    assert result.stdout == "freed 64\n"


def test_a_thread_of_c_that_releases_while_python_ends_neither_hangs_nor_crashes(run_python, probe):
    result = run_python("import memrt, probe; probe.churn(); a = memrt.zeros(10)\n")
    assert result.stderr == ""


def test_an_owner_released_after_python_has_ended_is_dropped(run_python, probe):
    result = run_python(
        "import ctypes, memrt, probe\n"
        "data = ctypes.create_string_buffer(64)\n"
        "mi = memrt.wrap(ctypes.addressof(data), 64, lambda a, n: print('never'), data)\n"
        "probe.release_after_python(mi); del mi, data\n"
    )
    assert (result.stdout, result.stderr) == ("", "")


def test_what_waits_when_python_ends_is_run_then(run_python, probe):
    result = run_python(
        "import atexit, ctypes, memrt, probe\n"
        "def last():\n"
        "    probe.release_without_gil(held, True)\n"
        "data = ctypes.create_string_buffer(64)\n"
        "held = probe.hold(memrt.wrap(ctypes.addressof(data), 64, lambda a, n: print('run')))\n"
        "atexit.register(last)\n"
    )
    assert result.stdout == "run\n"


FORK = """
import os, sys, threading, memrt, numpy as np
memrt.enable()
inherited = [np.ones(1000), memrt.zeros(1000), memrt.alloc(100, name="n")]
stop, busy = threading.Event(), threading.Barrier(2)
def churn():
    busy.wait()
    while not stop.is_set():
        np.ones(100); memrt.alloc(5000); np.zeros(10**6)
thread = threading.Thread(target=churn); thread.start(); busy.wait()
for i in range(20):
    before = memrt.stats().mi_alloc
    pid = os.fork()
    if pid == 0:
        a = np.ones(10_000); b = memrt.zeros(10_000); mi = memrt.alloc(10)
        assert a.sum() == 10_000 and memrt.meminfo(a).size == 80_000
        with memrt.Policy(name="child"): c = np.ones(5)
        inherited.clear(); del a, b, c, mi
        memrt.stats(); memrt.live(); memrt.release_unused()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, (i, status)
stop.set(); thread.join()
assert inherited[0].sum() == 1000
inherited.clear()
print(memrt.stats().live)
"""


def test_fork_while_another_thread_allocates_leaves_both_processes_working(run_python):
    result = run_python(FORK, flags=("-W", "ignore::DeprecationWarning"))
    assert result.stdout == "0\n"


def test_a_child_may_end_in_the_ordinary_way(run_python, probe):
    run_python(
        HEAD + "import os\n"
        f"kept = [{', '.join(MADE.values())}]\n"
        "pid = os.fork()\n"
        "if pid: assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
    )


SUBINTERPRETER = """
import sys, memrt
try:
    import _interpreters as interpreters        # 3.13
except ImportError:
    import _xxsubinterpreters as interpreters
kept = memrt.zeros(10)
code = '''
try:
    import memrt._memrt
except ImportError as error:
    assert "interpreter" in str(error), error
else:
    raise SystemExit("imported")
'''
for config in {configs}:
    i = interpreters.create(**config)
    trouble = interpreters.run_string(i, code)
    assert not trouble, trouble
    interpreters.destroy(i)
assert kept.sum() == 0 and memrt.alloc(10).size == 10
"""


def test_a_subinterpreter_is_refused_with_an_import_error(run_python):
    configs = "[{}]"
    if sys.version_info[:2] == (3, 12):
        configs = "[dict(isolated=True), dict(isolated=False)]"
    elif sys.version_info >= (3, 13):
        configs = "[dict(config='isolated'), dict(config='legacy')]"
    run_python(
        SUBINTERPRETER.replace("{configs}", configs), flags=("-W", "ignore::DeprecationWarning")
    )


def test_many_short_threads_leave_nothing_behind():
    import threading

    before = memrt.stats()
    for _ in range(2000):
        thread = threading.Thread(target=memrt.alloc, args=(100,))
        thread.start()
        thread.join()
    after = memrt.stats()
    assert after.live == before.live
    assert after.alloc - before.alloc == 2000
    assert after.cached <= before.cached + 2**20
