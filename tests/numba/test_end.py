"""The end of a program whose memory compiled code still holds, on memrt."""

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

# Called after Numba told its runtime to shut down: what was registered first is called last.
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
    ids=["what is kept", "a call during shutdown", "a thread that goes on"],
)
def test_the_end_of_the_program_is_quiet(run_python, ending, said, check):
    result = run_python(FIRST + HELD + ending, env={"MEMRT_CHECK": check})
    assert (result.stdout, result.stderr) == (said, "")


def test_a_forked_child_uses_and_frees_what_compiled_code_made(run_python):
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
