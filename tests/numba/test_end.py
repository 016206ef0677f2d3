"""Test process exit and fork on memrt while compiled code still holds memory."""

from __future__ import annotations

import pytest

HELD = """
import memrt.numba; memrt.numba.install()
import sys
import numpy as np
from numba import njit, types
from numba.experimental import jitclass
from numba.typed import Dict, List

@jitclass([("items", types.float64[:])])
class Holder:
    def __init__(self, n):
        self.items = np.ones(n)

@njit
def table(n):
    made = Dict.empty(types.int64, types.float64[:])
    for i in range(n):
        made[i] = np.ones(i)
    return made

@njit
def produce(n):
    kept = np.ones(n)
    for i in range(n):
        yield kept * i

@njit
def nested(array):
    outer = List()
    inner = List()
    inner.append(array)
    outer.append(inner)
    return outer
"""

KEPT = """
holder, kept, started = Holder(5), table(4), produce(4)
first = next(started)
lists = nested(holder.items)
taken = nested(np.arange(1000.0))
sys.kept = holder, kept, started, lists, taken
"""

# Called after Numba has shut its runtime down, because atexit calls the first function last.
FIRST = """
import atexit
late, down = [], []
atexit.register(lambda: print(*down, *(call() for call in late)))
"""

LATE = """
from numba.core.runtime import _nrt_python as nrt
shut_down = nrt.memsys_shutdown
nrt.memsys_shutdown = lambda: (down.append("down"), shut_down())
table(1)
late.append(lambda: table(3)[2].sum())
"""

THREAD = """
import threading, time

@njit(nogil=True)
def churn(n):
    total = 0.0
    for i in range(n):
        total += np.ones(10).sum()
    return total

churn(1)
before = memrt.stats().alloc
threading.Thread(target=churn, args=(10**12,), daemon=True).start()
while memrt.stats().alloc < before + 1000:
    time.sleep(0.001)
"""


@pytest.mark.parametrize("check", ["0", "1"])
@pytest.mark.parametrize(
    ("ending", "said"),
    [(KEPT, "\n"), (LATE, "down 2.0\n"), (THREAD, "\n")],
    ids=["kept memory", "a call during shutdown", "a running thread"],
)
def test_program_exit_with_jitted_memory_prints_no_error(run_python, ending, said, check):
    result = run_python(FIRST + HELD + ending, env={"MEMRT_CHECK": check})
    assert (result.stdout, result.stderr) == (said, "")


def test_forked_child_uses_and_frees_jitted_memory(run_python):
    code = (
        HELD
        + """
import os
array = nested(np.ones(1000))[0][0] + 1
table(2)
child = os.fork()
if child == 0:
    assert array.sum() == 2000 and table(3)[2].sum() == 2
    del array
    stats = memrt.stats()
    os._exit(0 if stats.alloc == stats.free else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert array.sum() == 2000
"""
    )
    run_python(code)
