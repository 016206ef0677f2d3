"""Memory that outlives a module, a thread, an interpreter or the parent process."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from gil import PYTHON_CHECKER
from memrt import _memrt

ROOT = Path(__file__).resolve().parents[3]
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
memrt.Policy, memrt.adopt, memrt.types.Buffer # the end of the interpreter imports nothing
class Owner: pass
def under():
    with memrt.Policy(): return np.ones(100)
def wrapped():
    data = ctypes.create_string_buffer(64)
    return memrt.as_array(memrt.wrap(ctypes.addressof(data), 64, max, (data, Owner())))
def grown():
    buffer = memrt.types.Buffer(dtype="f8")
    buffer.append(1)
    first = buffer.array
    buffer.resize(10_000)
    return first, memoryview(buffer), buffer
"""


ALL_MADE = "[" + ", ".join(MADE.values()) + "]"
EVERYTHING = f"[*{ALL_MADE}, *grown()]"
BLOCKS = len(MADE) + 2  # a growing buffer has a header and data


@pytest.mark.parametrize("place", PLACES)
def test_process_exits_silently_wherever_memory_is_held(place, run_python, probe):
    result = run_python(
        HEAD + PLACES[place].format(made=EVERYTHING) + "\n", flags=("-X", "dev", "-W", "error")
    )
    assert result.stderr == ""


@pytest.mark.parametrize("checker", [{"PYTHONMALLOC": PYTHON_CHECKER}, {"MEMRT_CHECK": "1"}])
def test_process_exits_silently_under_checking_allocators(checker, run_python, probe):
    # Alone, because a daemon thread may keep the globals that a late `__del__` needs.
    alone = {"a daemon thread's frame"}
    for places in (alone, PLACES.keys() - alone):
        lines = [PLACES[place].format(made=EVERYTHING) for place in PLACES if place in places]
        result = run_python(HEAD + "\n".join(lines) + "\n", env=checker)
        assert result.stderr == ""


REACHED_BY_NOBODY = {"a C static", "a daemon thread's frame"}


@pytest.mark.parametrize("place", PLACES)
def test_python_end_frees_all_but_c_and_daemon_thread_memory(place, run_host, probe):
    (ended, _), _ = run_host(HEAD + PLACES[place].format(made=EVERYTHING))
    survivors = BLOCKS if place in REACHED_BY_NOBODY else 0
    assert ended["blocks"] == survivors
    assert (ended["live"] > 0) == (ended["adopted"] > 0) == (survivors > 0)


def test_arrays_outlive_the_package(run_python, probe):
    run_python(
        HEAD + "import gc, sys\n"
        f"kept = [{', '.join(MADE.values())}]\n"
        "for name in [n for n in sys.modules if n.split('.')[0] == 'memrt']:\n"
        "    del sys.modules[name]\n"
        "del memrt; gc.collect()\n"
        "kept[1][:] = 5; kept[2][:] = 6; kept[5][:] = 7\n"
        "assert kept[0].nbytes == 1000 and kept[1].sum() == 485\n"
        "view = kept[2][5:]\n"
        "kept.clear(); gc.collect()\n"
        "assert view.sum() == 95 * 6\n"
        "import memrt\n"
        "assert memrt.meminfo(view).nbytes == 800\n"
        "del view\n"
        "assert memrt.stats().live == 0\n"
    )


def test_import_raises_the_error_of_atexit(run_python):
    code = "import atexit\natexit.register = lambda *_: 1 / 0\nimport memrt\n"
    result = run_python(code, check=False)
    assert result.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_destructor_of_a_module_global_runs_at_exit(run_python):
    result = run_python(
        "import ctypes, memrt\n"
        "data = ctypes.create_string_buffer(64)\n"
        "mi = memrt.wrap(ctypes.addressof(data), 64, lambda a, n: print('freed', n), data)\n"
    )
    assert result.stdout == "freed 64\n"


def test_destructor_in_a_cycle_with_array_is_skipped_at_exit(run_python):
    """NumPy arrays are invisible to the cycle collector, so the cycle stays. With a MemInfo in
    place of the array, the collector could free the cycle.
    """
    result = run_python(
        "import ctypes, memrt\n"
        "data = ctypes.create_string_buffer(64)\n"
        "mi = memrt.wrap(ctypes.addressof(data), 64, lambda a, n: print('freed', n), data)\n"
        "array = memrt.as_array(mi); del mi\n"
    )
    assert (result.stdout, result.stderr) == ("", "")


def test_c_thread_may_release_memory_while_python_ends(run_python, probe):
    result = run_python("import memrt, probe; probe.churn(); a = memrt.zeros(10)\n")
    assert result.stderr == ""


def test_owner_released_after_python_ended_is_dropped(run_python, probe):
    result = run_python(
        "import ctypes, memrt, probe\n"
        "data = ctypes.create_string_buffer(64)\n"
        "mi = memrt.wrap(ctypes.addressof(data), 64, lambda a, n: print('never'), data)\n"
        "probe.release_after_python(mi); del mi, data\n"
    )
    assert (result.stdout, result.stderr) == ("", "")


def test_queued_destructor_runs_when_python_ends(run_python, probe):
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
        assert a.sum() == 10_000 and memrt.meminfo(a).nbytes == 80_000
        with memrt.Policy(name="child"): c = np.ones(5)
        inherited.clear(); del a, b, c, mi
        memrt.stats(); memrt.debug.live(); memrt.release_unused()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, (i, status)
stop.set(); thread.join()
assert inherited[0].sum() == 1000
inherited.clear()
print(memrt.stats().live)
"""


def test_fork_during_allocation_keeps_both_processes_working(run_python):
    result = run_python(FORK, flags=("-W", "ignore::DeprecationWarning"))
    assert result.stdout == "0\n"


def test_forked_child_can_exit_normally(run_python, probe):
    run_python(
        HEAD + "import os\n"
        f"kept = [{', '.join(MADE.values())}]\n"
        "pid = os.fork()\n"
        "if pid: assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
    )


KEEP = (
    HEAD
    + f"""
import host
from memrt import _memrt
made = {ALL_MADE}
for each in made:
    host.keep(probe.hold(each))
host.remember(_memrt.owners)
memrt.enable()
"""
)


@pytest.mark.parametrize("before", ["", "import tracemalloc; tracemalloc.start()"])
def test_memory_held_by_c_outlives_python_until_released(before, run_host, probe):
    (ended, released), _ = run_host(before + KEEP)
    assert ended["kept"] == ended["meminfos"] == len(MADE)
    assert ended["live"] == 1000 + 800 + 800 + 100
    assert ended["adopted"] == 64 + 800
    for figure in ("kept", "meminfos", "blocks", "live", "adopted"):
        assert released[figure] == 0


AGAIN = """
try:
    import memrt
except ImportError as error:
    print(error)
import host
print(*host.recall().values())
"""


def test_restarted_python_refuses_import_and_memory_is_freed(run_host, probe):
    (*_, released), (error, owners) = run_host(KEEP, AGAIN)
    assert "finalized" in error
    queued, run, dropped = map(int, owners.split())
    assert (queued, run, dropped) == (0, 0, 2)
    assert released["meminfos"] == 0


def test_python_restarted_many_times_imports_memrt_only_once(run_host, probe):
    again = [AGAIN] * 5
    shown, printed = run_host(KEEP, *again)
    errors = printed[::2]
    assert len(errors) == len(again)
    assert all("finalized" in error for error in errors)
    assert [step["meminfos"] for step in shown[1::2]] == [0] * (1 + len(again))


# Py_AtExit has 32 slots. getpid() takes the rest, as a C function that needs no Python.
NO_SLOT = """
import ctypes
while ctypes.pythonapi.Py_AtExit(ctypes.CDLL(None).getpid) == 0:
    pass
"""


def test_second_python_is_refused_without_slots_of_py_atexit(run_host, probe):
    (*_, released), (error, owners) = run_host(NO_SLOT + KEEP, AGAIN)
    assert "finalized" in error
    assert owners == "0 0 2"  # queued, run, dropped
    assert released["meminfos"] == 0


COUNTS = "import host; print(*host.recall().values())"
OWNERS = 8000
RELEASED_ALL_ALONG = f"""
import atexit, host
atexit.register(host.meet)   # comes after memrt's own function
import ctypes, sys, memrt, probe
from memrt import _memrt
atexit.register(host.meet)   # comes before it
class Late:
    def __del__(self, meet=host.meet): meet()
sys.late = Late()
host.remember(_memrt.owners)
data = ctypes.create_string_buffer(64)
class Owner: pass
for _ in range({OWNERS}):
    host.keep(probe.hold(memrt.wrap(ctypes.addressof(data), 64, host.dtor, (data, Owner()))))
host.begin()
"""


def test_owners_released_by_a_c_thread_are_all_run_or_dropped(run_host, probe):
    """The C thread also creates and releases more MemInfos throughout."""
    (ended, released, *_), (counts,) = run_host(RELEASED_ALL_ALONG, COUNTS)
    share = OWNERS // 4
    assert share <= ended["kept"] <= OWNERS
    assert (released["meminfos"], released["blocks"], released["adopted"]) == (0, 0, 0)
    _, run, dropped = map(int, counts.split())
    assert run == released["ran"] >= share // 2
    assert dropped >= share
    assert run + dropped == OWNERS


def test_headers_for_extensions_never_request_the_gil(probe):
    """A thread that requests the GIL while Python ends hangs."""
    command = ["nm", "-D", probe.__file__]
    needed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "PyCapsule_New" in needed
    assert "PyGILState_Ensure" not in needed


def test_only_allocators_in_python_request_the_gil():
    """memrt__interpreter_enter() requests the GIL, and refuses once shutdown begins."""
    comment = re.compile(r"//.*|/\*(?s:.*?)\*/")
    sources = {path.name: path for path in (ROOT / "bindings" / "src").rglob("*.c")}
    texts = {name: comment.sub("", path.read_text()) for name, path in sources.items()}
    callers = {
        function: sorted(name for name, text in texts.items() if f"{function}(" in text)
        for function in ("PyGILState_Ensure", "memrt__interpreter_enter")
    }
    assert callers == {
        "PyGILState_Ensure": ["interpreter.c"],
        "memrt__interpreter_enter": ["adaptor.c", "interpreter.c", "python_allocator.c"],
    }


def test_extension_never_calls_pygilstate_check():
    """PyGILState_Check returns 1 on every thread once a subinterpreter existed."""
    command = ["nm", "-D", _memrt.__file__]
    needed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "PyGILState_Check" not in needed


INTERPRETERS = """
try:
    import _interpreters as interpreters        # 3.13
except ImportError:
    import _xxsubinterpreters as interpreters
def run(i, code):
    trouble = interpreters.run_string(i, code)
    assert not trouble, trouble
"""

REFUSED = (
    INTERPRETERS
    + """
import sys, memrt
kept = memrt.zeros(10)
code = '''
try:
    import memrt._memrt
except ImportError as error:
    assert "interpreter" in str(error), error
else:
    raise SystemExit("imported")
'''
i = interpreters.create(**eval(sys.argv[1]))
run(i, code)
interpreters.destroy(i)
assert kept.sum() == 0 and memrt.alloc(10).nbytes == 10
print("refused")
"""
)

SHARED_CORE = (
    INTERPRETERS
    + """
import os, sys, threading, core, memrt
read, write = os.pipe()
mine = core.make(1000)
before = core.counters()
i = interpreters.create(**eval(sys.argv[1]))
code = f'''
import core, os
assert core.counters()[0] >= {before[0]}
core.release({mine})
made = core.make(300)
core.churn(20000)
os.write({write}, str(made).encode())
'''
inside = threading.Thread(target=run, args=(i, code))
inside.start()
core.churn(20000)
inside.join()
theirs = int(os.read(read, 100))
made, freed, live = (b - a for a, b in zip(before, core.counters()))
assert (made, freed, live) == (40001, 40001, 300 - 1000), (made, freed, live)
interpreters.destroy(i)
assert core.counters()[2] == memrt.stats().live == 300
core.release(theirs)
assert core.counters()[2] == memrt.stats().live == 0
print("one account")
"""
)


def interpreter_configs():
    if sys.version_info < (3, 12):
        return ["{}"]
    if sys.version_info < (3, 13):
        return ["{'isolated': True}", "{'isolated': False}"]
    return ["{'config': 'isolated'}", "{'config': 'legacy'}"]


@pytest.mark.parametrize("config", interpreter_configs())
def test_import_in_a_subinterpreter_raises_import_error(config, run_python):
    result = run_python(REFUSED, config, flags=("-W", "ignore::DeprecationWarning"))
    assert result.stdout == "refused\n"


@pytest.mark.parametrize("config", interpreter_configs())
def test_c_library_shares_counters_between_interpreters(config, run_python, core):
    result = run_python(SHARED_CORE, config, flags=("-W", "ignore::DeprecationWarning"))
    assert result.stdout == "one account\n"


WITHOUT_THE_GIL = (
    INTERPRETERS
    + """
import ctypes, importlib.machinery, importlib.util, sys, threading, tracemalloc, memrt, probe
from memrt import _memrt
file = _memrt.__file__
loader = importlib.machinery.ExtensionFileLoader("runtime._nrt_python", file)
spec = importlib.util.spec_from_file_location("runtime._nrt_python", file, loader=loader)
runtime = importlib.util.module_from_spec(spec)
loader.exec_module(runtime)
def compiled(name, kind, result, *arguments):
    return kind(result, *arguments)(runtime.c_helpers[name])
address, size = ctypes.c_void_p, ctypes.c_size_t
release = compiled("MemInfo_release", ctypes.CFUNCTYPE, None, address)
if eval(sys.argv[1]) is not None:
    i = interpreters.create(**eval(sys.argv[1]))
    run(i, "import sys")
    interpreters.destroy(i)
def live_of_policy(kind):  # CFUNCTYPE calls without the GIL, PYFUNCTYPE with it
    with memrt.Policy(name="in force") as policy, memrt.scope("around"):
        for name in ("MemInfo_alloc", "MemInfo_new_varsize"):
            release(compiled(name, kind, address, size)(100))
        mi = compiled("MemInfo_alloc", kind, address, size)(100)
        live = policy.stats().live
        release(mi)
    return live
def all_calls():
    assert live_of_policy(ctypes.CFUNCTYPE) == 0
    assert live_of_policy(ctypes.PYFUNCTYPE) == 100
    made = probe.make_resizable(3000)
    probe.resize(made, 5000, False)
    probe.resize(made, 7000, True)
    probe.release_without_gil(probe.hold(memrt.alloc(100)), False)
all_calls()
tracemalloc.start()
all_calls()
thread = threading.Thread(target=all_calls)
thread.start()
thread.join()
print("done")
"""
)


@pytest.mark.parametrize("config", ["None", *interpreter_configs()])
def test_calls_without_the_gil_work_after_a_subinterpreter(config, run_python, probe):
    result = run_python(WITHOUT_THE_GIL, config, flags=("-W", "ignore::DeprecationWarning"))
    assert result.stdout == "done\n"


SHORT_THREADS = """
import mmap, threading, memrt, numpy as np
memrt.enable()
def body():
    memrt.alloc(1000); np.ones(100)
def run(count):
    for _ in range(count):
        thread = threading.Thread(target=body)
        thread.start(); thread.join()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE, memrt.stats()
resident, before = run(500)
resident_after, after = run(10_000)
assert after.alloc - before.alloc >= 20_000
assert after.live == before.live
assert after.cached < before.cached + 2**20
print(resident_after - resident)
"""


def test_ten_thousand_short_threads_leave_resident_memory_flat(libc_malloc, run_python):
    grown = int(run_python(SHORT_THREADS).stdout)
    assert grown < 2**20  # 2**20 / 10,000: a leak of 105 bytes per thread fails
