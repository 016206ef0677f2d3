"""Language features of compiled code on memrt: correct results, and no leaks."""

from __future__ import annotations

import contextlib
import gc
import threading

import memrt
import numpy as np
import pytest
from numba import cfunc, guvectorize, njit, objmode, prange, types, vectorize
from numba.experimental import jitclass
from numba.typed import Dict, List


@njit
def divide(n, by):
    kept = np.ones(n)
    if by == 0:
        raise ValueError("cannot divide", n)
    return kept / by


@njit
def raises_a_value(n):
    raise ValueError(str(n) + " is too many")


@njit
def adds_to_quotient(n, by):
    kept = np.ones(n)
    return kept + divide(n, by)


@njit
def catches(n):
    array = np.ones(n)
    try:
        if n > 2:
            raise ValueError("large")
    except Exception:
        array = np.zeros(n)
    return array


@njit
def sum_in_python(array):
    doubled = array * 2
    with objmode(total="float64"):
        total = float(np.sum(doubled))
    return total  # noqa: RET504 - object mode needs a named result


@njit
def array_from_python(n):
    with objmode(made="float64[:]"):
        made = np.arange(float(n))
    return made + 1


@njit
def halves(array):
    if array.size <= 1:
        return array.sum()
    middle = array.size // 2
    return halves(array[:middle].copy()) + halves(array[middle:].copy())


@njit
def is_even(array):
    if array.size == 0:
        return True
    return is_odd(array[1:].copy())


@njit
def is_odd(array):
    if array.size == 0:
        return False
    return is_even(array[1:].copy())


@njit
def produce(n):
    kept = np.ones(n)
    for i in range(n):
        yield kept * i


@njit
def sum_of_produced(n):
    total = 0.0
    for part in produce(n):
        total += part.sum()
    return total


@jitclass([("items", types.float64[:]), ("name", types.unicode_type)])
class Holder:
    def __init__(self, n):
        self.items = np.ones(n)
        self.name = "holder" + str(n)

    def replace(self, n):
        self.items = np.full(n, 2.0)
        return self.items.sum()


@njit
def keep_in_holders(n):
    holders = [Holder(i + 1) for i in range(n)]
    return holders[-1]


@njit
def closure(n):
    base = np.ones(n)

    def add(x):
        return base + x

    return add(1) + add(2)


@njit
def words(n):
    counts = Dict.empty(types.unicode_type, types.int64)
    for i in range(n):
        word = "word" + str(i % 10)
        counts[word] = counts.get(word, 0) + 1
    return counts


@njit
def nested(n):
    outer = List()
    for i in range(n):
        inner = List()
        for j in range(i + 1):
            inner.append(np.full(2, float(j)))
        outer.append(inner)
    return outer


@njit(parallel=True)
def parallel_sum(n):
    out = np.empty(n)
    for i in prange(n):
        out[i] = np.arange(i + 1).sum()
    return out


@cfunc("float64(int64)")
def called_from_c(n):
    return np.ones(n).sum()


@vectorize(["float64(float64)"])
def half(x):
    return x / 2


@guvectorize(["void(float64[:], float64[:])"], "(n)->(n)")
def running(values, out):
    temporary = np.cumsum(values)
    for i in range(values.size):
        out[i] = temporary[i]


def test_exception_with_arguments_reaches_python():
    with pytest.raises(ValueError, match="cannot divide") as caught:
        divide(10, 0)
    assert caught.value.args == ("cannot divide", 10)
    assert divide(10, 2).sum() == 5


def lost(call, *errors) -> int:
    """Return the number of MemInfos that a call leaves live. Ignore the given errors."""
    before = memrt.stats()
    with contextlib.suppress(*errors):
        call()
    gc.collect()
    now = memrt.stats()
    return now.mi_alloc - now.mi_free - (before.mi_alloc - before.mi_free)


@pytest.mark.numba_leaks
def test_caller_of_a_raising_function_leaks_as_in_numba():
    """Numba does not release the variables of a function left by an exception of a callee."""
    assert lost(lambda: adds_to_quotient(3, 1)) == 0
    assert lost(lambda: adds_to_quotient(3, 0), ValueError) == 1


@pytest.mark.numba_leaks
def test_exception_with_run_time_values_leaks_as_in_numba():
    raising = lambda: raises_a_value(3)  # noqa: E731
    with pytest.raises(ValueError, match="3 is too many"):
        raising()
    assert lost(raising, ValueError) == 1


@pytest.mark.numba_leaks
def test_generator_leaks_its_variables_as_in_numba():
    """A generator used by compiled code, or abandoned early, does not release its variables."""
    assert lost(lambda: sum_of_produced(5)) == 5
    assert lost(lambda: next(produce(4)).sum()) == 1


def test_exception_caught_in_jitted_code_leaks_nothing():
    assert catches(2).sum() == 2
    assert catches(5).sum() == 0


def test_exception_in_flight_survives_the_release_of_arrays():
    def raising():
        array = divide(10, 1)
        raise KeyError(array.size)

    with pytest.raises(KeyError) as caught:
        raising()
    assert caught.value.args == (10,)
    assert isinstance(caught.value.__traceback__.tb_next.tb_frame.f_locals["array"], np.ndarray)
    caught = None


def test_object_mode_reads_and_returns_arrays():
    assert sum_in_python(np.arange(4.0)) == 12
    assert array_from_python(3).tolist() == [1, 2, 3]


def test_direct_and_mutual_recursion_work_on_arrays():
    assert halves(np.arange(16.0)) == 120
    assert is_even(np.ones(8))
    assert not is_even(np.ones(7))


def test_exhausted_generator_leaks_nothing():
    assert [part.sum() for part in produce(3)] == [0, 3, 6]


def test_jitclasses_work_in_python_and_in_jitted_code():
    holder = Holder(5)
    items = holder.items
    assert holder.name == "holder5"
    assert holder.replace(3) == 6
    assert items.sum() == 5
    assert keep_in_holders(4).items.size == 4


def test_closure_over_an_array_works():
    assert closure(3).tolist() == [5, 5, 5]


def test_typed_dict_of_strings_works():
    counts = words(100)
    assert dict(counts) == {f"word{i}": 10 for i in range(10)}


def test_nested_typed_lists_of_arrays_work():
    made = nested(4)
    assert [len(inner) for inner in made] == [1, 2, 3, 4]
    kept = made[3]
    del made
    gc.collect()
    assert kept[2].tolist() == [2, 2]


def test_parallel_loop_gives_the_right_result():
    assert parallel_sum(50)[-1] == sum(range(50))


def test_cfunc_runs_on_a_thread_without_the_gil():
    """Call the function on a new thread without the GIL, like a C library; ctypes releases it."""
    results = []
    thread = threading.Thread(target=lambda: results.append(called_from_c.ctypes(10)))
    thread.start()
    thread.join()
    assert results == [10]


def test_ufuncs_and_generalized_ufuncs_work():
    assert half(np.arange(4.0)).tolist() == [0, 0.5, 1, 1.5]
    assert running(np.ones((3, 4)))[2].tolist() == [1, 2, 3, 4]


def test_jitted_array_can_be_released_on_another_thread():
    held = [divide(1000, 1)]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert held == []


# --- Numba's debugging variants ---

DEBUGGED = """
import memrt.numba; memrt.numba.install()
import numpy as np
from numba import njit, types
from numba.core import config
from numba.typed import Dict
assert config.DEBUG_NRT

@njit
def fresh(n):
    return np.empty(n, np.uint8)

@njit
def work(n):
    table = Dict.empty(types.int64, types.float64[:])
    plain = [np.ones(i) for i in range(n)]
    for i in range(n):
        table[i] = plain[i] * 2
    return table, str(n) * n

assert fresh(5).tolist() == [0xCB] * 5
table, text = work(5)
assert table[3].tolist() == [2, 2, 2] and text == "55555"
del table
stats = memrt.stats()
assert stats.alloc - stats.free == stats.mi_alloc - stats.mi_free == 0, stats
"""


@pytest.mark.slow
@pytest.mark.parametrize("frames", ["0", "3"])
def test_debug_option_of_numba_marks_fresh_memory(run_python, frames):
    """Newer versions of Numba can print the Python call stack at each change of a count."""
    environment = {"NUMBA_DEBUG_NRT": "1", "NUMBA_DEBUG_NRT_STACK_LIMIT": frames}
    result = run_python(DEBUGGED, env=environment, check=False)
    assert result.returncode == 0, result.stderr


# --- Compiled code on disk ---

CACHED = """
import sys
import memrt.numba
if sys.argv[1] == "memrt":
    memrt.numba.install()
import numpy as np
from numba import njit, types
from numba.typed import Dict
from cached_functions import work
print(work(5)[0].sum(), dict(work(5)[1]), work.stats.cache_hits[work.signatures[0]]
      if work.stats.cache_hits else 0)
from numba.core.runtime import _nrt_python as nrt
assert hasattr(nrt, "memrt_version") == (sys.argv[1] == "memrt")
"""

CACHED_FUNCTIONS = """
import numpy as np
from numba import njit, types
from numba.typed import Dict

@njit(cache=True)
def work(n):
    table = Dict.empty(types.int64, types.unicode_type)
    for i in range(n):
        table[i] = "item " + str(i)
    return np.ones(n).cumsum(), table
"""


@pytest.mark.slow
@pytest.mark.parametrize(("writer", "reader"), [("stock", "memrt"), ("memrt", "stock")])
def test_cached_code_runs_on_the_other_runtime(run_python, tmp_path, writer, reader):
    (tmp_path / "cached_functions.py").write_text(CACHED_FUNCTIONS)
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    expected = f"15.0 { ({i: f'item {i}' for i in range(5)}) } "
    assert run_python(CACHED, writer, env=environment).stdout == expected + "0\n"
    assert run_python(CACHED, reader, env=environment).stdout == expected + "1\n"
