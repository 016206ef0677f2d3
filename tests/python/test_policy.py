"""Policies as context managers: what stood before is back, in whatever order they are left."""

import asyncio
import contextvars
import gc
import itertools
import os
import subprocess
import sys
import threading

import memrt
import numpy as np
import pytest
from memrt import _memrt

# Options under which memory is kept, whatever stands in the environment.
KEEPING = {
    "MEMRT_CACHE": "1",
    "MEMRT_CHECK": "0",
    "MEMRT_CACHE_LIMIT": "none",
    "MEMRT_DECAY": "never",
}


@pytest.fixture
def before():
    """The handler that stands before; it must stand after the test too."""
    handler = _memrt.get_handler()
    yield handler
    assert _memrt.get_handler() is handler


def in_force():
    return memrt.handler_name(np.ones(3))


def test_a_policy_is_in_force_inside_and_gone_after(before):
    policy = memrt.Policy(alignment=4096, name="inside")
    assert (policy.name, policy.alignment) == ("inside", 4096)
    with policy as entered:
        assert entered is policy
        assert _memrt.get_handler() is policy.handler
        assert in_force() == memrt.handler_name() == "memrt:inside"
    assert in_force() == "default_allocator"


def test_policies_nest_and_may_be_entered_twice(before):
    a, b = memrt.Policy(name="a"), memrt.Policy(name="b")
    seen = []
    with a, b, a, a:
        seen.append(in_force())
        with b:
            seen.append(in_force())
        seen.append(in_force())
    assert seen == ["memrt:a", "memrt:b", "memrt:a"]


def test_an_exception_leaves_and_restores(before):
    with pytest.raises(ZeroDivisionError), memrt.Policy(), memrt.Policy():
        raise ZeroDivisionError


def test_a_policy_is_reusable(before):
    policy = memrt.Policy(name="again")
    for _ in range(3):
        with policy:
            assert in_force() == "memrt:again"
        assert _memrt.get_handler() is before


def test_every_order_of_leaving_three_policies_restores_the_first_handler(before):
    for order in itertools.permutations(range(3)):
        entered = [memrt.Policy(name=str(i)) for i in range(3)]
        for policy in entered:
            policy.__enter__()
        for i in order:
            entered[i].__exit__()
        assert _memrt.get_handler() is before


def test_leaving_out_of_order_keeps_the_inner_one_in_force(before):
    a, b = memrt.Policy(name="a"), memrt.Policy(name="b")
    a.__enter__()
    b.__enter__()
    a.__exit__()
    assert in_force() == "memrt:b"
    b.__exit__()


def test_a_generator_suspended_inside_the_block_disturbs_nobody(before):
    def produce():
        with memrt.Policy(name="generator"):
            yield in_force()
            yield in_force()

    generator = produce()
    assert next(generator) == "memrt:generator"
    with memrt.Policy(name="consumer"):
        assert in_force() == "memrt:consumer"
        assert next(generator) == "memrt:consumer"  # a generator has no context of its own
        generator.close()
        assert in_force() == "memrt:consumer"
    assert _memrt.get_handler() is before


def test_interleaved_tasks_each_have_their_own(before):
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


def test_tasks_inherit_the_policy_that_stood_when_they_were_made(before):
    async def child():
        return in_force()

    async def main():
        with memrt.Policy(name="parent"):
            task = asyncio.create_task(child())
        return await task

    assert asyncio.run(main()) == "memrt:parent"


def test_interleaved_threads_each_have_their_own(before):
    policy = memrt.Policy(name="shared")
    steps = threading.Barrier(2, timeout=30)
    seen = {}

    def first():
        with policy:
            steps.wait()  # both inside
            seen["first inside"] = in_force()
        steps.wait()  # first has left
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


def test_leaving_where_it_was_never_entered_is_an_error_that_changes_nothing(before):
    policy = memrt.Policy(name="elsewhere")
    with pytest.raises(RuntimeError, match="'elsewhere' was not entered in this context"):
        policy.__exit__()
    with policy:
        with pytest.raises(RuntimeError, match="not entered"):
            contextvars.Context().run(policy.__exit__)
        assert in_force() == "memrt:elsewhere"


def test_a_policy_left_in_a_copied_context_stands_in_the_original(before):
    policy = memrt.Policy(name="copied")
    with policy:
        copy = contextvars.copy_context()
        copy.run(policy.__exit__)
        assert copy.run(in_force) == "default_allocator"
        assert in_force() == "memrt:copied"


def test_a_foreign_handler_put_in_between_is_what_the_inner_policy_restores(before, recorder):
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


def test_the_handler_is_one_object_and_outlives_its_policy(before):
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


def test_policies_lists_each_live_one_once_and_by_identity(before):
    default = memrt.default_policy()
    policy = memrt.Policy(name="listed")
    listed = memrt.policies()
    assert listed[0] is default is memrt.default_policy()
    assert any(p is policy for p in listed)
    assert [p.name for p in listed].count("listed") == 1


def test_a_policy_whose_object_is_gone_is_listed_while_its_handler_lives(before):
    handler = memrt.Policy(name="handler only").handler
    gc.collect()
    found = [p for p in memrt.policies() if p.name == "handler only"]
    assert len(found) == 1
    with found[0]:
        assert in_force() == "memrt:handler only"
    del handler


def test_the_default_policy_can_be_entered(before):
    with memrt.default_policy():
        assert in_force() == memrt.handler_name() == "memrt"


def test_accounts_are_separate_and_add_up(before):
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
def test_settings_that_make_no_sense_are_refused(before, arguments, error):
    with pytest.raises(error):
        memrt.Policy(**arguments)


def test_repr_names_the_policy_and_what_it_sets(before):
    assert repr(memrt.Policy(256, "wide")) == "<memrt.Policy 'wide', alignment 256>"
    policy = memrt.Policy(name="lean", cache_limit="1M", decay=0, hugepages="off")
    assert repr(policy) == (
        "<memrt.Policy 'lean', alignment 64, cache_limit 1048576, decay 0, hugepages off>"
    )


def test_a_policy_has_the_options_that_it_sets_wherever_it_is_found(before):
    policy = memrt.Policy(name="own", decay="never", hugepages="ADVISE")
    own = {"MEMRT_DECAY": "never", "MEMRT_HUGEPAGES": "advise"}
    assert policy.options == own
    policy.options.clear()
    handler = policy.handler
    del policy
    assert memrt.policies()[-1].options == own
    assert memrt.default_policy().options == {}
    del handler


def test_limits_are_given_by_name(before):
    with pytest.raises(TypeError):
        memrt.Policy(64, "name", "1M")


def test_a_policy_keeps_large_blocks_as_it_says_until_nobody_holds_it(run_python):
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


def test_more_policies_than_there_is_room_for_are_refused_with_the_limit(before):
    kept = []
    with pytest.raises(RuntimeError, match="policies"):
        kept.extend(iter(memrt.Policy, None))  # until it raises
    assert 4000 < len(kept) < 5000
    kept.pop()
    assert memrt.Policy(name="room again").name == "room again"


@pytest.mark.parametrize("nth", range(1, 6))
def test_a_failure_while_a_policy_is_made_loses_nothing(before, nth):
    names = len(memrt.policies())
    with memrt.testing.fail_allocations(nth) as plan:
        try:
            memrt.Policy(name="failing")
        except MemoryError:
            assert plan.points >= nth
        else:
            assert plan.points < nth
    gc.collect()
    assert len(memrt.policies()) == names


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
def test_who_names_no_alignment_gets_16_up_to_64_bytes_and_64_above(policy, small, large):
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
