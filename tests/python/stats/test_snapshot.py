"""Statistics of all levels at one moment."""

import os
import threading

import memrt
import pytest
from memrt import _memrt


def take():
    """Return a snapshot, also while threads of other tests end."""
    for _ in range(20):
        try:
            return memrt.debug.snapshot()
        except RuntimeError:
            continue
    return memrt.debug.snapshot()


def test_levels_have_the_figures_of_their_own_functions():
    policy = memrt.Policy(name="levels")
    with memrt.scope("snapshot outer"), memrt.scope("inner") as inner:
        kept = memrt.alloc(1000, policy=policy)
    snapshot = take()
    assert snapshot.policies["levels", policy._index].live == policy.stats().live == 1000
    assert snapshot.scopes[inner.path].live == inner.stats().live == 1000
    assert snapshot.scopes["snapshot outer",].live == 1000
    assert snapshot.process.live == sum(each.live for each in snapshot.policies.values())
    assert threading.get_native_id() in [thread.id for thread in snapshot.threads]
    assert (snapshot.process.cached, snapshot.nanoseconds > 0) == (0, True)
    assert repr(snapshot).startswith("<Snapshot: ")
    assert "B live, " in repr(snapshot)
    del kept


def test_forked_child_is_of_the_next_generation():
    before = take().generation
    child = os.fork()
    if child == 0:
        os._exit(take().generation - before)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert take().generation == before


def test_threads_that_allocate_go_on_after_a_snapshot():
    policies = [memrt.Policy(name=name) for name in ("moved from", "moved to")]
    stop, failures = threading.Event(), []

    def move():
        kept = [memrt.alloc(1000, policy=policies[0]) for _ in range(10)]
        step = 0
        while not stop.is_set():
            kept[step % 10] = memrt.alloc(1000, policy=policies[(step // 10 + 1) % 2])
            step += 1

    threads = [threading.Thread(target=move) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            both = {name: stats for (name, _), stats in take().policies.items() if "moved" in name}
            live = both["moved from"].live + both["moved to"].live
            if live > 3 * 11 * 1000:
                failures.append(live)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


def test_restless_counters_raise_an_error(monkeypatch):
    monkeypatch.setattr(_memrt, "snapshot", lambda: None)
    with pytest.raises(RuntimeError, match="counters must come to rest within 50 ms"):
        memrt.debug.snapshot()
