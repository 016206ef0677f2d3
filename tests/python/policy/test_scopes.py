"""Scopes count the allocations made inside, by any code, whichever thread frees the memory."""

import asyncio
import concurrent.futures
import contextvars
import copy
import gc
import pickle
import subprocess
import sys
import threading

import memrt
import numpy as np
import pytest
from gil import THREADS_INHERIT

KIB = 1024


@pytest.fixture(params=["enabled", "policy"])
def in_force(request):
    """Put NumPy on memrt, by enable() or by a policy; each test runs with both."""
    if request.param == "enabled":
        memrt.enable()
        yield memrt.debug.default_policy()
        memrt.disable()
    else:
        with memrt.Policy(name="in force") as policy:
            yield policy


def test_arrays_count_in_the_scope_of_their_allocation(in_force):
    with memrt.scope("outer") as outer:
        a = np.ones(KIB, "u1")
        with memrt.scope("inner") as inner:
            b = np.ones(10 * KIB, "u1")
        c = np.ones(100 * KIB, "u1")
    d = np.ones(1000 * KIB, "u1")
    assert (outer.live, inner.live) == (111 * KIB, 10 * KIB)
    assert memrt.handler_name(d) == memrt.handler_name(a)
    del a, b
    assert (outer.live, inner.live) == (100 * KIB, 0)
    del c, d
    assert (outer.live, inner.live) == (0, 0)
    assert outer.total >= 111 * KIB
    assert inner.path == ("outer", "inner")


def test_memrt_calls_count_without_a_policy_in_force():
    policy = memrt.Policy(name="named")
    with memrt.scope("calls") as s:
        made = [
            memrt.alloc(1000),
            memrt.empty(1000, "u1"),
            memrt.zeros(1000, "u1", policy=policy),
            memrt.array(bytes(1000)),
            memrt.full(1000, 7, "u1", policy=policy),
        ]
        assert np.ones(1000).base is None
    assert s.live == 5000 - 1000 + memrt.meminfo(made[3]).nbytes
    assert policy.stats().live == 2000
    made.clear()
    assert s.live == 0


def test_resize_counts_in_the_scope_of_the_allocation(in_force):
    with memrt.scope("allocated") as allocated:
        a = np.ones(1000, "u1")
    with memrt.scope("resized") as resized:
        a.resize(5000, refcheck=False)
    assert (allocated.live, resized.live, resized.total) == (5000, 0, 0)


def test_equal_name_reopens_the_same_scope():
    with memrt.scope("again") as first:
        kept = memrt.alloc(100)
    with memrt.scope("again") as second:
        more = memrt.alloc(10)
    assert first == second
    assert hash(first) == hash(second)
    assert first.live == 110
    del kept, more


def test_decorator_enters_the_scope_at_each_call():
    @memrt.scope("decorated")
    def make(size, *, zero=False):
        """Makes."""
        return memrt.alloc(size, zero=zero)

    made = [make(10, zero=True), make(size=20)]
    assert make.__doc__ == "Makes."
    assert memrt.scopes()["decorated"].live == 30
    assert memrt.current_scope() is None
    del made


def test_interleaved_coroutines_have_separate_scopes():
    order = []

    @memrt.scope("task a")
    async def first(turn):
        made = [memrt.alloc(100)]
        turn.set()
        await asyncio.sleep(0.01)
        made.append(memrt.alloc(100))
        order.append("a")
        return made

    async def second(turn):
        await turn.wait()
        made = [memrt.alloc(7)]
        with memrt.scope("task b"):
            made.append(memrt.alloc(50))
            await asyncio.sleep(0)
            made.append(await asyncio.to_thread(memrt.alloc, 50))
        order.append("b")
        return made

    async def both():
        turn = asyncio.Event()
        return await asyncio.gather(first(turn), second(turn))

    before = {name: tree_total(name) for name in ("task a", "task b")}
    made = asyncio.run(both())
    assert sorted(order) == ["a", "b"]
    assert tree_total("task a") - before["task a"] == 200
    assert tree_total("task b") - before["task b"] == 100
    del made


def tree_total(name):
    try:
        return memrt.scopes()[name].total
    except KeyError:
        return 0


def test_numpy_arrays_count_across_tasks_and_to_thread(in_force):
    async def work(name, size):
        with memrt.scope(name) as s:
            a = np.ones(size, "u1")
            await asyncio.sleep(0)
            b = await asyncio.to_thread(np.ones, size, "u1")
            assert s.live == 2 * size
            del a, b
            return s

    async def both():
        return await asyncio.gather(work("numpy a", 1000), work("numpy b", 3000))

    assert [s.live for s in asyncio.run(both())] == [0, 0]


def test_decorator_refuses_a_generator_function():
    def values():
        yield 1

    with pytest.raises(TypeError, match=r"values is a generator, .* use 'with memrt\.scope"):
        memrt.scope("g")(values)


def test_executor_uses_the_scope_of_the_submitter_while_enabled():
    submit = concurrent.futures.ThreadPoolExecutor.submit
    memrt.enable()
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(int).result()
            with memrt.scope("submits") as s:
                a = pool.submit(np.ones, 1000, "u1").result()
            b = pool.submit(np.ones, 1000, "u1").result()
        assert s.live == 1000
        del a, b
        assert s.live == 0
    finally:
        memrt.disable()
    assert concurrent.futures.ThreadPoolExecutor.submit is submit


def test_carry_takes_a_scope_to_another_thread():
    made = []
    with memrt.scope("carried") as s:
        thread = threading.Thread(target=memrt.bind_scope(lambda: made.append(memrt.alloc(100))))
    thread.start()
    thread.join()
    assert s.live == 100
    made.clear()
    assert memrt.bind_scope(len) is len


def test_new_thread_has_a_scope_only_if_it_inherits():
    seen = []
    with memrt.scope("starts") as scope:
        thread = threading.Thread(target=lambda: seen.append(memrt.current_scope()))
        thread.start()
        thread.join()
    assert seen == [scope if THREADS_INHERIT else None]


def test_scopes_can_be_left_out_of_order(in_force):
    outer, inner = memrt.scope("first"), memrt.scope("second")
    first = outer.__enter__()
    second = inner.__enter__()
    outer.__exit__()
    a = np.ones(100, "u1")
    assert memrt.current_scope() == second
    inner.__exit__()
    b = np.ones(100, "u1")
    assert memrt.current_scope() is None
    assert (first.live, second.live) == (100, 100)  # the second scope is inside of the first
    del a, b


def test_scope_and_policy_can_be_left_in_any_order():
    inside, policy = memrt.scope("crossed"), memrt.Policy(name="crossed")
    before = memrt.handler_name()
    s = inside.__enter__()
    policy.__enter__()
    a = np.ones(100, "u1")
    inside.__exit__()
    b = np.ones(1000, "u1")
    assert (s.live, policy.stats().live) == (100, 1100)
    again = memrt.scope("crossed")
    again.__enter__()
    policy.__exit__()
    c = memrt.alloc(30)
    again.__exit__()
    assert memrt.handler_name() == before
    assert s.live == 130
    del a, b, c


def test_exit_of_a_scope_not_entered_warns():
    entered = memrt.scope("here")
    entered.__enter__()
    message = "scope 'here' was not entered in this context"
    with pytest.warns(RuntimeWarning, match=message):
        contextvars.Context().run(entered.__exit__)
    entered.__exit__()
    with pytest.warns(RuntimeWarning, match=message):
        entered.__exit__()


@pytest.mark.parametrize("name", [None, 1, b"bytes", ["list"]])
def test_scope_name_of_wrong_type_raises_type_error(name):
    with pytest.raises(TypeError, match="name of a scope must be a text, got"):
        memrt.scope(name)


@pytest.mark.parametrize("name", ["", "x" * 64, "ü" * 32])
def test_scope_name_of_wrong_length_is_refused(name):
    with pytest.raises(ValueError, match="1 to 63 bytes"):
        memrt.scope(name)


@pytest.mark.parametrize("name", ["x", "x" * 63, "ü" * 31 + "x"])
def test_scope_names_of_1_and_63_bytes_are_accepted(name):
    with memrt.scope(name) as s:
        assert s.name == name


def test_scopes_show_a_tree_with_paths_and_statistics():
    with memrt.scope("tree") as tree, memrt.scope("branch") as branch:
        made = memrt.alloc(2048)
    found = memrt.scopes()
    assert found["tree/branch"] == branch
    assert found["tree", "branch"] == branch
    assert branch in found.children(tree)
    assert tree in found.children()
    assert len(found) == len(list(found))
    names = [s.path for s in found]
    assert names.index(("tree",)) < names.index(("tree", "branch"))
    lines = repr(found).splitlines()
    assert lines[0] == "memrt.scopes:"
    assert any(line.startswith("    branch: 2.0 KiB live in 1 block, peak") for line in lines)
    assert repr(branch).startswith(
        "<memrt.types.Scope 'tree / branch': 2.0 KiB live in 1 block, peak "
    )
    with pytest.raises(KeyError):
        found["no such"]
    del made


def test_scope_is_found_only_by_its_full_path():
    with memrt.scope("upper"), memrt.scope("lower") as inner:
        pass
    with pytest.raises(KeyError):
        memrt.scopes()["lower"]
    with pytest.raises(KeyError):
        memrt.scopes()[("lower",)]
    with memrt.scope("lower") as outermost:
        pass
    found = memrt.scopes()
    assert found["lower"] == outermost != inner
    assert found["upper/lower"] == found["upper", "lower"] == inner


def test_sizes_count_blocks_by_powers_of_two():
    with memrt.scope("histogram") as s:
        kept = [memrt.alloc(size) for size in (0, 1, 2, 3, 1000, 1024)]
    del kept[2:5]
    assert s.sizes() == {1: 1, 2: 1, 4: 2, 1024: 1, 2048: 1}
    assert s.sizes(live=True) == {1: 1, 2: 1, 2048: 1}


def test_scopes_and_outside_sum_to_the_process(in_force):
    before = memrt.stats()
    base = {s.path: s.stats() for s in memrt.scopes()}
    made = []
    for name in ("sum a", "sum b", "sum c"):
        with memrt.scope(name):
            made += [np.ones(n, "u1") for n in range(1, 300, 7)]
    outside = np.ones(12345, "u1")
    tree, change = memrt.scopes(), memrt.stats() - before
    inside = 0
    for s in tree.children():
        inside += s.live - (base[s.path].live if s.path in base else 0)
    assert change.live == inside + 12345
    del made, outside


def test_scope_peak_can_be_reset():
    with memrt.scope("peaks") as s:
        memrt.alloc(100_000)
        assert abs(s.peak - 100_000) <= s.stats().peak_error
        s.reset_peak()
        assert s.peak <= s.stats().peak_error


def test_open_scope_keeps_no_policy_alive():
    with memrt.scope("open for long"):
        before = len(memrt.debug.policies())
        for number in range(40):
            memrt.alloc(10, policy=memrt.Policy(name=f"p{number}"))
        gc.collect()
        memrt.release_unused()
        assert len(memrt.debug.policies()) <= before + 16


def test_policy_that_a_scope_cannot_record_raises_memory_error(call_without_memory):
    policies = [memrt.Policy(name=f"p{number}") for number in range(6)]

    def allocate():
        memrt.alloc(10, policy=policies[5])

    def fail_in_scope(number):
        with memrt.scope("short of memory"):
            for policy in policies[:5]:  # the dict of the scope grows for the sixth policy
                memrt.alloc(10, policy=policy)
            return call_without_memory(allocate, number)

    assert {fail_in_scope(number) for number in range(20)} == {MemoryError, None}


def test_copy_returns_the_same_scope_and_pickle_is_refused():
    with memrt.scope("copied") as entered:
        found = copy.deepcopy({"step": entered})
        assert found["step"] is copy.copy(entered) is entered
    with pytest.raises(TypeError, match="cannot pickle scope 'copied': a scope belongs to one"):
        pickle.dumps(entered)


def test_exception_exits_the_scope():
    with pytest.raises(ZeroDivisionError), memrt.scope("raises"):
        1 / 0  # noqa: B018
    assert memrt.current_scope() is None


def test_task_counts_in_a_scope_that_its_creator_left():
    async def late(opened):
        await opened.wait()
        return memrt.alloc(100)

    async def main():
        opened = asyncio.Event()
        with memrt.scope("started in") as s:
            task = asyncio.create_task(late(opened))
            await asyncio.sleep(0)
        opened.set()
        made = await task
        assert s.live == made.nbytes
        return s

    assert asyncio.run(main()).live == 0


def test_exit_in_copied_context_keeps_scope_in_the_original():
    inside = memrt.scope("copied")
    s = inside.__enter__()
    contextvars.copy_context().run(inside.__exit__)
    made = memrt.alloc(100)
    inside.__exit__()
    assert s.live == made.nbytes


def test_recursive_function_has_a_single_scope():
    @memrt.scope("recursive")
    def make(depth):
        below = make(depth - 1) if depth else []
        return [memrt.alloc(10), *below]

    made = make(20)
    found = memrt.scopes()["recursive"]
    assert found.live == 210
    assert memrt.scopes().children(found) == []
    assert memrt.current_scope() is None
    del made


def test_scope_object_is_reusable_and_reentrant():
    inside = memrt.scope("many times")
    with inside as outer, inside as inner:
        assert outer == inner == memrt.current_scope()
    with inside, memrt.scope("between"), inside as below:
        assert below.path == ("many times", "between", "many times")
    assert memrt.current_scope() is None


def leave_and_catch(inside, caught):
    with pytest.warns(RuntimeWarning) as seen:
        inside.__exit__()
    caught.extend(str(each.message) for each in seen)


def test_exit_on_wrong_thread_or_task_warns_and_keeps_the_scope():
    caught = []
    inside = memrt.scope("elsewhere")

    async def enter_in_one_task_leave_in_another():
        async def enter():
            inside.__enter__()

        await asyncio.create_task(enter())
        leave_and_catch(inside, caught)

    asyncio.run(enter_in_one_task_leave_in_another())
    with inside as s:
        empty = contextvars.Context()
        thread = threading.Thread(target=empty.run, args=(leave_and_catch, inside, caught))
        thread.start()
        thread.join()
        made = memrt.alloc(100)
    assert s.live == made.nbytes
    message = (
        "scope 'elsewhere' was not entered in this context: "
        "enter and leave scope 'elsewhere' in the same thread, task or context"
    )
    assert caught == [message, message]


def test_exception_in_a_decorated_function_exits_the_scope():
    @memrt.scope("fails")
    def fail():
        raise KeyError

    @memrt.scope("fails")
    async def fail_later():
        await asyncio.sleep(0)
        raise KeyError

    with pytest.raises(KeyError):
        fail()

    async def main():
        with pytest.raises(KeyError):
            await fail_later()
        return memrt.current_scope()

    assert asyncio.run(main()) is None
    assert memrt.current_scope() is None


def test_closing_a_suspended_generator_exits_its_scope():
    def values():
        with memrt.scope("generator") as s:
            yield s, memrt.alloc(100)
            yield s, memrt.alloc(100)

    running = values()
    s, first = next(running)
    assert memrt.current_scope() == s  # a generator runs in the context of its caller
    running.close()
    assert memrt.current_scope() is None
    assert s.live == first.nbytes


@pytest.mark.parametrize(
    ("name", "why"), [("zero\0byte", "must have no zero byte"), ("half a pair \ud800", "UTF-8")]
)
def test_scope_name_with_zero_byte_or_bad_utf8_is_refused(name, why):
    with pytest.raises(ValueError, match=f"name of a scope .*{why}"):
        memrt.scope(name)


def test_huge_scope_name_gives_a_short_error():
    with pytest.raises(ValueError, match="63 bytes") as caught:
        memrt.scope("x" * 10_000_000)
    assert len(str(caught.value)) < 100


def test_scope_name_may_have_any_characters():
    for name in ("a/b", " ", "\n", "%s{}", "ü" * 31, "\N{SNOWMAN}", "..."):
        with memrt.scope(name) as s:
            assert s.name == name
        assert memrt.scopes()[(name,)] == s


def test_decorator_refuses_an_async_generator_function():
    async def values():
        yield 1

    with pytest.raises(TypeError, match="values is a generator"):
        memrt.scope("g")(values)


MANY = """
import contextlib, memrt
with contextlib.ExitStack() as stack:
    for number in range(10_000):
        try:
            stack.enter_context(memrt.scope(f"s{number}"))
        except RuntimeError as error:
            print(number, error)
            break
    print(len(memrt.scopes()))
with memrt.scope("afterwards") as s:
    made = memrt.alloc(100)
print(s.live, memrt.scopes()["s0"].live)
"""


def test_scope_beyond_the_maximum_is_refused():
    result = subprocess.run(
        [sys.executable, "-c", MANY], capture_output=True, text=True, check=True
    )  # fmt: skip
    told, count, figures = result.stdout.splitlines()
    assert told.startswith("4096 cannot open scope s4096: a limit of memrt is reached: ")
    assert "4096 scopes" in told
    assert count == "4096"
    assert figures == "100 0"
