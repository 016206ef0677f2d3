"""memrt.arena: many small arrays in chunks, and arrays that outlive the block."""

import asyncio
import contextlib
import contextvars
import gc
import os
import re
import subprocess
import sys
import threading

import memrt
import numpy as np
import pytest
from gil import GIL_IS_OFF
from memrt import _memrt, adaptors

CHUNK = 2**20


def addresses(count):
    return [array.ctypes.data for array in [np.empty(8) for _ in range(count)]]


def test_arrays_lie_one_behind_the_other():
    with memrt.arena() as a:
        first, second = addresses(2)
        zeros = np.zeros(100)
        assert a.stats().live == 800
    assert (second - first, first % 64, zeros.sum()) == (128, 0, 0)


def test_arrays_of_the_next_block_use_the_same_chunk():
    a = memrt.arena()
    found = []
    for _ in range(3):
        with a:
            found.append(addresses(1000))
    assert found[0] == found[1] == found[2]
    assert a.stats().cached == CHUNK
    memrt.release_unused()
    assert a.stats().cached == 0


def test_arrays_that_outlive_the_block_keep_their_memory():
    with memrt.arena(chunk="64 KiB") as a:
        kept = [np.full(100, i) for i in range(200) if i % 50 == 0 or np.ones(100) is None]
        others = [np.full(100, i) for i in range(500)]
        del others
    assert a.outlived == (4, 3200)
    assert a.stats().cached == 0  # chunks without live arrays went back
    del a
    memrt.release_unused()
    assert [array[99] for array in kept] == [0, 50, 100, 150]
    (policy,) = (each for each in memrt.debug.policies() if each.name == "arena")
    assert policy.stats().live == 3200
    del kept, policy
    memrt.release_unused()
    assert "arena" not in [each.name for each in memrt.debug.policies()]


def test_error_names_arrays_bytes_lines_and_holders():
    kept = []

    def work():
        with memrt.debug.tracking(), memrt.arena("strict", outliving="error"):
            kept.append(np.ones(1000))
            kept.append(np.ones(10))

    with pytest.raises(RuntimeError) as caught:
        work()
    text = str(caught.value)
    assert text.startswith(
        "arrays of arena 'strict' must be freed before the block ends, got 2 live arrays of 7.9 KiB"
    )
    assert re.search(r"8,?080 B|7\.8 KiB in 1 buffer allocated in .*test_arena.py:\d+", text)
    assert ("PYTHON_GIL=1" if GIL_IS_OFF else "kept[") in text
    assert kept[0].sum() == 1000


def test_error_without_tracking_has_one_line():
    a = memrt.arena("strict", outliving="error")
    with pytest.raises(RuntimeError, match="got 1 live array of 80 B: copy results") as caught, a:
        kept = np.ones(10)
    assert "\n" not in str(caught.value)
    assert a.outlived == (1, 80)
    with contextlib.suppress(RuntimeError), a:
        pass
    del kept, caught
    with a:
        pass
    assert a.outlived == (0, 0)


def test_arrays_in_reference_cycles_are_no_error():
    gc.disable()
    try:
        with memrt.arena(outliving="error") as a:
            cycle = [np.ones(10)]
            cycle.append(cycle)
            del cycle
    finally:
        gc.enable()
    assert a.outlived == (0, 0)


def test_pending_exception_is_not_replaced():
    a, kept = memrt.arena(outliving="error"), []
    with pytest.raises(KeyError), a:
        [kept.append(np.ones(10)), {}["missing"]]
    assert a.outlived == (1, 80)


def test_keep_copies_out_of_the_block():
    with memrt.Policy(name="around") as policy, memrt.arena(outliving="error") as outer, outer:
        copy = outer.keep(np.ones(10))
        with memrt.arena(outliving="error") as inner:
            out = outer.keep(np.arange(10))
            between = inner.keep(np.ones((2, 5)).view(np.matrix))
            assert memrt.handler_name() == "memrt:arena"
        assert policy.stats().live == 160
        assert type(between) is np.ndarray
        del between
        with memrt.scope("kept") as scope:
            np.testing.assert_array_equal(out, outer.keep(out))
            kept = outer.keep(out)
        assert scope.live == kept.nbytes
    assert copy.sum() == 10
    plain = outer.keep(copy)
    assert not memrt.is_managed(plain)


def test_keep_works_inside_of_a_handler_of_numpy():
    with memrt.arena(outliving="error") as a:
        copy = a.keep(np.ones(10))
    assert memrt.handler_name(copy) == "default_allocator"


def test_nested_arenas_may_end_in_any_order():
    outer, inner = memrt.arena("outer"), memrt.arena("inner")
    before = memrt.handler_name()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__()
    assert memrt.handler_name() == "memrt:inner"
    kept = np.ones(10)
    inner.__exit__()
    assert memrt.handler_name() == before
    assert (outer.outlived, inner.outlived) == ((0, 0), (1, kept.nbytes))


def test_leaving_elsewhere_warns_and_judges_nothing():
    a = memrt.arena(outliving="error")
    with pytest.warns(RuntimeWarning, match=r"arena 'arena' was not entered in this context"):
        a.__exit__()
    with a:
        empty = contextvars.Context()
        thread = threading.Thread(target=empty.run, args=(pytest.warns, RuntimeWarning, a.__exit__))
        thread.start()
        thread.join()
        assert addresses(1)
    assert a.outlived == (0, 0)


def test_block_that_ends_last_judges():
    a = memrt.arena(outliving="error")
    inside, leave = threading.Barrier(5), threading.Event()
    failures = []

    def work():
        with a:
            mine = [np.full(8, i) for i in range(1000)]
            inside.wait()
            leave.wait()
            failures.extend(i for i, array in enumerate(mine) if array[0] != i)
            del mine

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    with a:
        inside.wait()
    assert a.stats().live == 4 * 64_000
    leave.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert a.outlived == (0, 0)
    assert a.stats().live == 0


def test_tasks_and_generators_have_their_own_blocks():
    a = memrt.arena()

    def generate():
        with a:
            yield np.ones(10)
            yield np.ones(20)

    async def task(n):
        with memrt.arena(f"task {n}") as own:
            await asyncio.sleep(0)
            array = np.ones(n)
            await asyncio.sleep(0)
            assert own.stats().live == array.nbytes

    async def main():
        await asyncio.gather(*map(task, range(1, 10)))

    asyncio.run(main())
    generator = generate()
    assert memrt.handler_name(next(generator)) == "memrt:arena"
    second = next(generator)
    assert next(generator, None) is None
    assert a.outlived == (1, second.nbytes)


def test_abandoned_generator_leaves_the_arena_usable():
    a = memrt.arena(outliving="error")

    def generate():
        with a:
            yield 1

    generator = generate()
    next(generator)
    generator.close()
    with a:
        pass
    assert a.outlived == (0, 0)


def test_newest_array_grows_in_place():
    with memrt.arena():
        array = np.arange(8)
        before = array.ctypes.data
        array.resize(1000, refcheck=False)
        assert array.ctypes.data == before
        assert (array[7], array[999]) == (7, 0)
        array.resize(CHUNK, refcheck=False)
        assert array[7] == 7


def test_large_arrays_come_from_the_allocator_of_the_arena():
    calls = adaptors.counting()
    with memrt.arena(alignment=4096, chunk=2**16, allocator=calls):
        small, large = np.empty(10), np.empty(2**14)
        assert small.ctypes.data % 4096 == large.ctypes.data % 4096 == 0
        assert calls.counts.in_use >= 2**16 + 2**17
    del small, large
    gc.collect()


def test_chunks_of_python_functions_go_back_to_the_functions():
    lent = []

    def allocate(nbytes, alignment):
        lent.append(nbytes)
        return bytearray(nbytes)

    with memrt.arena(chunk="64 KiB", allocator=adaptors.aligning(allocate)):
        assert len(set(addresses(1000))) == 1000
    assert len(lent) == 2


def test_arena_adaptor_is_part_of_a_stack():
    inner = adaptors.counting()
    outer = adaptors.counting(adaptors.arena(adaptors.guard(inner), chunk="128 KiB"))
    with memrt.Policy(allocator=outer):
        addresses(100)
    assert (outer.counts.allocations, inner.counts.allocations) == (100, 1)


def test_limits_and_scopes_apply():
    with memrt.arena(limit="1 MiB") as a, memrt.scope("inside") as scope:
        kept = [np.empty(8) for _ in range(100)]
        with pytest.raises(MemoryError):
            np.empty(2**18)
        assert scope.live == a.stats().live == 6400
        del kept


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"outliving": "fail"}, ValueError, "outliving must be 'promote' or 'error', got 'fail'"),
        ({"chunk": 10**6}, ValueError, "chunk must be a power of two from 64 KiB to 1 GiB, got 10"),
        ({"chunk": "2 GiB"}, ValueError, "chunk must be a power of two"),
        ({"chunk": None}, TypeError, "chunk must be a whole number"),
        ({"allocator": 1}, TypeError, "allocator must be"),
        ({"limit": -1}, ValueError, "limit must be"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        memrt.arena(**arguments)


def test_arena_is_a_policy():
    a = memrt.arena("mine", limit="1 GiB")
    assert isinstance(a, memrt.Policy)
    assert repr(a) == "<memrt.arena 'mine', alignment 64, limit 1.0 GiB>"
    assert a in memrt.debug.policies()
    with pytest.raises(TypeError, match="cannot pickle"):
        a.__reduce__()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_child_frees_inherited_arrays_and_leaves_the_block():
    code = """
import os, memrt, numpy as np
with memrt.arena("forked", outliving="error") as a:
    inherited = [np.full(8, i) for i in range(1000)]
    child = os.fork()
    assert all(array[0] == i for i, array in enumerate(inherited))
    own = [np.full(8, -i) for i in range(1000)]
    assert all(array[0] == i for i, array in enumerate(inherited))
    del own, inherited
if child:
    assert os.waitpid(child, 0)[1] == 0
print(a.outlived)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "MEMRT_CHECK": "1"},
    )  # fmt: skip
    assert (result.stdout, result.stderr) == ("(0, 0)\n(0, 0)\n", "")


def test_release_unused_of_a_capsule_needs_a_policy():
    with pytest.raises(TypeError, match="allocator must be a capsule"):
        _memrt.allocator_release_unused(1)
    capsule = _memrt.allocator_of_callables(lambda nbytes, alignment: bytearray(nbytes), None)
    with pytest.raises(ValueError, match="incorrect name"):
        _memrt.allocator_release_unused(capsule)
    policy = memrt.Policy(allocator=capsule)
    assert _memrt.allocator_release_unused(capsule) == 0
    assert policy.stats().alloc == 0
