"""Callbacks for memory pressure, and the reading of memory pressure."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time

import memrt
import numpy as np
import pytest
from atonce import on_threads
from memory_group import limited_group
from waiting import wait_for

MIB = 1 << 20


@pytest.fixture
def limited():
    """Limit the process to 100 MiB more than are live."""
    gc.collect()
    memrt.limit(memrt.stats().live + 100 * MIB)
    yield
    memrt.limit(None)


def fill(percent):
    return memrt.alloc(percent * MIB)


def test_callback_gets_level_on_main_thread_within_a_second(limited):
    seen = []
    with memrt.on_pressure(lambda level: seen.append((level, threading.current_thread()))):
        kept = fill(92)
        begin = time.monotonic()
        wait_for(lambda: seen)
        assert time.monotonic() - begin < 1
        more = fill(4)
        wait_for(lambda: len(seen) == 2)
    assert seen == [("medium", threading.main_thread()), ("critical", threading.main_thread())]
    del kept, more


def test_level_falls_with_free_and_rises_again(limited):
    seen = []
    with memrt.on_pressure(seen.append, "low"):
        for _ in range(3):
            seen.clear()
            kept = fill(82)
            wait_for(lambda: seen)
            assert seen[0] in ("low", "medium")  # "medium" while the system stalls to get memory
            del kept
            wait_for(lambda: memrt.debug.pressure().level == "none")
            time.sleep(0.2)  # the thread sees the fall


def test_callback_saves_the_program_that_frees_memory(limited):
    cache = [memrt.alloc(MIB) for _ in range(60)]

    @memrt.on_pressure
    def drop_cache(level):
        cache.clear()

    kept = []
    with drop_cache:
        for _ in range(90):
            kept.append(memrt.alloc(MIB))
            time.sleep(0.02)
    assert not cache


def test_decorator_takes_level_and_keeps_function_callable():
    @memrt.on_pressure(level="critical")
    def react(level):
        return level.upper()

    assert react("low") == "LOW"
    assert react.level == "critical"
    assert react.is_open
    assert "open" in repr(react)
    react.close()
    react.close()
    assert not react.is_open
    assert "closed" in repr(react)


def test_exception_of_callback_goes_to_unraisablehook(limited, monkeypatch):
    errors = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)

    def fail(level):
        raise ValueError(level)

    with memrt.on_pressure(fail):
        kept = fill(92)
        wait_for(lambda: errors)
    assert str(errors[0].exc_value) == "medium"
    assert errors[0].object.callback is fail
    del kept


def test_callback_may_close_itself_and_allocate(limited):
    seen = []

    def close(level):
        registration.close()
        seen.append(np.ones(1000))

    kept = fill(80)
    registration = memrt.on_pressure(close)
    more = fill(12)
    wait_for(lambda: seen)
    assert not registration.is_open
    del kept, more


def test_closed_callback_is_not_called(limited):
    seen = []
    registration = memrt.on_pressure(seen.append, "low")
    registration.close()
    kept = fill(96)
    time.sleep(0.7)
    assert not seen
    del kept


def test_rises_while_compiled_code_runs_become_one_call(limited):
    seen = []
    with memrt.on_pressure(seen.append, "low"):
        data = np.random.default_rng(1).random(100_000)
        kept = [fill(82)]
        thread = threading.Thread(target=lambda: (time.sleep(0.3), kept.append(fill(14))))
        thread.start()
        end = time.monotonic() + 1
        while time.monotonic() < end:
            np.sort(data)
        thread.join()
        wait_for(lambda: "critical" in seen)
        assert len(seen) <= 2
        kept.clear()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match='level must be "low", "medium" or "critical", got 5'):
        memrt.on_pressure(print, 5)
    with pytest.raises(TypeError, match="callback must be callable, got 3"):
        memrt.on_pressure(3)


def test_33rd_callback_is_refused_and_closed_place_is_reused():
    registrations = [memrt.on_pressure(print, "critical") for _ in range(32)]
    with pytest.raises(RuntimeError, match="at most 32 callbacks"):
        memrt.on_pressure(print)
    registrations.pop().close()
    registrations.append(memrt.on_pressure(print, "critical"))
    for registration in registrations:
        registration.close()


def test_pressure_is_of_the_nearest_limit(limited):
    kept = fill(92)
    pressure = memrt.debug.pressure()
    assert pressure.of == "of the process"
    assert pressure.level == "medium"
    assert pressure.used + pressure.headroom == pressure.limit
    del kept


def test_threads_register_and_close_at_once():
    def use(_number):
        for _ in range(50):
            memrt.on_pressure(print, "critical").close()

    on_threads(use, 4)
    kind = memrt.types.PressureCallback
    assert not [each for each in gc.get_objects() if isinstance(each, kind) and each.is_open]


EXIT = """
import memrt
registration = memrt.on_pressure(print, "low")
memrt.limit(memrt.stats().live + (100 << 20))
kept = memrt.alloc(96 << 20)
{end}
"""


@pytest.mark.parametrize("end", ["", "import time; time.sleep(0.6)", "import os; os._exit(0)"])
def test_program_with_a_callback_exits_cleanly(end):
    command = [sys.executable, "-X", "dev", "-c", EXIT.format(end=end)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0
    assert result.stderr == ""


REFUSED = """
import resource
import memrt
register, kept = memrt.on_pressure, memrt.debug.pressure()
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (3 << 20)  # less than the stack of a thread
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    register(print)
except MemoryError:
    print("refused")
"""


def test_refused_thread_raises_memory_error(libc_malloc):
    command = [sys.executable, "-c", REFUSED]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.stdout == "refused\n", result.stderr


FORK = """
import os, sys, time, warnings
import memrt
warnings.simplefilter("error")
seen = []
registration = memrt.on_pressure(seen.append)
time.sleep(0.1)
child = os.fork()
memrt.limit(memrt.stats().live + (100 << 20))
kept = memrt.alloc(92 << 20)
while not seen:
    time.sleep(0.01)
if child == 0:
    os._exit(7)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7
"""


def test_callbacks_continue_after_fork_without_warning():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", FORK]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    assert result.returncode == 0, result.stderr


GROUP = """
import pathlib, sys, time
pathlib.Path(sys.argv[1], "cgroup.procs").write_text("0")
import memrt, numpy as np
memrt.enable()
seen = []
with memrt.on_pressure(seen.append):
    begin = time.monotonic()
    kept = []
    while not seen:
        kept.append(np.ones(1 << 17))
        time.sleep(0.005)
print(seen[0], memrt.debug.pressure().of)
"""


def test_callback_runs_before_a_real_group_is_full():
    with limited_group(400 * MIB) as group:
        command = [sys.executable, "-c", GROUP, str(group)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "medium for the control group\n"


RESIZE = """
import pathlib, sys, time
pathlib.Path(sys.argv[1], "cgroup.procs").write_text("0")
import memrt
print(memrt.limit("50%"))
pathlib.Path(sys.argv[1], "memory.limit_in_bytes").write_text(str(600 << 20))
begin = time.monotonic()
while memrt.debug.limits()[0].limit != (600 << 20) // 100 * 50:
    time.sleep(0.01)
assert time.monotonic() - begin < 1.5
"""


def test_percentage_follows_a_real_group_that_is_resized():
    with limited_group(400 * MIB) as group:
        command = [sys.executable, "-c", RESIZE, str(group)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{400 * MIB // 100 * 50}\n"
