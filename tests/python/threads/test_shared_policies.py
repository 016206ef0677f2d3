"""Threads that enter policies and scopes, and enable and disable memrt, at the same time."""

import threading

import memrt
import numpy as np
from atonce import on_threads

ROUNDS = 100


def test_threads_enter_their_own_and_a_shared_policy():
    shared = memrt.Policy(name="shared")

    def work(number):
        own = memrt.Policy(name=f"own {number}")
        for _ in range(ROUNDS):
            with own:
                first = np.empty(10)
                with shared:
                    second = np.empty(10)
                third = np.empty(10)
            names = [memrt.handler_name(array) for array in (first, second, third)]
            assert names == [f"memrt:own {number}", "memrt:shared", f"memrt:own {number}"]
        return own.stats().alloc

    assert on_threads(work) == [2 * ROUNDS] * 8
    assert shared.stats().alloc == 8 * ROUNDS


def test_threads_use_many_policies_in_one_scope():
    """The scope caches few handlers, so threads drop each other's handlers from the cache."""
    policies = [memrt.Policy(name=f"policy {i}") for i in range(40)]

    def work(number):
        for i in range(ROUNDS):
            policy = policies[(number * 5 + i) % len(policies)]
            mi = memrt.alloc(100, policy=policy)
            with policy:
                array = np.empty(10)
            assert memrt.handler_name(array) == f"memrt:{policy.name}"
            assert mi.policy == policy.name

    with memrt.scope("crowded") as crowded:
        bound = memrt.bind_scope(work)
    on_threads(bound)
    assert crowded.stats().alloc == 2 * 8 * ROUNDS
    assert crowded.live == 0


def test_threads_open_scopes_of_the_same_names():
    def work(number):
        for i in range(ROUNDS):
            with memrt.scope("shared outer"), memrt.scope(f"inner {i % 5}") as inner:
                mi = memrt.alloc(10)
                assert inner.path == ("shared outer", f"inner {i % 5}")
                assert mi.nbytes == 10
        assert len(memrt.scopes()) > 0

    before = sum(scope.stats().alloc for scope in memrt.scopes() if scope.path == ("shared outer",))
    on_threads(work)
    assert memrt.scopes()["shared outer"].stats().alloc - before == 8 * ROUNDS


def test_threads_get_the_same_object_of_a_policy():
    for _ in range(ROUNDS // 2):
        with memrt.Policy(name="only"):  # the array keeps the policy, without a Python object
            array = np.empty(10)

        def find(_):
            return next(each for each in memrt.debug.policies() if each.name == "only")

        found = on_threads(find)
        assert all(policy is found[0] for policy in found)
        del array, found


def test_threads_enable_and_disable_memrt():
    before = vars(threading.Thread)["_bootstrap_inner"]

    def work(_):
        for _ in range(ROUNDS):
            memrt.enable()
            assert memrt.is_managed(np.empty(10))
            memrt.disable()

    on_threads(work)
    assert memrt.debug.enabled() is None
    assert vars(threading.Thread)["_bootstrap_inner"] is before
