"""Scopes: what was born in them, whoever makes it and wherever it dies."""

import asyncio
import concurrent.futures
import contextvars
import gc
import subprocess
import sys
import threading

import memrt
import numpy as np
import pytest

KIB = 1024


@pytest.fixture(params=["enabled", "policy"])
def in_force(request):
    """memrt under NumPy, both ways."""
    if request.param == "enabled":
        memrt.enable()
        yield memrt.default_policy()
        memrt.disable()
    else:
        with memrt.Policy(name="in force") as policy:
            yield policy


def test_arrays_are_counted_where_they_were_born(in_force):
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


def test_memrts_own_calls_are_counted_without_a_policy_in_force():
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
    assert s.live == 5000 - 1000 + memrt.meminfo(made[3]).size
    assert policy.stats().live == 2000
    made.clear()
    assert s.live == 0


def test_a_resize_is_of_the_scope_of_birth(in_force):
    with memrt.scope("born") as born:
        a = np.ones(1000, "u1")
    with memrt.scope("resized") as resized:
        a.resize(5000, refcheck=False)
    assert (born.live, resized.live, resized.total) == (5000, 0, 0)


def test_the_same_name_goes_on_with_the_same_scope():
    with memrt.scope("again") as first:
        kept = memrt.alloc(100)
    with memrt.scope("again") as second:
        more = memrt.alloc(10)
    assert first == second
    assert hash(first) == hash(second)
    assert first.live == 110
    del kept, more


def test_a_decorator_is_entered_at_each_call():
    @memrt.scope("decorated")
    def make(size, *, zero=False):
        """Makes."""
        return memrt.alloc(size, zero=zero)

    made = [make(10, zero=True), make(20)]
    assert make.__doc__ == "Makes."
    assert memrt.scopes()["decorated"].live == 30
    assert memrt.current_scope() is None
    del made


def test_coroutines_have_their_scope_while_others_run():
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


def test_numpys_arrays_follow_tasks_and_to_thread(in_force):
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


def test_generators_are_refused_with_what_to_do():
    def values():
        yield 1

    with pytest.raises(TypeError, match=r"values is a generator, .* use 'with memrt\.scope"):
        memrt.scope("g")(values)


def test_an_executor_runs_in_the_scope_of_who_submits_while_memrt_is_enabled():
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
    assert concurrent.futures.ThreadPoolExecutor.submit.__qualname__ == "ThreadPoolExecutor.submit"


def test_carry_takes_a_scope_to_another_thread():
    made = []
    with memrt.scope("carried") as s:
        thread = threading.Thread(target=memrt.carry(lambda: made.append(memrt.alloc(100))))
    thread.start()
    thread.join()
    assert s.live == 100
    made.clear()
    assert memrt.carry(len) is len


def test_a_new_thread_is_in_no_scope():
    seen = []
    with memrt.scope("starts"):
        thread = threading.Thread(target=lambda: seen.append(memrt.current_scope()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_scopes_may_be_left_in_any_order(in_force):
    outer, inner = memrt.scope("first"), memrt.scope("second")
    first = outer.__enter__()
    second = inner.__enter__()
    outer.__exit__()
    a = np.ones(100, "u1")
    assert memrt.current_scope() == second
    inner.__exit__()
    b = np.ones(100, "u1")
    assert memrt.current_scope() is None
    assert (first.live, second.live) == (100, 100)  # the second is inside of the first
    del a, b


def test_a_scope_and_a_policy_may_be_left_in_any_order():
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


def test_leaving_where_it_was_not_entered_is_told():
    entered = memrt.scope("here")
    entered.__enter__()
    message = "scope 'here' was not entered in this context"
    with pytest.raises(RuntimeError, match=message):
        contextvars.Context().run(entered.__exit__)
    entered.__exit__()
    with pytest.raises(RuntimeError, match=message):
        entered.__exit__()


@pytest.mark.parametrize("name", [None, 1, b"bytes", ["list"]])
def test_a_name_is_a_text(name):
    with pytest.raises(TypeError, match="the name of a scope is a text, got"):
        memrt.scope(name)


@pytest.mark.parametrize("name", ["", "x" * 64, "ü" * 32])
def test_a_name_has_its_length(name):
    with pytest.raises(ValueError, match="1 to 63 bytes"):
        memrt.scope(name)


def test_the_tree_shows_all_with_their_figures():
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
    assert repr(branch).startswith("<memrt.Scope 'tree / branch': 2.0 KiB live in 1 block, peak ")
    with pytest.raises(KeyError):
        found["no such"]
    del made


def test_sizes_are_counted_by_doublings():
    with memrt.scope("histogram") as s:
        for size in (0, 1, 2, 3, 1000, 1024):
            memrt.alloc(size)
    assert s.sizes() == {1: 1, 2: 1, 4: 2, 1024: 1, 2048: 1}


def test_all_scopes_and_what_is_outside_add_up_to_the_process(in_force):
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


def test_statistics_of_a_scope_have_a_peak_that_can_start_again():
    with memrt.scope("peaks") as s:
        memrt.alloc(100_000)
        assert abs(s.peak - 100_000) <= s.stats().peak_error
        s.reset_peak()
        assert s.peak <= s.stats().peak_error


def test_a_scope_that_is_open_keeps_no_policy_alive():
    with memrt.scope("open for long"):
        before = len(memrt.policies())
        for number in range(40):
            memrt.alloc(10, policy=memrt.Policy(name=f"p{number}"))
        gc.collect()
        memrt.release_unused()
        assert len(memrt.policies()) <= before + 16


def test_an_exception_leaves_the_scope():
    with pytest.raises(ZeroDivisionError), memrt.scope("raises"):
        1 / 0  # noqa: B018
    assert memrt.current_scope() is None


def test_what_a_task_makes_is_counted_when_the_scope_was_left_where_it_was_started():
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
        assert s.live == made.size
        return s

    assert asyncio.run(main()).live == 0


def test_a_copy_of_a_context_leaves_a_scope_for_itself_alone():
    inside = memrt.scope("copied")
    s = inside.__enter__()
    contextvars.copy_context().run(inside.__exit__)
    made = memrt.alloc(100)
    inside.__exit__()
    assert s.live == made.size


def test_a_function_that_calls_itself_has_one_scope():
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


def test_one_object_may_be_entered_many_times_and_at_once():
    inside = memrt.scope("many times")
    with inside as outer, inside as inner:
        assert outer == inner == memrt.current_scope()
    with inside, memrt.scope("between"), inside as below:
        assert below.path == ("many times", "between", "many times")
    assert memrt.current_scope() is None


def leave_and_catch(inside, caught):
    try:
        inside.__exit__()
    except RuntimeError as error:
        caught.append(str(error))


def test_leaving_on_another_thread_or_task_is_told_and_changes_nothing():
    caught = []
    inside = memrt.scope("elsewhere")

    async def enter_in_one_task_leave_in_another():
        async def enter():
            inside.__enter__()

        await asyncio.create_task(enter())
        leave_and_catch(inside, caught)

    asyncio.run(enter_in_one_task_leave_in_another())
    with inside as s:
        thread = threading.Thread(target=leave_and_catch, args=(inside, caught))
        thread.start()
        thread.join()
        made = memrt.alloc(100)
    assert s.live == made.size
    message = (
        "scope 'elsewhere' was not entered in this context: "
        "leave it in the thread, task or context where it was entered"
    )
    assert caught == [message, message]


def test_exceptions_in_each_kind_of_decorated_function_leave_the_scope():
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


def test_a_generator_that_is_left_in_the_middle_takes_its_scope_along():
    def values():
        with memrt.scope("generator") as s:
            yield s, memrt.alloc(100)
            yield s, memrt.alloc(100)

    running = values()
    s, first = next(running)
    assert memrt.current_scope() == s  # a generator runs in the context of who asks for a value
    running.close()
    assert memrt.current_scope() is None
    assert s.live == first.size


@pytest.mark.parametrize(
    ("name", "why"), [("zero\0byte", "has no zero byte"), ("half a pair \ud800", "UTF-8")]
)
def test_a_name_that_is_no_utf8_text_or_has_a_zero_byte_is_refused(name, why):
    with pytest.raises(ValueError, match=f"the name of a scope .*{why}"):
        memrt.scope(name)


def test_a_huge_name_is_refused_in_one_short_sentence():
    with pytest.raises(ValueError, match="63 bytes") as caught:
        memrt.scope("x" * 10_000_000)
    assert len(str(caught.value)) < 100


def test_any_text_is_a_name():
    for name in ("a/b", " ", "\n", "%s{}", "ü" * 31, "\N{SNOWMAN}", "..."):
        with memrt.scope(name) as s:
            assert s.name == name
        assert memrt.scopes()[(name,)] == s


def test_async_generators_are_refused_too():
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


def test_scopes_without_end_are_refused_and_left_again():
    result = subprocess.run(
        [sys.executable, "-c", MANY], capture_output=True, text=True, check=True
    )  # fmt: skip
    told, count, figures = result.stdout.splitlines()
    assert told.startswith("4096 cannot open a scope: ")
    assert count == "4096"
    assert figures == "100 0"
