"""Blocks of memrt.numba.scratch inside of jitted functions."""

import pickle
import threading

import memrt
import memrt.numba
import numba
import numpy as np
import pytest
from jitted import ones
from memrt.testing import fail_allocations
from numba import njit, objmode, prange
from numba.core import serialize
from numba.core.errors import CompilerError, NumbaWarning

SIZE = 100
temporary = memrt.numba.scratch("temporary")
promoting = memrt.numba.scratch("promoting", outliving="promote")


@njit
def total(array):
    return array.sum()


@njit
def total_of_few(array):
    if array.size > 10:
        raise ValueError("array is too long")
    return array.sum()


def allocated(arena, function, *arguments):
    """Return the result of a call after its compilation, and its allocations in an arena."""
    function(*arguments)
    before = arena.stats().alloc
    result = function(*arguments)
    return result, arena.stats().alloc - before


def problem(function, *arguments):
    """Return the line of the compiler's error with the reason."""
    with pytest.raises(CompilerError) as failure:
        function(*arguments)
    return str(failure.value).splitlines()[1]


@njit
def sum_in_block(count):
    result = 0.0
    with temporary:
        for i in range(count):
            result += total(np.ones(SIZE + i))
    return result


def test_arrays_of_a_block_come_from_the_arena():
    assert allocated(temporary, sum_in_block, 10) == (1045.0, 10)
    assert temporary.outlived == (0, 0)
    assert temporary.stats().live == 0


def test_arrays_around_a_block_come_from_the_policy_around():
    @njit
    def work(n):
        out = np.zeros(n)
        with memrt.numba.scratch("inside"):
            out[:] = np.ones(n) * 2
        return out, np.ones(n)

    with memrt.Policy(name="around"):
        out, after = work(SIZE)
    assert out.tolist() == [2] * SIZE
    assert {memrt.meminfo(out).policy, memrt.meminfo(after).policy} == {"around"}


def test_block_of_a_call_has_one_arena_for_all_types():
    @njit
    def work(array):
        with memrt.numba.scratch("by line", chunk="64 KiB"):
            return total(array + 1)

    before = memrt.debug.policies()
    assert work(np.ones(3)) == work(np.ones(3, "i4")) == 6
    made = [policy for policy in memrt.debug.policies() if policy not in before]
    assert [policy.name for policy in made] == ["by line"]
    assert made[0].stats().alloc == 2


@njit
def return_array(n):
    with temporary:
        return np.ones(n)


def test_array_that_outlives_a_block_raises_and_is_freed():
    with pytest.raises(RuntimeError, match="arrays of arena 'temporary' must be freed before"):
        return_array(SIZE)
    assert temporary.outlived == (1, SIZE * 8)
    assert temporary.stats().live == 0
    assert sum_in_block(3) > 0
    assert temporary.outlived == (0, 0)


def test_array_that_outlives_a_promoting_block_is_counted():
    @njit
    def work(n):
        with promoting:
            kept = np.ones(n)
            total(np.ones(n))
        return kept

    kept = work(SIZE)
    assert promoting.outlived == (1, SIZE * 8)
    assert memrt.meminfo(kept).policy == "promoting"
    again = work(SIZE)
    assert promoting.outlived == (2, 2 * SIZE * 8)
    del kept, again


@pytest.mark.numba_leaks
def test_array_in_a_list_from_before_the_block_is_found():
    @njit
    def work(n):
        found = [np.zeros(1)]
        with memrt.numba.scratch():
            found.append(np.ones(n))
        return len(found)

    with pytest.raises(RuntimeError, match="must be freed before the block ends"):
        work(SIZE)


@pytest.mark.numba_leaks
def test_exception_passes_and_ends_the_block():
    failing = memrt.numba.scratch("failing")

    @njit
    def work(n):
        with failing:
            return total_of_few(np.ones(n))

    assert work(2) == 2
    with pytest.raises(ValueError, match="array is too long"):
        work(SIZE)
    assert failing.outlived == (1, SIZE * 8)  # Numba does not release variables of the block
    assert memrt.meminfo(ones(3)).policy == "default"
    assert (work(2), failing.outlived) == (2, (1, SIZE * 8))  # judged once


@pytest.mark.numba_leaks
def test_exception_of_a_block_can_be_caught_around_the_function():
    @njit
    def work(n):
        with promoting:
            return total_of_few(np.ones(n))

    @njit
    def caught(n):
        try:
            return work(n)
        except Exception:
            return -1.0

    assert (caught(2), caught(SIZE)) == (2, -1)


def test_caught_error_of_an_outliving_array():
    @njit
    def caught(n):
        try:
            return return_array(n).sum()
        except Exception:
            return -1.0

    assert caught(SIZE) == -1
    assert temporary.stats().live == 0


def test_block_may_end_with_return():
    @njit
    def work(n):
        with temporary:
            return total(np.ones(n))

    assert allocated(temporary, work, SIZE) == (SIZE, 1)


def test_jumps_out_of_a_block_are_compile_errors():
    @njit
    def returns(n):
        with temporary:
            if n > 3:
                return 1.0
            return total(np.ones(n))

    @njit
    def breaks(n):
        for i in range(n):
            with temporary:
                if i > 3:
                    break
        return i

    @njit
    def continues(n):
        for i in range(n):
            with temporary:
                if i > 3:
                    continue
                n += total(np.ones(i))
        return n

    for function in (returns, breaks, continues):
        assert problem(function, 5) == (
            "break, continue and return must be outside of a block of memrt.numba.scratch()"
        )


def test_loops_inside_of_a_block_may_break_and_continue():
    @njit
    def work(n):
        result = 0.0
        with temporary:
            for i in range(n):
                if i == 1:
                    continue
                if i > 3:
                    break
                result += total(np.ones(i))
        return result

    assert work(10) == 5


def test_raise_in_a_block_is_a_compile_error():
    @njit
    def work(n):
        with temporary:
            if n > 3:
                raise ValueError("n is too large")
            return total(np.ones(n))

    assert "raise statements inside with block" in problem(work, 1)


def test_try_in_a_block_is_a_compile_error():
    @njit
    def work(n):
        with temporary:
            try:
                result = total_of_few(np.ones(n))
            except Exception:
                result = -1.0
        return result

    assert problem(work, 1).startswith("try must be outside of a block of memrt.numba.scratch()")


def test_yield_in_a_block_is_a_compile_error():
    @njit
    def inside(n):
        for i in range(n):
            with temporary:
                yield total(np.ones(i))

    @njit
    def outside(n):
        for i in range(n):
            with temporary:
                result = total(np.ones(i))
            yield result

    assert problem(inside, 3) == "yield must be outside of a block of memrt.numba.scratch()"
    assert list(outside(3)) == [0, 1, 2]


def test_arguments_of_a_block_must_be_constants():
    @njit
    def by_argument(name):
        with memrt.numba.scratch(name):
            return total(np.ones(3))

    @njit
    def wrong(n):
        with memrt.numba.scratch(outliving="free"):
            return total(np.ones(n))

    assert problem(by_argument, "scratch") == (
        "arguments of memrt.numba.scratch() in jitted code must be constants, or global or "
        "nonlocal variables"
    )
    assert problem(wrong, 3) == (
        "memrt.numba.scratch(): outliving must be 'promote' or 'error', got 'free'"
    )


def test_blocks_are_nested_and_follow_each_other():
    outer, inner = memrt.numba.scratch("outer"), memrt.numba.scratch("inner")

    @njit
    def work(n):
        with outer:
            first = np.ones(n)
            with inner:
                second = total(np.ones(n))
            result = total(first) + total(np.ones(n)) + second
        with inner:
            result += total(np.ones(n))
        return result

    assert allocated(outer, work, SIZE) == (4 * SIZE, 2)
    assert inner.stats().alloc == 2 * 2
    assert (outer.stats().live, inner.stats().live) == (0, 0)


def test_blocks_of_python_and_of_jitted_code_share_an_arena():
    @njit
    def make(n):
        with temporary:
            return total(np.ones(n))

    with temporary:
        kept = np.ones(SIZE)
        assert make(SIZE) == SIZE  # the outer block judges
        del kept
    assert temporary.outlived == (0, 0)
    with pytest.raises(RuntimeError, match="must be freed"), temporary:
        kept = np.ones(SIZE)
    assert temporary.outlived == (1, SIZE * 8)
    assert make(SIZE) == SIZE
    del kept
    assert make(SIZE) == SIZE
    assert temporary.outlived == (0, 0)


def test_python_block_inside_of_a_compiled_block_judges_later():
    arena = memrt.numba.scratch("shared")

    def leave():
        with arena:
            pass
        return arena.outlived[0]

    @njit
    def work(n):
        with arena:
            kept = np.ones(n)
            with objmode(outlived="int64"):
                outlived = leave()
            result = total(kept)
        return result, outlived

    assert work(SIZE) == (SIZE, 0)
    assert arena.outlived == (0, 0)


def test_object_mode_in_a_block_allocates_from_the_policy_around():
    @njit
    def work(n):
        with temporary:
            first = np.ones(n)
            with objmode(name="unicode_type", inner="unicode_type"):
                name = memrt.handler_name()
                inner = memrt.meminfo(ones(3)).policy
            result = total(first)
        return result, name, inner

    with memrt.Policy(name="around"):
        assert work(SIZE) == (SIZE, "memrt:around", "temporary")


def test_block_counts_in_the_scope_of_the_caller():
    without_gil = njit(nogil=True)(sum_in_block.py_func)
    for function in (sum_in_block, without_gil):
        with memrt.scope("around") as scope, memrt.Policy(name="around"):
            before = scope.stats().alloc
            assert allocated(temporary, function, 5) == (510.0, 5)
        assert scope.stats().alloc - before == 10


@pytest.mark.parametrize("threads", [1, 4])
def test_blocks_without_the_gil_share_the_arena(threads):
    arena = memrt.numba.scratch("without the GIL")

    @njit(nogil=True)
    def work(rounds):
        result = 0.0
        for _ in range(rounds):
            with arena:
                result += total(np.ones(SIZE))
        return result

    work(1)
    found = []
    workers = [threading.Thread(target=lambda: found.append(work(2000))) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [2000.0 * SIZE] * threads
    assert arena.outlived == (0, 0)
    assert arena.stats().alloc == 2000 * threads + 1


def test_parallel_loop_in_a_block_allocates_from_the_arena():
    @njit(parallel=True)
    def work(n):
        with temporary:
            sums = np.zeros(n)
            for i in prange(n):
                sums[i] = total(np.ones(SIZE))
            return total(sums)

    with memrt.scope("loop") as scope, memrt.Policy(name="around") as around:
        result, count = allocated(temporary, work, 40)
    assert (result, count) == (40 * SIZE, 41)
    assert scope.stats().alloc == 2 * count
    assert around.stats().alloc == 0


def test_block_in_a_parallel_loop_allocates_from_the_arena():
    @njit(parallel=True)
    def work(n):
        sums = np.zeros(n)
        for i in prange(n):
            with temporary:
                sums[i] = total(np.ones(SIZE))
        return sums.sum()

    with memrt.scope("loop") as scope:
        assert allocated(temporary, work, 400) == (400 * SIZE, 400)
    assert scope.stats().alloc >= 2 * 400
    assert temporary.outlived == (0, 0)


def test_function_with_a_block_is_not_cached(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path))

    @njit(cache=True)
    def work(n):
        with temporary:
            return total(np.ones(n))

    with pytest.warns(NumbaWarning, match="Cannot cache compiled function"):
        assert work(SIZE) == SIZE


def test_block_survives_its_function_in_linked_code():
    def make():
        @njit
        def inner(n):
            with memrt.numba.scratch("linked"):
                return total(np.ones(n))

        return njit(lambda n: inner(n) + 1)

    outer = make()
    assert outer(SIZE) == SIZE + 1
    assert outer(SIZE) == SIZE + 1


WITHOUT = """
import memrt.numba, numba, numpy as np

@numba.njit
def work(n):
    with memrt.numba.scratch():
        result = np.ones(n).sum()
    return result

try:
    work(3)
except numba.core.errors.CompilerError as error:
    print(str(error).splitlines()[1])
"""


def test_block_needs_install(run_python):
    assert run_python(WITHOUT).stdout == (
        "memrt.numba.scratch() in jitted code needs memrt.numba.install() before 'import numba'\n"
    )


def test_records_need_handlers_of_memrt(on_memrt):
    with pytest.raises(TypeError, match="handler must be a handler of memrt, got int"):
        on_memrt.module.scratch_policy(1)
    assert set(on_memrt.module.scratch_symbols) == {"memrt_scratch_enter", "memrt_scratch_leave"}


def test_block_without_memory_for_a_scope_does_not_count_there():
    sum_in_block(1)
    with memrt.scope("short of memory") as scope, fail_allocations(every=1, kind="record") as plan:
        assert sum_in_block(3) == 303
    assert plan.failed == 1
    assert scope.stats().alloc == 0


@pytest.mark.numba_leaks
def test_memory_error_ends_the_block():
    with fail_allocations(2, kind="meminfo"), pytest.raises(MemoryError):
        sum_in_block(3)
    assert memrt.meminfo(ones(3)).policy == "default"
    assert sum_in_block(3) == 303


def test_pickler_of_numba_finds_arenas_of_blocks_alone():
    sum_in_block(1)
    assert pickle.loads(serialize.dumps(temporary)) is temporary
    for refused in (serialize.dumps, pickle.dumps):
        with pytest.raises(TypeError, match="a policy belongs to one process"):
            refused(memrt.numba.scratch("of Python alone"))
    with pytest.raises(TypeError, match="a policy belongs to one process"):
        pickle.dumps(temporary)


def test_function_for_the_compiler_is_read_only(run_python):
    with pytest.raises(AttributeError, match="read-only"):
        temporary.mutate_with_body = None
    code = "import memrt.numba; print(hasattr(memrt.numba.scratch, 'mutate_with_body'))"
    assert run_python(code).stdout == "False\n"
