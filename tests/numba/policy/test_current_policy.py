"""Jitted functions follow the policy and scope of the context through every change of context."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from random import Random

import memrt
import numpy as np
import pytest
from jitted import ones, ones_without_gil
from memrt import _memrt


def policy_of_kernel() -> str:
    """Return the policy of a jitted array, which must be equal for repeated allocations."""
    found = {memrt.meminfo(ones(10)).policy for _ in range(3)}
    assert len(found) == 1, found
    return found.pop()


@pytest.fixture(scope="module", autouse=True)
def sticky_lookup():
    """Compile, and make every later allocation look up its policy."""
    ones(1), ones_without_gil(1)
    with memrt.Policy(name="first"), memrt.scope("first"):
        assert policy_of_kernel() == "first"


# --- Policies ---


def test_nested_policies_apply_to_kernels_in_turn():
    outer, inner = memrt.Policy(name="outer"), memrt.Policy(name="inner")
    for _ in range(5):
        with outer:
            assert policy_of_kernel() == "outer"
            with inner:
                assert policy_of_kernel() == "inner"
            assert policy_of_kernel() == "outer"
        assert policy_of_kernel() == "default"


def test_kernels_never_use_a_freed_policy():
    """Freed handlers and policies leave their addresses to the next ones."""
    for number in range(300):
        policy = memrt.Policy(name=f"policy {number}")
        with policy:
            assert policy_of_kernel() == f"policy {number}"
        del policy
        if number % 3:
            assert policy_of_kernel() == "default"


def test_handler_freed_by_its_context_is_forgotten():
    def work(number):
        _memrt.set_handler(new_handler(f"raw {number}"))
        return policy_of_kernel()

    for number in range(100):
        assert contextvars.Context().run(work, number) == f"raw {number}"


def test_replaced_handler_without_other_references_is_forgotten():
    def work():
        for number in range(100):
            name = f"raw {number}"
            _memrt.set_handler(new_handler(name))
            assert policy_of_kernel() == name

    contextvars.Context().run(work)


def new_handler(name):
    return _memrt.policy_new(name, None, None, None, None, False, None)


def handler_at(address, name):
    """Return a new handler at the address of a freed object, or None."""
    others = []
    for _ in range(1000):
        handler = new_handler(name)
        if id(handler) == address:
            return handler
        others.append(handler)
    return None


def test_handler_at_a_reused_address_has_its_own_policy():
    before, reused = _memrt.get_handler(), 0
    for number in range(20):
        handler = new_handler(f"old {number}")
        _memrt.set_handler(handler)
        assert policy_of_kernel() == f"old {number}"
        _memrt.set_handler(before)
        address = id(handler)
        del handler
        handler = handler_at(address, f"new {number}")
        if handler is not None:
            reused += 1
            _memrt.set_handler(handler)
            assert policy_of_kernel() == f"new {number}"
            _memrt.set_handler(before)
    assert reused > 0


def test_default_handler_of_memrt_gives_the_default_policy():
    with memrt.Policy(name="around"):
        before = _memrt.set_handler(_memrt.default_handler())
        assert policy_of_kernel() == "default"
        _memrt.set_handler(before)
        assert policy_of_kernel() == "around"


# --- Records of mappings ---


def run_with_handler(handler):
    _memrt.set_handler(handler)
    return policy_of_kernel()


def run_with_variable(variable):
    variable.set(object())
    return policy_of_kernel()


def mapping_address(context):
    """Return the address of the immutable mapping with the variables of a context."""
    return id(gc.get_referents(context)[-1])


def test_mapping_at_a_reused_address_has_its_own_policy():
    """The policies live on, so that only the mappings die. Random kinds of mappings meet at an
    address in any order in which CPython reuses addresses.
    """
    random = Random(1)
    policies = [memrt.Policy(name=f"kept {number}") for number in range(3)]
    variable = contextvars.ContextVar("other")
    addresses = [set(), set()]
    for number in range(100):
        contexts = [contextvars.Context() for _ in range(4)]
        for context in contexts:
            kind = random.randrange(2)
            policy = policies[number % 3]
            if kind == 0:
                assert context.run(run_with_handler, policy.handler) == policy.name
            else:
                assert context.run(run_with_variable, variable) == "default"
            addresses[kind].add(mapping_address(context))
        del contexts, context
    assert addresses[0] & addresses[1]


def test_unrelated_variable_keeps_the_policy():
    variable = contextvars.ContextVar("unrelated", default=0)
    with memrt.scope("kept") as scope, memrt.Policy(name="kept"):
        for number in range(40):
            token = variable.set(number)
            array = ones(10)
            assert (memrt.meminfo(array).policy, scope.live) == ("kept", 80)
            variable.reset(token)
            del array


def test_more_contexts_in_turn_than_records_keep_their_policies():
    contexts = copied_contexts([f"context {number}" for number in range(50)])
    for _ in range(3):
        for name, context in contexts.items():
            assert context.run(policy_of_kernel) == name


def test_dropped_handler_of_a_scope_is_looked_up_again():
    """The scope drops cached handlers, whose policies die, while the mapping lives."""
    policies = [memrt.Policy(name=f"user {number}") for number in range(40)]
    with memrt.scope("dropped") as scope:
        inside = contextvars.copy_context()
        for _ in range(3):
            array = inside.run(ones, 10)
            assert (memrt.meminfo(array).policy, scope.live) == ("default", 80)
            del array
            for policy in policies:  # more than a scope caches handlers
                _memrt.in_scope(policy.handler)
            others = [memrt.Policy(name=f"other {number}") for number in range(40)]
            array = inside.run(ones, 10)
            assert (memrt.meminfo(array).policy, scope.live) == ("default", 80)
            del array, others


def test_kernels_with_and_without_the_gil_have_one_policy():
    for policy in (memrt.Policy(name="first"), memrt.Policy(name="second")):
        with policy:
            for _ in range(5):
                assert policy_of_kernel() == policy.name
                assert memrt.meminfo(ones_without_gil(10)).policy == policy.name
        assert policy_of_kernel() == "default"
        assert memrt.meminfo(ones_without_gil(10)).policy == "default"


def test_child_of_a_fork_keeps_policy_and_scope():
    with memrt.Policy(name="parent"):
        assert policy_of_kernel() == "parent"
        child = os.fork()
        if child == 0:
            try:
                held = policy_of_kernel()
                with memrt.Policy(name="child"):
                    inner = policy_of_kernel()
                os._exit(0 if (held, inner) == ("parent", "child") else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert policy_of_kernel() == "parent"


def test_tracemalloc_tracks_kernels_in_a_policy():
    with memrt.Policy(name="traced"):
        assert policy_of_kernel() == "traced"
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            array = ones(100_000)
            assert memrt.meminfo(array).policy == "traced"
            assert tracemalloc.get_traced_memory()[0] - before >= array.nbytes
        finally:
            tracemalloc.stop()
        del array
        assert policy_of_kernel() == "traced"


# --- Contexts ---


def copied_contexts(names):
    contexts = {"default": contextvars.Context()}
    for name in names:
        with memrt.Policy(name=name):
            contexts[name] = contextvars.copy_context()
    return contexts


def test_context_run_applies_the_policy_of_the_context():
    contexts = copied_contexts(["a", "b"])
    for _ in range(20):
        for name, context in contexts.items():
            assert context.run(policy_of_kernel) == name
        assert policy_of_kernel() == "default"


def test_nested_context_runs_return_to_the_outer_policy():
    contexts = copied_contexts(["a", "b"])

    def outer():
        assert policy_of_kernel() == "a"
        assert contexts["b"].run(policy_of_kernel) == "b"
        assert policy_of_kernel() == "a"
        assert contexts["default"].run(policy_of_kernel) == "default"
        return policy_of_kernel()

    for _ in range(10):
        assert contexts["a"].run(outer) == "a"


def test_variable_set_in_the_same_context_is_noticed():
    """Setting a variable does not change the version of the context."""
    first, second = memrt.Policy(name="first"), memrt.Policy(name="second")
    before = _memrt.get_handler()
    for _ in range(10):
        for policy in (first, second):
            _memrt.set_handler(policy.handler)
            assert policy_of_kernel() == policy.name
    _memrt.set_handler(before)


def test_tasks_of_asyncio_keep_their_policies_and_scopes():
    async def work(number):
        with memrt.Policy(name=f"task {number}"):
            for _ in range(5):
                await asyncio.sleep(0)
                assert policy_of_kernel() == f"task {number}"
            with memrt.scope(f"task {number}") as scope:
                for _ in range(5):
                    array = ones(10 + number)
                    assert scope.live == array.nbytes
                    await asyncio.sleep(0)
                    del array
                    await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert policy_of_kernel() == "default"

    async def main():
        await asyncio.gather(*(work(number) for number in range(8)))

    asyncio.run(main())


def test_generators_leave_their_policy_in_force():
    def work(name):
        with memrt.Policy(name=name):
            yield policy_of_kernel()
            yield policy_of_kernel()

    left, right = work("left"), work("right")
    assert next(left) == "left"
    assert policy_of_kernel() == "left"
    assert next(right) == "right"
    assert policy_of_kernel() == "right"
    right.close()
    assert policy_of_kernel() == "left"
    left.close()
    assert policy_of_kernel() == "default"


# --- Threads ---


@pytest.fixture
def frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run_threads(work, count=4):
    failures = []

    def caught(number):
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=caught, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_threads_that_take_turns_keep_their_policies(frequent_switches):
    def work(number):
        if number == 0:  # without a policy
            for _ in range(500):
                assert policy_of_kernel() == "default"
            return
        policy = memrt.Policy(name=f"thread {number}")
        for _ in range(100):
            with policy:
                for _ in range(5):
                    assert policy_of_kernel() == f"thread {number}"
            assert policy_of_kernel() == "default"

    run_threads(work)


def test_threads_that_take_turns_keep_their_scopes(frequent_switches):
    def work(number):
        for turn in range(50):
            with memrt.scope(f"thread {number} {turn % 3}") as scope:
                for _ in range(5):
                    array = ones(5 + number)
                    assert scope.live == array.nbytes
                    del array

    run_threads(work)


def test_threads_without_the_gil_use_the_default_policy(frequent_switches):
    """Other threads hold the GIL, with policies that die, while these allocate without the GIL."""
    stop = threading.Event()

    def work(number):
        if number < 2:
            while not stop.is_set():
                array = ones_without_gil(1000)
                assert memrt.meminfo(array).policy == "default"
                del array
            return
        for turn in range(300):
            with memrt.Policy(name=f"short {turn}"):
                assert policy_of_kernel() == f"short {turn}"
        stop.set()

    run_threads(work, 3)


def test_new_threads_at_reused_addresses_have_no_policy():
    found = []
    for number in range(100):

        def work(number=number):
            found.append(policy_of_kernel())
            with memrt.Policy(name=f"thread {number}"):
                found.append(policy_of_kernel())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found == [name for number in range(100) for name in ("default", f"thread {number}")]


def test_executor_runs_kernels_in_the_scope_of_the_submitter():
    policy = memrt.Policy(name="enabled")
    memrt.enable(policy)
    try:
        with ThreadPoolExecutor(2) as executor:
            for number in range(10):
                with memrt.scope(f"submitter {number}") as scope:
                    array = executor.submit(ones, 10).result()
                    assert (memrt.meminfo(array).policy, scope.live) == ("enabled", 80)
                    del array
    finally:
        memrt.disable()


# --- Scopes ---


def test_new_scopes_count_kernels_one_after_another():
    """Entries of a left scope leave their address to the entries of the next scope."""
    scopes = []
    for number in range(200):
        with memrt.scope(f"scope {number}") as scope:
            arrays = [ones(10) for _ in range(3)]
            assert scope.live == 240
        scopes.append(scope)
        array = ones(10)
        assert [other.live for other in scopes[-2:]][-1] == 240
        del arrays, array
    assert {scope.live for scope in scopes} == {0}
    assert {scope.stats().alloc for scope in scopes} == {3}


def entries_at(address, entry):
    """Return new scope entries at the address of freed entries, or None."""
    others = []
    for _ in range(1000):
        entries = (entry,)
        if id(entries) == address:
            return entries
        others.append(entries)
    return None


def test_entries_at_a_reused_address_count_in_their_own_scope():
    with memrt.scope("old") as old:
        pass
    with memrt.scope("new") as new:
        pass
    old_entry, new_entry = ((None, s, s._capsule, s._handlers) for s in (old, new))
    reused = 0
    for _ in range(20):
        entries = (old_entry,)
        _memrt.set_scope_entries(entries)
        array = ones(10)
        assert (old.live, new.live) == (80, 0)
        _memrt.set_scope_entries(())
        address = id(entries)
        del entries, array
        entries = entries_at(address, new_entry)
        if entries is not None:
            reused += 1
            _memrt.set_scope_entries(entries)
            array = ones(10)
            assert (old.live, new.live) == (0, 80)
            _memrt.set_scope_entries(())
            del array
    assert reused > 0


def test_numpy_array_in_another_context_keeps_kernels_apart():
    """NumPy's array brings CPython's cache of the handler up to date, but not of the scope."""
    with memrt.scope("copied") as scope:
        copied = contextvars.copy_context()
    for _ in range(10):
        array = copied.run(ones, 10)
        np.empty(1000)
        other = ones(10)
        assert scope.live == 80
        copied.run(np.empty, 1000)
        more = copied.run(ones, 10)
        assert scope.live == 160
        del array, other, more


def test_nested_scopes_count_kernels_in_the_innermost():
    with memrt.scope("outer") as outer:
        for number in range(20):
            with memrt.scope(f"inner {number}") as inner:
                array = ones(10)
                assert (inner.live, outer.live) == (80, 80)
            more = ones(20)
            assert (inner.live, outer.live) == (80, 240)
            del array, more
        assert outer.stats().alloc == 40


def test_scope_of_another_context_does_not_count_kernels():
    with memrt.scope("copied") as scope:
        copied = contextvars.copy_context()
    for _ in range(10):
        array = copied.run(ones, 10)
        other = ones(10)
        assert scope.live == 80
        third = contextvars.Context().run(ones, 10)
        assert scope.live == 80
        del array, other, third


def test_kernels_count_for_policy_and_scope_together():
    policies = [memrt.Policy(name=f"policy {number}") for number in range(40)]
    with memrt.scope("many policies") as scope:
        for _ in range(2):  # more policies than a scope caches handlers
            for policy in policies:
                with policy:
                    array = ones(10)
                    assert memrt.meminfo(array).policy == policy.name
                    assert (scope.live, policy.stats().live) == (80, 80)
                    del array
            array = ones(10)
            assert (memrt.meminfo(array).policy, scope.live) == ("default", 80)
            del array
    del policies
    gc.collect()


def test_scope_left_out_of_order_leaves_the_other_scope():
    first, second = memrt.scope("first out"), memrt.scope("second out")
    outer = first.__enter__()
    inner = second.__enter__()
    array = ones(10)
    assert (inner.live, outer.live) == (80, 80)
    first.__exit__(None, None, None)
    more = ones(10)
    assert inner.live == 160
    second.__exit__(None, None, None)
    last = ones(10)
    assert (inner.live, outer.live) == (160, 160)
    del array, more, last


def test_entering_a_scope_keeps_the_handler_of_numpy():
    def work():
        before = _memrt.get_handler()
        with memrt.scope("unchanged"):
            assert _memrt.get_handler() is before
            assert memrt.handler_name() == "default_allocator"
        return _memrt.get_handler() is before

    assert contextvars.Context().run(work)
