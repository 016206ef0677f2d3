"""memrt and Numba report equal figures for the memory of compiled code, in every query."""

from __future__ import annotations

import ctypes
import gc
import threading

import memrt
import memrt.numba
import numba
import numpy as np
import pytest
from jitted import ones, ones_without_gil
from numba import njit, prange, types
from numba.core.runtime import _nrt_python as nrt
from numba.core.runtime import rtsys
from numba.typed import Dict, List


@njit
def text(s, n):
    return s * n


@njit
def fill_dict(n):
    d = Dict.empty(types.int64, types.float64[:])
    for i in range(n):
        d[i] = np.full(3, float(i))
    return d


@njit
def fill_counts(n):
    table, numbers = Dict.empty(types.int64, types.int64), List()
    for i in range(n):
        table[i] = i
        numbers.append(i)
    return table, numbers


@njit
def shared_array(n):
    array = np.ones(n)
    kept = List()
    kept.append(array)
    kept.append(array)
    return array, kept


@njit
def churn(n, size):
    total = 0.0
    for _ in range(n):
        total += np.ones(size)[size - 1]
    return total


@pytest.fixture
def numba_stats():
    """Switch Numba's counters on and return the function that reads them."""
    nrt.memsys_enable_stats()
    return rtsys.get_allocation_stats


# --- Counting ---


def test_jitted_array_counts_once_in_memrt_and_numba(numba_stats):
    ones(1)
    before, before_numba = memrt.stats(), numba_stats()
    array = ones(1000)
    now, now_numba = memrt.stats(), numba_stats()
    assert now.alloc - before.alloc == now_numba.alloc - before_numba.alloc == 1
    assert now.mi_alloc - before.mi_alloc == now_numba.mi_alloc - before_numba.mi_alloc == 1
    assert now.live - before.live == 8000
    assert array.base.refcount == 1
    del array
    assert memrt.stats().live == before.live
    assert numba_stats().mi_free - before_numba.mi_free == 1


def test_tables_of_typed_dicts_and_lists_are_not_counted(numba_stats):
    """Numba's C code allocates the tables from malloc, also on Numba's own runtime."""
    fill_counts(1)
    before, before_numba = memrt.stats(), numba_stats()
    made = fill_counts(10_000)
    now, now_numba = memrt.stats(), numba_stats()
    assert now.alloc - before.alloc == now_numba.alloc - before_numba.alloc == 2
    assert now.live - before.live < 100
    assert (len(made[0]), len(made[1])) == (10_000, 10_000)


class Mallinfo(ctypes.Structure):
    """mallinfo2 of the C library."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in
                     "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks "
                     "keepcost".split())  # fmt: skip


def malloced() -> int:
    """Return the bytes that the C library's malloc has handed out."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Mallinfo
    info = mallinfo()
    return info.uordblks + info.hblkhd


NOISE = 16384  # bytes of headers, pages and objects of Python


@njit
def list_of(n):
    numbers = List.empty_list(types.int64)
    for i in range(n):
        numbers.append(i)
    return numbers


@njit
def dict_of(n):
    table = Dict.empty(types.int64, types.float64)
    for i in range(n):
        table[i] = float(i)
    return table


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
@pytest.mark.parametrize(("make", "entry"), [(list_of, 8), (dict_of, 24)])
def test_table_bytes_are_the_bytes_of_malloc(make, entry):
    memrt.numba.table_nbytes(make(1))
    malloced()
    for size in (1_000, 100_000):
        before, counted = malloced(), memrt.stats().live
        made = make(size)
        found, given = memrt.numba.table_nbytes(made), malloced() - before
        assert memrt.stats().live - counted == 8, "the pointer to the table"
        assert size * entry <= found
        assert abs(given - found) < NOISE, (given, found)
        del made
        assert malloced() - before < NOISE


def test_table_bytes_of_small_and_other_containers():
    assert memrt.numba.table_nbytes(List()) == 0
    assert memrt.numba.table_nbytes(Dict.empty(types.int64, types.float64[:])) > 0
    if hasattr(numba.typed, "typedset"):
        names = numba.typed.Set.empty(types.int64)
        small = memrt.numba.table_nbytes(names)
        for i in range(1000):
            names.add(i)
        assert memrt.numba.table_nbytes(names) > small + 8000
    for other in ([], {}, np.ones(3), None):
        with pytest.raises(TypeError, match=r"container must be a numba\.typed"):
            memrt.numba.table_nbytes(other)


def test_numba_counters_include_numpy_arrays_of_a_policy(numba_stats):
    before = numba_stats()
    array = np.empty(100)
    assert numba_stats() == before
    with memrt.Policy(name="both"):
        array = np.empty(100)
    assert numba_stats().alloc == before.alloc + 1
    del array
    assert numba_stats().free == before.free + 1


def test_memory_that_memrt_itself_needs_is_not_counted(numba_stats):
    array = ones(10)
    before = numba_stats()
    with memrt.debug.tracking(), memrt.Policy(name="unused"):
        found = memrt.meminfo(array)
        found.name = "named"
        held = [
            memrt.debug.live(),
            memrt.stats(),
            memrt.debug.policies(),
            repr(found),
            repr(array.base),
        ]
        assert numba_stats() == before
    del held, found
    assert numba_stats() == before


def test_meminfo_is_found_for_a_jitted_array_and_its_views():
    array = ones(1000)
    found = memrt.meminfo(array)
    assert (found.address, found.nbytes) == (array.ctypes.data, 8000)
    assert memrt.meminfo(array[3:].reshape(-1, 1)) == found
    assert found.refcount == array.base.refcount == 2
    del array
    assert found.refcount == 1


def test_jitted_arrays_and_views_are_managed():
    assert memrt.is_managed(ones(3))
    assert memrt.is_managed(ones(3)[1:])


def test_live_lists_the_memory_of_jitted_functions():
    with memrt.debug.tracking():
        held = [ones(1000), text("abc", 1000), fill_dict(2)]
        rows = memrt.debug.live()
        array = next(row for row in rows if row.address == held[0].ctypes.data)
    assert (array.nbytes, array.refcount, array.policy) == (8000, 1, "default")
    assert sum(row.nbytes == 24 for row in rows) == 2, "the arrays in the dict"
    del held
    gc.collect()
    assert memrt.debug.live() == []


def test_name_of_a_jitted_array_is_listed():
    array = ones(100)
    memrt.meminfo(array).name = "weights"
    assert [row.name for row in memrt.debug.live()] == ["weights"]
    del array
    assert memrt.debug.live() == []


def test_live_lists_the_refcount_of_jitted_code():
    with memrt.debug.tracking():
        array, kept = shared_array(10)
        row = next(row for row in memrt.debug.live() if row.address == array.ctypes.data)
    assert row.refcount == array.base.refcount == 3
    kept.clear()
    assert array.base.refcount == 1


def test_peak_and_total_include_jitted_memory():
    memrt.debug.reset_peak()
    before = memrt.stats()
    churn(10, 100_000)
    now = memrt.stats()
    assert now.total - before.total == 10 * 800_000
    assert 800_000 <= now.peak - before.live < 2 * 800_000


def test_freed_typed_dict_releases_its_arrays():
    before = memrt.stats()
    made = fill_dict(100)
    now = memrt.stats()
    assert now.mi_alloc - now.mi_free - (before.mi_alloc - before.mi_free) == 101
    del made
    gc.collect()
    now = memrt.stats()
    assert now.mi_alloc - now.mi_free == before.mi_alloc - before.mi_free


def test_live_lists_a_jitted_array_that_sys_keeps(run_python):
    code = """
import memrt.numba; memrt.numba.install()
import numba, numpy
memrt.debug.tracking().__enter__()
import sys
sys.kept = numba.njit(lambda n: numpy.ones(n))(1000)
assert [row.nbytes for row in memrt.debug.live()] == [8000]
"""
    run_python(code)


# --- Policies ---


def test_policy_around_a_jitted_call_takes_its_allocations():
    policy = memrt.Policy(alignment=4096, name="jitted")
    with policy:
        array = ones(1000)
        string = text("ab", 600)
        table = fill_dict(3)
    assert array.ctypes.data % 4096 == 0
    assert memrt.meminfo(array).policy == "jitted"
    assert policy.stats().live >= 8000 + 3 * 24
    del array, string, table
    gc.collect()
    assert policy.stats().live == 0


def test_default_policy_returns_after_a_policy_block():
    with memrt.Policy(name="short"):
        ones(3)
    assert memrt.meminfo(ones(3)).policy == "default"


def test_enabled_policy_takes_jitted_allocations():
    policy = memrt.Policy(alignment=4096, name="everything")
    memrt.enable(policy)
    try:
        array = ones(10)
    finally:
        memrt.disable()
    assert memrt.meminfo(array).policy == "everything"


def test_policy_is_found_after_disable_in_a_copied_context(run_python):
    code = """
import memrt.numba; memrt.numba.install()
import contextvars, memrt, numba, numpy
ones = numba.njit(lambda n: numpy.ones(n))
ones(1)
memrt.enable(memrt.Policy(name="enabled"))
contextvars.copy_context().run(memrt.disable)
memrt.disable()
with memrt.Policy(name="inside"):
    print(memrt.meminfo(ones(10)).policy)
print(memrt.meminfo(ones(10)).policy)
"""
    assert run_python(code).stdout.split() == ["inside", "default"]


def test_policy_applies_only_to_its_own_thread():
    ones(1)
    found = {}
    entered, looked = threading.Event(), threading.Event()

    def other():
        entered.wait(60)
        found["policy"] = memrt.meminfo(ones(3)).policy
        looked.set()

    thread = threading.Thread(target=other)
    thread.start()
    with memrt.Policy(name="mine"):
        entered.set()
        assert looked.wait(60)
        mine = memrt.meminfo(ones(3)).policy
    thread.join()
    assert (mine, found["policy"]) == ("mine", "default")


def test_jitted_array_outlives_its_policy():
    policy = memrt.Policy(name="gone")
    with policy:
        array = ones(1000)
    del policy
    gc.collect()
    assert array.sum() == 1000


# --- tracemalloc ---

TRACED = """
import memrt.numba; memrt.numba.install()
import tracemalloc
import numba, numpy as np

@numba.njit
def alloc_nrt_memory(n):
    return np.empty(n, np.uint8)

alloc_nrt_memory(1)
tracemalloc.start()
tracemalloc.clear_traces()
data = alloc_nrt_memory(1_000_000)  # the line
snapshot = tracemalloc.take_snapshot()
rows = [row for row in snapshot.statistics("lineno") if row.size >= 500_000]
assert len(rows) == 1, rows
frame = rows[0].traceback[0]
assert open(__file__).read().splitlines()[frame.lineno - 1].endswith("# the line"), frame
assert 1_000_000 <= rows[0].size < 1_015_000, rows
del data
left = tracemalloc.take_snapshot().statistics("lineno")
assert sum(row.size for row in left) < 500_000, left
tracemalloc.stop()
alloc_nrt_memory(1_000_000)
print("shown once")
"""


def test_tracemalloc_shows_a_jitted_array_once_at_its_line(run_python):
    assert run_python(TRACED).stdout == "shown once\n"


LISTED = """
import memrt.numba; memrt.numba.install()
import tracemalloc, memrt
from numba import njit

@njit
def length(n):
    return len([i for i in range(n)])

length(1)
tracemalloc.start()
assert length(100_000) == 100_000
assert 800_000 <= tracemalloc.get_traced_memory()[1] < 2_000_000
assert tracemalloc.get_traced_memory()[0] < 10_000
"""


def test_tracemalloc_counts_lists_inside_jitted_code(run_python):
    run_python(LISTED)


WITHOUT_THE_GIL = """
import memrt.numba; memrt.numba.install()
import tracemalloc, threading
import memrt, numpy as np
from numba import njit, prange

SIZE = 1_000_000

@njit(nogil=True)
def make(n):
    return np.ones(n, np.uint8)

@njit(parallel=True)
def fill(n):
    total = 0.0
    for i in prange(64):
        total += np.ones(n + i, np.uint8)[0]
    return total

def traced():
    return [(t.domain, t.size) for t in tracemalloc.take_snapshot().traces if t.size >= SIZE]

make(1), fill(1)
tracemalloc.start()
kept = make(SIZE)
assert traced() == [(memrt.debug.tracemalloc_domain, SIZE)], traced()
again = make(2 * SIZE).reshape(2, -1)
assert sorted(traced()) == [(memrt.debug.tracemalloc_domain, n * SIZE) for n in (1, 2)], traced()
del kept, again
assert traced() == []
threads = [threading.Thread(target=fill, args=(1000,)) for _ in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
assert fill(SIZE) == 64  # whose threads must not wait for the GIL of this one
assert traced() == []
print("shown once it reached Python")
"""


def test_tracemalloc_shows_nogil_arrays_once_in_python(run_python):
    assert run_python(WITHOUT_THE_GIL).stdout == "shown once it reached Python\n"


RESTARTED = """
import memrt.numba; memrt.numba.install()
import _tracemalloc, threading, tracemalloc
import memrt, numpy as np
from numba import njit

SIZE = 1_000_000

@njit
def make(n):
    return np.empty(n, np.uint8)

@njit(nogil=True)
def churn(n):
    total = 0
    for i in range(n):
        total += np.empty(i % 64 + 1).size
    return total

def traced():
    return [t.size for t in tracemalloc.take_snapshot().traces
            if t.domain == memrt.debug.tracemalloc_domain]

churn(1)
untraced = make(SIZE)
for start in (tracemalloc.start, _tracemalloc.start, tracemalloc.start):
    start()
    kept = make(SIZE)
    assert traced() == [SIZE], traced()
    tracemalloc.stop()
    make(SIZE)
    tracemalloc.start()
    assert traced() == [], traced()
    tracemalloc.stop()
thread = threading.Thread(target=churn, args=(3_000_000,))
thread.start()
started = 0
while thread.is_alive() or started < 10:
    tracemalloc.start()
    kept = make(SIZE)
    assert traced() == [SIZE], traced()
    started += 1
    tracemalloc.stop()
print("traced while on")
"""


@pytest.mark.parametrize("env", [{}, {"PYTHONTRACEMALLOC": "1"}])
def test_restarted_tracemalloc_shows_new_jitted_arrays(run_python, env):
    code = RESTARTED.replace("import memrt", "__import__('tracemalloc').stop()\nimport memrt", 1)
    assert run_python(code if env else RESTARTED, env=env).stdout == "traced while on\n"


def test_tracemalloc_option_shows_jitted_arrays(run_python):
    code = """
import memrt.numba; memrt.numba.install()
import tracemalloc, memrt, numba, numpy as np
kept = numba.njit(lambda n: np.empty(n, np.uint8))(1_000_000)
domain = memrt.debug.tracemalloc_domain
print([t.size for t in tracemalloc.take_snapshot().traces if t.domain == domain])
"""
    assert run_python(code, flags=("-X", "tracemalloc")).stdout == "[1000000]\n"


# --- Checking mode ---

CHECKED = """
import memrt.numba; memrt.numba.install()
import gc
import numpy as np
from numba import njit, types
from numba.typed import Dict, List

@njit
def work(n):
    kept = List()
    table = Dict.empty(types.int64, types.float64[:])
    for i in range(n):
        array = np.full(i + 1, float(i))
        kept.append(array)
        table[i % 7] = array[: i // 2]
    text = ""
    for i in range(n):
        text = text + str(i)
    plain = [np.ones(i) for i in range(n)]
    return kept, table, text, plain[-1]

with memrt.debug.tracking():
    made = work(50)
    assert len(made[0]) == 50 and made[1][3].sum() >= 0
    assert len(memrt.debug.live()) >= 50
before = memrt.stats()
del made
gc.collect()
after = memrt.stats()
assert after.alloc == after.free and after.mi_alloc == after.mi_free, after
assert memrt.debug.live() == []
assert memrt._memrt.features()["checking"] is True
print("checked")
"""


def test_checking_mode_accepts_refcounts_of_jitted_code(run_python):
    result = run_python(CHECKED, env={"MEMRT_CHECK": "1"})
    assert (result.stdout, result.stderr) == ("checked\n", "")


def test_checking_mode_detects_a_double_release(run_python):
    code = """
import memrt.numba; memrt.numba.install()
import numpy as np
from numba import njit
array = njit(lambda n: np.ones(n))(3)
array.base.release()
array.base.release()
"""
    result = run_python(code, env={"MEMRT_CHECK": "1"}, check=False)
    assert result.returncode < 0
    assert "memrt" in result.stderr


# --- Threads ---


@njit(parallel=True)
def parallel_temporaries(n):
    total = 0.0
    for i in prange(n):
        total += np.ones(i % 100 + 1).sum()
    return total


def test_parallel_loops_keep_the_counters_balanced():
    parallel_temporaries(4)
    before = memrt.stats()
    assert parallel_temporaries(1000) == sum(i % 100 + 1 for i in range(1000))
    now = memrt.stats()
    assert now.alloc - before.alloc == now.free - before.free >= 1000


def test_threads_without_the_gil_keep_the_counters_balanced():
    ones_without_gil(1)
    before = memrt.stats()
    start = threading.Barrier(4)

    def work():
        start.wait()
        for _ in range(500):
            ones_without_gil(50)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = memrt.stats()
    assert now.alloc - before.alloc == now.free - before.free == 2000
    assert now.live == before.live


@njit(parallel=True)
def sum_in_parallel(values):
    total = 0.0
    for i in prange(values.size):
        total += values[i]
    return total


def test_account_explains_a_process_with_compiled_code():
    assert sum_in_parallel(np.ones(1_000_000)) == 1_000_000
    kept = ones(4_000_000)
    memory = memrt.debug.process_memory()
    assert memory.rest.resident <= memory.resident / 20, memory
    assert memory.arrays.resident >= kept.nbytes
    assert memory.code.resident >= 32 << 20  # LLVM
