"""Policies as context managers: the previous handler returns, whatever the order of exits."""

import asyncio
import contextvars
import copy
import gc
import itertools
import os
import pickle
import subprocess
import sys
import threading
import warnings
from unittest.mock import Mock

import memrt
import numpy as np
import pytest
from atonce import on_threads
from memrt import _memrt
from memrt._policy import handlers

# Options that enable caching, whatever the environment sets.
KEEPING = {
    "MEMRT_CACHE": "1",
    "MEMRT_CHECK": "0",
    "MEMRT_CACHE_LIMIT": "none",
    "MEMRT_DECAY": "never",
}


@pytest.fixture
def before():
    """Yield the current handler; the handler must be in force after the test too."""
    handler = _memrt.get_handler()
    yield handler
    assert _memrt.get_handler() is handler


def in_force():
    return memrt.handler_name(np.ones(3))


def test_policy_is_in_force_only_inside_its_block(before):
    policy = memrt.Policy(alignment=4096, name="inside")
    assert (policy.name, policy.alignment) == ("inside", 4096)
    with policy as entered:
        assert entered is policy
        assert _memrt.get_handler() is policy.handler
        assert in_force() == memrt.handler_name() == "memrt:inside"
    assert in_force() == "default_allocator"


def test_policies_nest_and_can_be_reentered(before):
    a, b = memrt.Policy(name="a"), memrt.Policy(name="b")
    seen = []
    with a, b, a, a:
        seen.append(in_force())
        with b:
            seen.append(in_force())
        seen.append(in_force())
    assert seen == ["memrt:a", "memrt:b", "memrt:a"]


def test_exception_restores_the_previous_handler(before):
    with pytest.raises(ZeroDivisionError), memrt.Policy(), memrt.Policy():
        raise ZeroDivisionError


def test_policy_is_reusable(before):
    policy = memrt.Policy(name="again")
    for _ in range(3):
        with policy:
            assert in_force() == "memrt:again"
        assert _memrt.get_handler() is before


def test_any_exit_order_restores_the_first_handler(before):
    for order in itertools.permutations(range(3)):
        entered = [memrt.Policy(name=str(i)) for i in range(3)]
        for policy in entered:
            policy.__enter__()
        for place, i in enumerate(order):
            entered[i].__exit__()
            left = [name for name in range(3) if name not in order[: place + 1]]
            assert not left or in_force() == f"memrt:{left[-1]}"
        assert _memrt.get_handler() is before


def test_exit_out_of_order_keeps_the_inner_policy(before):
    a, b = memrt.Policy(name="a"), memrt.Policy(name="b")
    a.__enter__()
    b.__enter__()
    a.__exit__()
    assert in_force() == "memrt:b"
    b.__exit__()


def test_suspended_generator_keeps_the_policy_of_its_caller(before):
    def produce():
        with memrt.Policy(name="generator"):
            yield in_force()
            yield in_force()

    generator = produce()
    assert next(generator) == "memrt:generator"
    with memrt.Policy(name="consumer"):
        assert in_force() == "memrt:consumer"
        assert next(generator) == "memrt:consumer"  # a generator runs in the context of its caller
        generator.close()
        assert in_force() == "memrt:consumer"
    assert _memrt.get_handler() is before


def test_interleaved_tasks_have_separate_policies(before):
    async def main():
        a_inside, b_inside, a_left = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def first():
            with memrt.Policy(name="first"):
                a_inside.set()
                await b_inside.wait()
                assert in_force() == "memrt:first"
            assert in_force() == "default_allocator"
            a_left.set()

        async def second():
            await a_inside.wait()
            with memrt.Policy(name="second"):
                b_inside.set()
                await a_left.wait()
                assert in_force() == "memrt:second"
            assert in_force() == "default_allocator"

        await asyncio.gather(first(), second())

    asyncio.run(main())


def test_task_inherits_the_policy_at_its_creation(before):
    async def child():
        return in_force()

    async def main():
        with memrt.Policy(name="parent"):
            task = asyncio.create_task(child())
        return await task

    assert asyncio.run(main()) == "memrt:parent"


def test_threads_enter_and_exit_a_shared_policy_independently(before):
    policy = memrt.Policy(name="shared")
    steps = threading.Barrier(2, timeout=30)
    seen = {}

    def first():
        with policy:
            steps.wait()  # both threads are inside
            seen["first inside"] = in_force()
        steps.wait()  # the first thread has left
        seen["first after"] = in_force()

    def second():
        with policy:
            steps.wait()
            steps.wait()
            seen["second inside"] = in_force()
        seen["second after"] = in_force()

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {
        "first inside": "memrt:shared",
        "first after": "default_allocator",
        "second inside": "memrt:shared",
        "second after": "default_allocator",
    }


def test_exit_without_enter_warns_and_changes_nothing(before):
    policy = memrt.Policy(name="elsewhere")
    with pytest.warns(RuntimeWarning, match="policy 'elsewhere' was not entered in this context"):
        policy.__exit__()
    with policy:
        with pytest.warns(RuntimeWarning, match="not entered"):
            contextvars.Context().run(policy.__exit__)
        assert in_force() == "memrt:elsewhere"


def suspend_inside(manager):
    """Return a generator suspended inside of `manager`, which was entered in a separate context."""

    def produce():
        with manager:
            yield

    generator = produce()
    contextvars.Context().run(next, generator)
    return generator


@pytest.mark.parametrize("make", [memrt.Policy, lambda: memrt.scope("generator")])
@pytest.mark.parametrize("action", ["always", "error"])
def test_exit_in_wrong_context_keeps_the_pending_exception(before, make, action):
    generator = suspend_inside(make())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter(action)
        with pytest.raises(ZeroDivisionError) as caught:
            generator.throw(ZeroDivisionError())
    assert caught.value.__context__ is None
    assert len(seen) == (action == "always")


@pytest.mark.parametrize("make", [memrt.Policy, lambda: memrt.scope("generator")])
def test_exit_in_wrong_context_warns_at_the_with_statement(before, make):
    generator = suspend_inside(make())
    with pytest.warns(RuntimeWarning, match="was not entered in this context") as seen:
        assert next(generator, "over") == "over"
    assert seen[0].filename == __file__
    generator = suspend_inside(make())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            next(generator)


def test_failed_exit_keeps_the_pending_exception(before, monkeypatch):
    policy = memrt.Policy()
    policy.__enter__()
    with monkeypatch.context() as patched:
        patched.setattr(handlers, "pop", Mock(side_effect=MemoryError))
        policy.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
        with pytest.raises(MemoryError):
            policy.__exit__()
    policy.__exit__()


def test_exit_in_copied_context_keeps_policy_in_the_original(before):
    policy = memrt.Policy(name="copied")
    with policy:
        copy = contextvars.copy_context()
        copy.run(policy.__exit__)
        assert copy.run(in_force) == "default_allocator"
        assert in_force() == "memrt:copied"


def test_exit_restores_foreign_handler_set_between_policies(before, recorder):
    foreign = recorder.new(None, "foreign")
    a, b = memrt.Policy(name="a"), memrt.Policy(name="b")
    a.__enter__()
    _memrt.set_handler(foreign)
    b.__enter__()
    a.__exit__()
    assert in_force() == "memrt:b"
    b.__exit__()
    assert _memrt.get_handler() is foreign
    _memrt.set_handler(before)


def test_foreign_handler_set_inside_policy_stays_after_exit(before, recorder):
    foreign = recorder.new(None, "foreign")
    a, b = memrt.Policy(name="a"), memrt.Policy(name="b")
    a.__enter__()
    b.__enter__()
    made = [np.ones(10)]
    found = _memrt.set_handler(foreign)
    made.append(np.ones(20))
    for policy in (b, a):
        message = (
            f"handler 'foreign' of another library stays in force after policy {policy.name!r}"
        )
        with pytest.warns(RuntimeWarning, match=message):
            policy.__exit__()
    made.append(np.ones(30))
    assert _memrt.get_handler() is foreign
    _memrt.set_handler(found)  # as a library does that leaves in the wrong order
    made.append(np.ones(40))
    names = ["memrt:b", "foreign", "foreign", "memrt:b"]
    assert [memrt.handler_name(array) for array in made] == names
    made.clear()
    assert b.stats().live == 0
    _memrt.set_handler(before)


def test_default_handler_set_inside_policy_causes_no_warning(before):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with memrt.Policy():
            _memrt.set_handler(before)
    assert caught == []
    assert _memrt.get_handler() is before


def test_handler_is_a_single_object_and_outlives_its_policy(before):
    policy = memrt.Policy(name="one")
    handler = policy.handler
    assert policy.handler is handler
    del policy
    gc.collect()
    _memrt.set_handler(handler)
    a = np.ones(10)
    _memrt.set_handler(before)
    del handler
    assert memrt.handler_name(a) == "memrt:one"


def test_policies_lists_each_policy_object_once(before):
    default = memrt.debug.default_policy()
    policy = memrt.Policy(name="listed")
    listed = memrt.debug.policies()
    assert listed[0] is default is memrt.debug.default_policy()
    assert any(p is policy for p in listed)
    assert [p.name for p in listed].count("listed") == 1


def test_policy_is_listed_while_its_handler_lives(before):
    handler = memrt.Policy(name="handler only").handler
    gc.collect()
    found = [p for p in memrt.debug.policies() if p.name == "handler only"]
    assert len(found) == 1
    with found[0]:
        assert in_force() == "memrt:handler only"
    del handler


def test_copy_of_a_policy_is_the_same_object(before):
    policy = memrt.Policy(name="single")
    assert copy.copy(policy) is copy.deepcopy(policy) is policy
    assert copy.deepcopy([policy])[0] is policy
    with memrt.scope("elsewhere"):
        assert memrt.debug.policies()[-1] is policy
        assert (
            memrt.debug.default_policy()
            is memrt.debug.policies()[0]
            is copy.copy(memrt.debug.default_policy())
        )


def test_pickle_of_a_policy_raises_type_error(before):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot pickle policy 'here': a policy belongs to"):
            pickle.dumps(memrt.Policy(name="here"), protocol)


def test_second_init_of_a_policy_changes_nothing(before):
    policy = memrt.Policy(4096, "first")
    handler = policy.handler
    policy.__init__(64, "second")
    assert (policy.name, policy.alignment, policy.handler) == ("first", 4096, handler)


def test_policy_has_a_single_object_during_construction(before):
    """List policies at each line of the construction, as threads, signal handlers or finalizers
    may.
    """
    found = []

    def look(frame, event, argument):
        if not frame.f_code.co_filename.endswith("_policy/policy.py"):
            return None
        found.extend(memrt.debug.policies())
        return look

    handlers = [memrt.Policy(name="without object").handler]
    sys.settrace(look)
    try:
        found.append(memrt.Policy(name="new"))
        handlers.append(memrt.debug.policies())
    finally:
        sys.settrace(None)
    for name in ("new", "without object"):
        assert len({id(policy) for policy in found if policy.name == name}) == 1
        assert len([policy for policy in found if policy.name == name]) > 4


def test_concurrent_policies_calls_return_the_same_objects(before):
    handlers = [memrt.Policy(name=str(number)).handler for number in range(50)]
    listed = on_threads(lambda _: memrt.debug.policies(), 4)
    assert len(listed[0]) == 1 + len(handlers)
    assert all(list(map(id, each)) == list(map(id, listed[0])) for each in listed)


def test_default_policy_can_be_entered(before):
    with memrt.debug.default_policy():
        assert in_force() == memrt.handler_name() == "memrt"


def test_policy_accounts_are_separate_and_sum_to_the_process(before):
    a, b = memrt.Policy(name="a"), memrt.Policy(name="b")
    process = memrt.stats()
    with a:
        x = np.ones(1000, "u1")
        with b:
            y = np.ones(500, "u1")
    assert (a.stats().live, b.stats().live) == (1000, 500)
    assert (memrt.stats() - process).live == 1500
    del x, y
    assert (a.stats().live, b.stats().live) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"alignment": 3}, ValueError),
        ({"alignment": 0}, ValueError),
        ({"alignment": "64"}, TypeError),
        ({"alignment": 64.0}, TypeError),
        ({"name": "x" * 64}, ValueError),
        ({"name": 5}, TypeError),
        ({"name": "a\0b"}, ValueError),
    ],
)
def test_invalid_policy_settings_are_refused(before, arguments, error):
    with pytest.raises(error):
        memrt.Policy(**arguments)


def test_repr_shows_the_name_and_settings_of_a_policy(before):
    assert repr(memrt.Policy(256, "wide")) == "<memrt.Policy 'wide', alignment 256>"
    policy = memrt.Policy(name="lean", cache_limit="1M", decay=0, hugepages="off")
    assert repr(policy) == (
        "<memrt.Policy 'lean', alignment 64, cache_limit 1048576, decay 0, hugepages off>"
    )


@pytest.mark.parametrize(("guard", "shown"), [("all", "1"), ("64M", "67108864"), (0, "0")])
def test_guard_of_a_policy_is_one_of_its_options(before, guard, shown):
    policy = memrt.Policy(name="guarded", guard=guard)
    assert policy.options == {"MEMRT_GUARD_SAMPLE": shown}
    assert repr(policy) == f"<memrt.Policy 'guarded', alignment 64, guard_sample {shown}>"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"guard": "some"}, ValueError("guard_sample must be a number of bytes")),
        ({"guard": 1.5}, TypeError("guard must be a text or a whole number, got float 1.5")),
        (
            {"guard": "all", "allocator": (len, len)},
            ValueError("hugepages and guard must be None for a policy with an allocator"),
        ),
    ],
)
def test_bad_guard_of_a_policy_is_refused(before, arguments, error):
    with pytest.raises(type(error), match=str(error)):
        memrt.Policy(**arguments)


def test_options_of_a_live_policy_change(before):
    policy = memrt.Policy(decay=70)
    policy.cache_limit, policy.decay = "2M", "never"
    assert (policy.cache_limit, policy.decay, policy.hugepages) == ("2097152", "never", None)
    assert "cache_limit 2097152, decay never" in repr(policy)
    policy.cache_limit = policy.decay = None
    assert policy.options == {}
    policy.decay = np.int64(5)
    assert policy.options == {"MEMRT_DECAY": "5"}


def test_guard_of_a_live_policy_changes(before):
    policy = memrt.Policy(name="later")
    for guard, shown in (("all", "1"), ("64M", "67108864"), (0, "0")):
        policy.guard = guard
        assert policy.guard == (guard if guard == "all" else shown)
        assert repr(policy) == f"<memrt.Policy 'later', alignment 64, guard_sample {shown}>"
        assert ("MEMRT_GUARD_SAMPLE", shown) in policy.options.items()
    policy.guard = None
    assert (policy.guard, policy.options) == (None, {})


def test_options_of_a_live_policy_change_in_a_scope(before):
    policy = memrt.Policy(name="both", decay=70)
    with memrt.scope("inner"), policy:
        np.ones(10)
        policy.decay, policy.guard = 80, 0
    assert policy.options == {"MEMRT_DECAY": "80", "MEMRT_GUARD_SAMPLE": "0"}


def test_cached_memory_follows_the_limit_of_a_live_policy(before):
    policy = memrt.Policy(cache_limit="none", decay="never")
    with policy:
        np.ones(1_000_000)  # 8 MB, kept for reuse where the process has caches
    policy.cache_limit = 0
    assert policy.stats().cached == 0


@pytest.mark.parametrize(
    ("name", "value", "error", "reason"),
    [
        ("decay", "soon", ValueError, "decay must be"),
        ("cache_limit", -1, ValueError, "cache_limit must be"),
        ("hugepages", 7, ValueError, "hugepages must be"),
        ("decay", 1.5, TypeError, "decay must be"),
        ("guard", "some", ValueError, "guard_sample must be a number of bytes"),
        ("guard", 1.5, TypeError, "guard must be a text or a whole number"),
        ("alignment", 128, AttributeError, "live blocks have the alignment"),
        ("name", "other", AttributeError, "traces and reports have the name"),
        ("allocator", None, AttributeError, "no attribute 'allocator'"),
    ],
)
def test_bad_change_of_a_policy_is_refused_with_reason(before, name, value, error, reason):
    policy = memrt.Policy(name="lean", decay=70)
    with pytest.raises(error, match=reason):
        setattr(policy, name, value)
    assert policy.options == {"MEMRT_DECAY": "70"}
    assert (policy.alignment, policy.name) == (64, "lean")


def test_policy_without_own_cache_refuses_changes(before):
    for policy in (memrt.Policy(), memrt.debug.default_policy()):
        with pytest.raises(TypeError, match="must have a cache of its own to change decay"):
            policy.decay = 5
        assert policy.decay is None
    with pytest.raises(TypeError, match="must have memrt's allocator to change guard_sample"):
        memrt.Policy(allocator=memrt.adaptors.counting()).guard = "all"
    with pytest.raises(TypeError):
        memrt._memrt.policy_option_set(None, "decay", "5", "more")
    with pytest.raises(TypeError):
        memrt._memrt.policy_option_set(5, "decay", "5")


def test_options_of_a_policy_outlive_its_object(before):
    policy = memrt.Policy(name="own", decay="never", hugepages="ADVISE")
    own = {"MEMRT_DECAY": "never", "MEMRT_HUGEPAGES": "advise"}
    assert policy.options == own
    policy.options.clear()
    handler = policy.handler
    del policy
    assert memrt.debug.policies()[-1].options == own
    assert memrt.debug.default_policy().options == {}
    del handler


def test_policy_limits_are_keyword_only(before):
    with pytest.raises(TypeError):
        memrt.Policy(64, "name", "1M")


def test_policy_caches_within_its_limits_until_released(run_python):
    result = run_python(
        "import memrt, numpy as np\n"
        "def kept(policy):\n"
        "    with policy:\n"
        "        arrays = [np.ones(1 << 20) for _ in range(3)]\n"
        "    del arrays\n"
        "    return memrt.stats(policy).cached >> 20\n"
        "print(kept(memrt.Policy(cache_limit=0)), kept(memrt.Policy(decay=0)))\n"
        "print(kept(memrt.Policy(cache_limit='20M', decay='never')))\n"
        "policy = memrt.Policy(decay='never')\n"
        "print(kept(policy))\n"
        "assert memrt.stats().cached >= memrt.stats(policy).cached\n"
        "print(memrt.release_unused() >> 20 >= 24, memrt.stats(policy).cached)\n"
        "print(kept(policy))\n"
        "policy = None\n"
        "print(memrt.stats().cached >> 20 < 8)\n",
        env=KEEPING,
    )
    assert result.stdout.split() == ["0", "0", "16", "24", "True", "0", "24", "True"]


def test_policy_beyond_the_maximum_is_refused(before):
    kept = []
    with pytest.raises(RuntimeError, match="policies"):
        kept.extend(iter(memrt.Policy, None))  # create policies until the constructor raises
    assert 4000 < len(kept) < 5000
    kept.pop()
    assert memrt.Policy(name="room again").name == "room again"


@pytest.mark.parametrize("nth", range(1, 6))
def test_failed_policy_constructor_leaves_no_policy(before, nth):
    names = len(memrt.debug.policies())
    with memrt.testing.fail_allocations(nth) as plan:
        try:
            memrt.Policy(name="failing")
        except MemoryError:
            assert plan.points >= nth
        else:
            assert plan.points < nth
    gc.collect()
    assert len(memrt.debug.policies()) == names


ADDRESSES = """
import memrt, numpy as np
memrt.enable({policy})
for size in range(1, 200):
    kept = [np.empty(size, np.uint8) for _ in range(5)]
    print(size, *(array.ctypes.data % 4096 for array in kept))
"""


@pytest.mark.parametrize(
    ("policy", "small", "large"),
    [
        ("", 16, 64),
        ("memrt.Policy()", 64, 64),
        ("memrt.Policy(alignment=None)", 16, 64),
        ("memrt.Policy(alignment=256)", 256, 256),
    ],
)
def test_array_alignment_depends_on_policy_and_size(policy, small, large):
    run = subprocess.run(
        [sys.executable, "-c", ADDRESSES.format(policy=policy)],
        env=os.environ | {"MEMRT_CACHE": "1", "MEMRT_CHECK": "0", "MEMRT_TRACK": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [[int(word) for word in line.split()] for line in run.stdout.splitlines()]
    assert len(rows) == 199
    for size, *addresses in rows:
        alignment = small if size <= 64 else large
        assert all(address % alignment == 0 for address in addresses), size
    if small == 16:
        assert any(address % 64 for size, *addresses in rows for address in addresses)
