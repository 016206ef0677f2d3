"""Destructors in Python may run any code, without blocking or harming other code."""

import ctypes
import functools
import gc
import os
import sys
import threading
import weakref

import memrt
import numpy as np
import pytest
from atonce import on_threads

BYTES = ctypes.create_string_buffer(64)
ADDRESS = ctypes.addressof(BYTES)
LINKS = 100_000
SMALL_STACK = max(128 * 1024, os.sysconf("SC_THREAD_STACK_MIN"))


def ignore(kept, address, nbytes):
    """Do nothing, as a destructor."""


def on_a_small_stack(work):
    before = threading.stack_size(SMALL_STACK)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)


def chain_of(links, wrap_over):
    mi = None
    for _ in range(links):
        mi = wrap_over(mi)
    return mi


OVER = {
    "MemInfo": lambda mi: memrt.wrap(ADDRESS, 64, owner=mi),
    "array": lambda mi: memrt.as_array(memrt.wrap(ADDRESS, 64, owner=mi)),
    "tuple": lambda mi: memrt.wrap(ADDRESS, 64, owner=(mi, "kept")),
    "dtor": lambda mi: memrt.wrap(ADDRESS, 64, functools.partial(ignore, mi)),
}


@pytest.mark.parametrize("kind", OVER)
def test_long_owner_chain_is_freed_on_a_small_stack(kind):
    box = [chain_of(LINKS, OVER[kind])]
    assert memrt.stats().mi_alloc - memrt.stats().mi_free >= LINKS
    on_a_small_stack(box.clear)


def test_long_chain_released_without_gil_is_freed_from_queue(probe):
    before = memrt.stats()
    box = [chain_of(LINKS, OVER["MemInfo"])]
    held = probe.hold(box[0])
    box.clear()
    probe.release_without_gil(held, True)
    on_a_small_stack(memrt.stats)
    gone = memrt.stats() - before
    assert gone.mi_alloc == gone.mi_free >= LINKS


def test_destructor_may_call_the_memrt_api():
    seen, limit = (
        [],
        {option.name: option.value for option in memrt.debug.options()}["MEMRT_CACHE_LIMIT"],
    )

    def ask(address, nbytes):
        with memrt.Policy(name="of a dtor") as policy, memrt.debug.tracking():
            inner = np.ones(10)
            seen.append(
                (memrt.stats(policy).live, len(memrt.debug.live()), memrt.handler_name(inner))
            )
        seen.append([policy.name for policy in memrt.debug.policies()])
        memrt.release_unused()
        memrt.set_option("cache_limit", limit)

    before = memrt.debug.options()
    del [memrt.wrap(ADDRESS, 64, ask)][0]
    assert seen[0][0] == 80
    assert seen[0][2] == "memrt:of a dtor"
    assert "of a dtor" in seen[1]
    assert memrt.debug.options() == before


def test_destructor_may_wrap_its_memory_again():
    """A pool's destructor wraps the same memory again instead of freeing the memory."""
    pool, rounds = [], []

    def back(address, nbytes):
        rounds.append(nbytes)
        if len(rounds) < 4:
            pool.append(memrt.wrap(address, nbytes, back))

    before = memrt.stats()
    mi = memrt.wrap(ADDRESS, 64, back)
    for _ in range(3):
        del mi
        mi = pool.pop()
        assert mi.address == ADDRESS
    del mi
    change = memrt.stats() - before
    assert (change.mi_alloc, change.mi_free, change.adopted) == (4, 4, 0)
    assert pool == []


def test_owner_resurrected_in_del_stays_alive():
    saved = []

    class Phoenix:
        def __del__(self):
            saved.append(self)

    mi = memrt.wrap(ADDRESS, 64, owner=Phoenix())
    alive = weakref.ref(mi.parent)
    del mi
    assert alive() is not None or saved
    assert type(saved.pop()) is Phoenix
    gc.collect()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, RecursionError])
def test_destructor_exception_goes_only_to_unraisable_hook(error, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append(u.exc_type))

    def dtor(address, nbytes):
        raise error

    mi = memrt.wrap(ADDRESS, 64, dtor)
    del mi
    assert seen == [error]


def test_blocking_destructor_does_not_block_other_threads():
    inside, go_on, ended = threading.Event(), threading.Event(), []

    def wait(address, nbytes):
        inside.set()
        go_on.wait()
        ended.append(nbytes)

    # Without a GIL, CPython frees an object on the thread that created the object.
    thread = threading.Thread(target=lambda: memrt.wrap(ADDRESS, 64, wait) and None)
    thread.start()
    inside.wait()
    with memrt.Policy(name="meanwhile"), memrt.debug.tracking():
        memrt.alloc(100, name="meanwhile")
        a = np.ones(1000)
        a.resize(10**6, refcheck=False)
        assert memrt.debug.live()
        del a
    del [memrt.wrap(ADDRESS, 64, lambda a, n: ended.append("another"))][0]
    memrt.release_unused()
    assert ended == ["another"]
    go_on.set()
    thread.join()
    assert ended == ["another", 64]


def test_all_destructors_run_while_two_threads_collect_cycles():
    ended = []

    class Node:
        pass

    def work(_number):
        for _ in range(200):
            node = Node()
            node.me, node.mi = node, memrt.wrap(ADDRESS, 64, lambda a, n: ended.append(n))
            del node
            gc.collect(0)

    on_threads(work, 2)
    gc.collect()
    assert len(ended) == 400
