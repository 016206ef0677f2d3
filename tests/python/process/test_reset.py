"""Reset of policies: refusals with live blocks, and memory given back."""

import gc
import threading

import memrt
import numpy as np
import pytest
from memrt import _memrt


def test_reset_of_an_arena_gives_its_chunks_back():
    small = memrt.arena("small", chunk="64 KiB")
    with small:
        rows = [np.zeros(100) for _ in range(200)]
    with pytest.raises(RuntimeError, match="policy 'small' must have no live block, got 200 of"):
        small.reset()
    assert all(row.sum() == 0 for row in rows)
    del rows[1:]
    with pytest.raises(RuntimeError, match=r"got 1 of 800 bytes \(MemInfos: 0\): free the arrays"):
        small.reset()
    del rows
    assert small.reset() >= 2 * 65536
    assert small.stats().cached == 0
    with small:
        assert np.ones(3).sum() == 3


@pytest.mark.parametrize(
    "refer",
    [
        lambda array: memrt.meminfo(array),
        lambda array: memoryview(array),
        lambda array: array[2:],
        lambda array: np.from_dlpack(array),
        lambda array: memrt.types.Tensor(array),
        lambda array: memrt.debug.freeze(array),
    ],
)
def test_whatever_refers_to_a_block_refuses_the_reset(refer):
    policy = memrt.Policy(name="referred")
    with policy:
        array = np.ones(1000)
    kept = refer(array)
    del array
    with pytest.raises(RuntimeError, match=r"got 1 of 7\.8 KiB"):
        policy.reset()
    assert kept is not None
    if isinstance(kept, memrt.types.Frozen):
        kept.thaw()
    del kept
    assert policy.reset() == 0  # memory of the heap serves all policies


def test_adopted_memory_refuses_the_reset():
    policy = memrt.Policy(name="adopting")
    with policy:
        adopted = memrt.wrap(memrt.alloc(64).address, 64)
    assert policy.stats().adopted == 64
    with pytest.raises(RuntimeError, match="and adopted memory of 64 bytes"):
        policy.reset()
    del adopted
    policy.reset()


def test_refusal_names_tracked_arrays_with_their_lines():
    policy = memrt.Policy(name="tracked")
    with memrt.debug.tracking(frames=4), policy:
        arrays = [np.zeros(1000 * (index + 1)) for index in range(7)]
    memrt.meminfo(arrays[6]).name = "seventh"
    with pytest.raises(RuntimeError) as caught:
        policy.reset()
    lines = str(caught.value).splitlines()
    assert len(lines) == 7
    assert lines[1].startswith("  54.7 KiB 'seventh', ")
    assert "test_reset.py" in lines[1]
    assert lines[-1] == "  and 2 more"
    del arrays
    policy.reset()


def test_reset_collects_arrays_in_cycles():
    class Node:
        pass

    policy = memrt.Policy(name="cycles")
    gc.disable()
    try:
        with policy:
            node = Node()
            node.self, node.data = node, np.ones(1000)
        del node
        assert policy.stats().live == 8000
        policy.reset()
    finally:
        gc.enable()
    assert policy.stats().live == 0


def test_reset_of_a_policy_with_settings_empties_its_cache():
    policy = memrt.Policy(name="caching", decay="never")
    with policy:
        np.empty(1_000_000)
    cached = policy.stats().cached
    assert policy.reset() >= cached
    assert policy.stats().cached == 0


def test_reset_counts_arrays_of_scopes_and_other_threads():
    policy = memrt.Policy(name="scoped")
    made = []

    def work():
        with policy, memrt.scope("work"):
            made.append(np.ones(100))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="got 1 of 800 bytes"):
        policy.reset()
    made.clear()
    policy.reset()


def test_default_policy_with_arrays_refuses_the_reset():
    kept = memrt.alloc(10)
    with pytest.raises(RuntimeError, match="policy 'default' must have no live block"):
        memrt.debug.default_policy().reset()
    assert kept.nbytes == 10


def test_extension_refuses_other_handlers():
    for handler in (None, b"", _memrt.api):
        with pytest.raises(TypeError, match="handler must be a handler of memrt"):
            _memrt.policy_reset(handler)
