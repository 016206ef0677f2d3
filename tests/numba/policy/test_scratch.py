"""memrt.numba.scratch: temporary arrays of jitted functions in an arena."""

import collections
import threading

import memrt
import memrt.numba
import numba
import numpy as np
import pytest
from numba.extending import overload

Pair = collections.namedtuple("Pair", "first second")


@numba.njit
def smooth(image, rounds):
    for _ in range(rounds):
        image = (image[1:] + image[:-1]) / 2
    return image


@numba.njit(nogil=True)
def sum_without_gil(count):
    total = 0.0
    for i in range(count):
        total += np.ones(100 + i).sum()
    return total


@numba.njit
def make_pair(n):
    whole = np.arange(n)
    return Pair(whole, whole[1:])


@numba.njit
def make_or_raise(n):
    kept = np.ones(n)
    if n > 10:
        raise ValueError("n is too large")
    return kept


def test_temporary_arrays_of_a_call_come_from_the_arena():
    temporary = memrt.numba.scratch()
    run = temporary(smooth)
    result = run(np.arange(100.0), 5)
    assert result.tolist() == smooth(np.arange(100.0), 5).tolist()
    stats = temporary.stats()
    assert (stats.live, stats.alloc) == (0, 5)
    assert not memrt.is_managed(result)
    assert run.__wrapped__ is smooth
    assert run.__name__ == "smooth"


def test_block_without_results_leaves_no_array():
    with memrt.numba.scratch() as temporary:
        total = float(smooth(np.ones(50), 3).sum())
    assert (total, temporary.outlived) == (47.0, (0, 0))


def test_array_that_outlives_the_block_raises_and_stays_valid():
    with (
        pytest.raises(RuntimeError, match="arena 'scratch' must be freed"),
        memrt.numba.scratch(),
    ):
        kept = smooth(np.ones(50), 3)
    assert kept.sum() == 47


def test_promoted_array_is_counted():
    with memrt.numba.scratch(outliving="promote") as temporary:
        kept = smooth(np.ones(50), 3)
    assert temporary.outlived == (1, 47 * 8)
    assert kept.sum() == 47


def test_results_with_arrays_are_copied_out():
    temporary = memrt.numba.scratch()
    pair = temporary(make_pair)(10)
    assert isinstance(pair, Pair)
    assert (pair.first.sum(), pair.second.sum()) == (45, 45)

    @temporary
    def collect(n):
        return [make_pair(n)[0]], {"first": smooth(np.ones(n), 1)}, n

    (first,), named, n = collect(10)
    assert (first.sum(), named["first"].sum(), n) == (45, 9, 10)
    assert temporary.stats().live == 0


def test_arguments_returned_unchanged_are_not_copied():
    array = np.ones(5)
    same = memrt.numba.scratch()(numba.njit(lambda a: a))(array)
    assert np.shares_memory(same, array)


def test_array_in_a_typed_list_of_the_result_is_found():
    @memrt.numba.scratch()
    def collect():
        found = numba.typed.List()
        found.append(smooth(np.ones(5), 1))
        return found

    with pytest.raises(RuntimeError, match="must be freed before the block ends"):
        collect()


def test_error_of_jitted_code_passes():
    temporary = memrt.numba.scratch(outliving="promote")
    run = temporary(make_or_raise)
    assert run(10).sum() == 10
    with pytest.raises(ValueError, match="n is too large"):
        run(11)


@pytest.mark.parametrize("threads", [1, 3])
def test_calls_without_the_gil_share_the_arena(threads):
    temporary = memrt.numba.scratch()
    run = temporary(sum_without_gil)
    sum_without_gil(1)
    found = []
    workers = [threading.Thread(target=lambda: found.append(run(50))) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [6225.0] * threads
    assert temporary.stats().alloc == 50 * threads


def test_parallel_loop_allocates_from_the_arena():
    @numba.njit(parallel=True)
    def add_up(n):
        sums = np.zeros(n)
        for i in numba.prange(n):
            sums[i] = smooth(np.ones(10), 2).sum()
        return sums.sum()

    with memrt.numba.scratch() as temporary:
        assert add_up(40) == 320
        before = temporary.stats().alloc
        assert add_up(40) == 320
    assert temporary.stats().alloc - before > 80


def number():
    """Stand for a function of compiled code."""


compiled_with = []


@overload(number)
def number_of_compiled_code():
    compiled_with.append(memrt.handler_name())
    return lambda: 7


def test_compiler_allocates_from_the_code_around():
    with memrt.Policy(name="around"), memrt.numba.scratch(), memrt.numba.scratch("inner"):
        inside = memrt.handler_name()
        assert numba.njit(lambda n: np.ones(n).sum() + number())(3) == 10
        assert memrt.handler_name() == inside == "memrt:inner"
    assert compiled_with == ["memrt:around"]
    broken = numba.njit(lambda n: n.no_such_attribute)
    with memrt.numba.scratch(), pytest.raises(numba.core.errors.TypingError):
        broken(1)
    assert memrt.handler_name() == "default_allocator"


def test_arena_inside_of_scratch_memory_serves_the_compiler():
    with memrt.numba.scratch(), memrt.arena() as inner:
        assert numba.njit(lambda n: np.ones(n).sum())(5) == 5
    assert inner.stats().total > 0
