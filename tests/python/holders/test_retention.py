"""retention(): buffers kept alive by views of a part, counted to the byte, with their holders."""

from __future__ import annotations

import gc
import json
import os
import pickle
import sys
import threading
from collections.abc import Callable

import memrt
import numpy as np
import pytest
from atonce import threads_repeat
from gil import needs_gil
from hypothesis import given, settings
from hypothesis import strategies as st
from memrt import _memrt

pytestmark = needs_gil

SHAPE = (20, 30, 5)
SIZE = 20 * 30 * 5 * 8
CACHE: dict = {}


def block(shape=SHAPE, dtype=float) -> np.ndarray:
    """Return an array whose block NumPy allocated from memrt."""
    with memrt.Policy(name="kept"):
        return np.zeros(shape, dtype)


def found(**options) -> memrt.types.Retention:
    """Return all buffers with at least 1 wasted byte."""
    return memrt.debug.retention(1, 0.0, **options)


def only() -> memrt.types.Retained:
    (buffer,) = found()
    return buffer


def expressions(buffer: memrt.types.Retained) -> set[str | None]:
    rows = buffer.holders.rows
    return {each.expression for row in rows for each in row.referrers}


@pytest.fixture(autouse=True)
def nothing_is_wasted_before():
    gc.collect()
    assert list(found()) == []


# --- Listed buffers. ---


@pytest.mark.parametrize("make", [block, memrt.zeros, memrt.array], ids=["block", "over", "copy"])
def test_buffer_kept_by_a_small_view_is_listed_with_its_holder(make):
    view = make(np.zeros(SHAPE) if make is memrt.array else SHAPE)[3, 4]
    buffer = only()
    assert (buffer.nbytes, buffer.viewed, buffer.views, buffer.exact) == (SIZE, 40, 1, True)
    assert buffer.wasted == SIZE - 40
    assert expressions(buffer) == {"view"}
    assert buffer.why == "23.4 KiB wasted: 23.4 KiB kept for 40 B in 1 view"
    del view
    assert list(found()) == []


def test_holder_text_has_the_line_that_made_the_view():
    head = block()[:1]
    buffer = only()
    line = sys._getframe().f_lineno - 1
    (row,) = [row for row in buffer.holders.rows if row.kind == "array"]
    name = "test_holder_text_has_the_line_that_made_the_view"
    assert row.referrers[0].text == f"local `head` in {name}() test_retention.py:{line}"
    assert head.size


def test_buffer_of_the_least_size_is_listed_under_an_empty_view():
    view = block()[:0]
    assert [buffer.wasted for buffer in memrt.debug.retention(SIZE, 0.0)] == [SIZE]
    assert list(memrt.debug.retention(SIZE + 1, 0.0)) == []
    assert view.size == 0


def test_buffer_with_a_full_array_is_not_listed():
    whole = block()
    view = whole[1]
    assert list(found()) == []
    CACHE["whole"] = whole
    del whole
    assert list(found()) == []
    CACHE.clear()
    assert only().viewed == view.nbytes


HOLD_ALL: dict[str, Callable] = {
    "MemInfo": memrt.meminfo,
    "memoryview": memoryview,
    "reshaped": lambda array: array.reshape(-1),
    "transposed": lambda array: array.T,
    "backwards": lambda array: array[::-1, ::-1],
    "bytes": lambda array: array.reshape(-1).view(np.uint8),
    "capsule": lambda array: memrt.meminfo(array).__memrt_meminfo__(),
    "method": lambda array: array.sum,
    "list": lambda array: [array],
    "buffer": lambda array: pickle.PickleBuffer(array),
}


@pytest.mark.parametrize("hold", HOLD_ALL)
def test_object_that_reaches_all_bytes_prevents_listing(hold):
    whole = block()
    view, holder = whole[1], HOLD_ALL[hold](whole)
    del whole
    assert list(found()) == []
    del holder
    assert only().viewed == view.nbytes


def test_c_reference_prevents_listing(probe):
    view = memrt.zeros(SHAPE)[2]
    address = probe.hold(view)
    assert list(found()) == []
    probe.release(address)
    assert len(found()) == 1
    address = probe.hold_as(view, "user", 1)
    assert list(found()) == []
    probe.release_as(address, "user", 1)


def test_array_held_by_c_code_prevents_listing(probe):
    whole = block()
    view = whole[1]
    probe.keep(whole)
    del whole
    assert list(found()) == []
    probe.keep(None)
    assert len(found()) == 1
    assert view.size


def test_unmanaged_memory_is_not_listed():
    views = [np.zeros(SHAPE)[0], memoryview(bytearray(5000))[:5]]
    assert list(found()) == []
    assert len(views) == 2


def test_view_in_a_garbage_cycle_is_listed_until_collected():
    class Node:
        pass

    node = Node()
    node.itself, node.head = node, block()[0]
    gc.disable()
    del node
    assert "attribute `head` of Node" in repr(only())
    gc.enable()
    gc.collect()
    assert list(found()) == []


# --- Bytes that views reach. ---

ITEM = 8
ROW = 5 * ITEM
PLANE = 30 * ROW

VIEWS: dict[str, tuple[Callable[[np.ndarray], list], int]] = {
    "disjoint": (lambda a: [a[0], a[5]], 2 * PLANE),
    "same view twice": (lambda a: [a[0], a[0]], PLANE),
    "overlapping": (lambda a: [a[0:3], a[2:4]], 4 * PLANE),
    "nested": (lambda a: [a[0:3], a[1, 3]], 3 * PLANE),
    "backwards": (lambda a: [a[3:1:-1, ::-1]], 2 * PLANE),
    "backwards and forwards": (lambda a: [a[4:1:-1], a[2:6]], 4 * PLANE),
    "every other element": (lambda a: [a[:, :, ::2]], 20 * 30 * 3 * ITEM),
    "interleaved": (
        lambda a: [a[:, :, ::2], a[:, :, 1::2][:1]],
        20 * 30 * 3 * ITEM + 30 * 2 * 8,
    ),
    "a column": (lambda a: [a[:, 0, 0]], 20 * ITEM),
    "a diagonal": (lambda a: [np.diagonal(a, axis1=0, axis2=1)], 20 * 5 * ITEM),
    "broadcast": (lambda a: [np.broadcast_to(a[0, 0], (100, 5))], ROW),
    "broadcast far": (lambda a: [np.broadcast_to(a[0, 0, :1], (1000, 1000))], ITEM),
    "windows": (lambda a: [np.lib.stride_tricks.sliding_window_view(a[0, 0], 3)], ROW),
    "windows apart": (
        lambda a: [np.lib.stride_tricks.sliding_window_view(a[0, ::2, 0], 3)],
        15 * 8,
    ),
    "folded": (
        lambda a: [np.lib.stride_tricks.as_strided(a, (4, 3), (16, 24))],
        len({16 * i + 24 * j for i in range(4) for j in range(3)}) * 8,
    ),
    "folded often": (lambda a: [np.lib.stride_tricks.as_strided(a, (50, 10), (16, 16))], 59 * 8),
    "view of views": (lambda a: [a[1:][2:][::-1][0]], PLANE),
    "empty": (lambda a: [a[3:3]], 0),
    "empty and not empty": (lambda a: [a[3:3], a[:, 5:5], a[0, 0]], ROW),
    "zero dimensions": (lambda a: [a[1, 1, 1:2].reshape(())], ITEM),
    "another dtype": (lambda a: [a[0].view(np.uint8)[:, :3]], 30 * 3),
    "a subclass": (lambda a: [a[0].view(np.recarray)], PLANE),
    "a memoryview": (lambda a: [memoryview(a)[2:4]], 2 * PLANE),
    "a memoryview of a view": (lambda a: [memoryview(a[0])], PLANE),
    "an array over a memoryview": (
        lambda a: [np.frombuffer(memoryview(a).cast("B")[40:80], np.uint8)],
        40,
    ),
    "a memoryview and an array": (lambda a: [memoryview(a)[2:4], a[3:5]], 3 * PLANE),
    "parts that cover all": (lambda a: [a[:19], a[18:]], SIZE),
}


@pytest.mark.parametrize("name", VIEWS)
def test_viewed_bytes_count_once_and_gaps_do_not_count(name):
    make, viewed = VIEWS[name]
    views = make(block())
    if viewed == SIZE:
        assert list(found()) == []
    else:
        assert (only().viewed, only().exact) == (viewed, True)
    assert views


def test_views_of_other_buffers_are_not_counted():
    whole = block()
    first, second, other = whole[0], whole[5], block((10, PLANE))[:1]
    del whole
    assert {each.nbytes: each.viewed for each in found()} == {
        SIZE: first.nbytes + second.nbytes,
        10 * 8 * PLANE: other.nbytes,
    }


def test_record_field_views_count_only_their_bytes():
    records = block(100, [("a", "i1"), ("b", "f8"), ("c", "i4", (2,))])
    fields = [records["a"], records["c"]]
    del records
    assert (only().nbytes, only().viewed) == (100 * 17, 100 * 9)
    assert len(fields) == 2


def test_view_of_an_object_array_counts_its_pointers():
    head = block(1000, object)[:3]
    assert (only().nbytes, only().viewed) == (8000, 24)
    assert head.size == 3


def slices(length: int) -> st.SearchStrategy[slice]:
    end = st.integers(-length - 2, length + 2) | st.none()
    step = st.integers(-4, 4).filter(bool) | st.none()
    return st.builds(slice, end, end, step)


INDEX = st.tuples(*(slices(length) for length in SHAPE))


@settings(max_examples=40)
@given(st.lists(INDEX, min_size=1, max_size=5), st.permutations(range(3)))
@pytest.mark.slow
def test_viewed_bytes_match_the_elements_of_random_views(indices, axes):
    whole = block()
    places = np.arange(whole.size).reshape(SHAPE)
    views = [whole.transpose(axes)[tuple(index[a] for a in axes)] for index in indices]
    reached = {p for index in indices for p in places[index].ravel().tolist()}
    del whole
    rows = list(found())
    assert [row.viewed for row in rows] == ([8 * len(reached)] if 8 * len(reached) < SIZE else [])
    assert len(views) == len(indices)


def test_too_fragmented_views_give_an_upper_bound():
    whole = block((4_500_000, 2), np.uint8)
    views = [whole[:, 0], whole[::2, 0]]
    del whole
    (buffer,) = found()
    assert not buffer.exact
    assert 4_500_000 <= buffer.viewed <= 9_000_000
    assert "kept for at most " in buffer.why
    assert len(views) == 2


@pytest.mark.parametrize(("shape", "strides"), [((2**62,), (2,)), ((2**31, 2**31), (3, 3))])
def test_views_beyond_the_address_space_hide_a_buffer(shape, strides):
    whole = block(4000, np.uint8)
    views = [np.lib.stride_tricks.as_strided(whole, shape, strides) for _ in range(5)]
    del whole
    assert list(found()) == []
    assert len(views) == 5


def test_released_memoryview_covers_no_bytes():
    whole = block(1000)
    view = memoryview(whole)
    head = whole[:3]
    view.release()
    del whole
    assert (only().nbytes, only().viewed) == (8000, 24)
    assert len(_memrt.find_retention(0, 0.0, 10)[0]) == 1
    assert head.size == 3


# --- Thresholds, limits and details of the list. ---


def test_thresholds_exclude_small_waste():
    views = [block(1000)[:100], block(4000)[:3000], block(100_000)[:1]]
    assert [each.nbytes for each in memrt.debug.retention(1, 0.5)] == [800_000, 8000]
    assert [each.nbytes for each in memrt.debug.retention(8000, 0.0)] == [800_000, 32_000]
    assert [each.nbytes for each in memrt.debug.retention()] == [800_000]
    assert [each.nbytes for each in memrt.debug.retention(0, 1.0)] == []
    assert [each.nbytes for each in memrt.debug.retention(10**30)] == []
    assert len(views) == 3


def test_largest_waste_is_first_and_limit_counts_the_rest():
    views = [block(1000 * (i + 1))[:1] for i in range(5)]
    seen = found(limit=2)
    assert [each.nbytes for each in seen] == [40_000, 32_000]
    assert (len(seen), seen.count) == (2, 5)
    assert seen.wasted == sum(8000 * (i + 1) - 8 for i in range(5))
    assert repr(seen).endswith("\n\n3 more")
    assert (len(found(limit=0)), found(limit=0).count) == (0, 5)
    assert len(views) == 5


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"min_bytes": -1}, ValueError),
        ({"min_ratio": 1.5}, ValueError),
        ({"min_ratio": float("nan")}, ValueError),
        ({"limit": -1}, ValueError),
        ({"limit": 10_001}, ValueError),
        ({"limit": 2**70}, ValueError),
        ({"min_bytes": "1"}, TypeError),
        ({"limit": 1.5}, TypeError),
    ],
    ids=str,
)
def test_bad_thresholds_are_refused(options, error):
    with pytest.raises(error):
        memrt.debug.retention(**options)


def test_largest_limit_is_accepted():
    assert found(limit=10_000).count == 0


def test_view_stored_in_a_listed_buffer_is_located():
    with memrt.Policy(name="kept"):
        table, other = np.empty(20_000, object), np.empty(30_000, object)
    corner, row = table[:2], other[:2]
    row[0] = table[:10]
    corner[0] = row
    del table, other
    texts = repr(memrt.debug.retention())
    assert "row.base[0]" in texts
    assert "corner.base[0]" in texts
    row[0] = corner[0] = None


def test_many_views_of_a_buffer_are_counted():
    whole = block(5000)
    views = [whole[i : i + 1] for i in range(0, 1000, 2)]
    del whole
    buffer = only()
    assert (buffer.views, buffer.viewed) == (500, 4000)
    assert buffer.holders.more > 0
    assert len(views) == 500


def test_retention_searches_100_000_small_arrays():
    small = [block(16) for _ in range(2)]
    with memrt.Policy():
        small += [np.zeros(16) for _ in range(100_000)]
    views = [array[:2] for array in small[:300]]
    view = block(100_000)[5:7]
    seen = found(limit=3)
    assert (seen.count, seen.buffers[0].nbytes) == (1, 800_000)
    del small[:300]
    assert found(limit=3).count == 301
    assert len(views) + len(view) == 302


def test_views_in_other_threads_are_found():
    inside, leave = threading.Barrier(4), threading.Event()

    def work(i):
        head = block(1000 + i)[:i]
        inside.wait()
        leave.wait()
        return head

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    inside.wait()
    seen = found()
    leave.set()
    for thread in threads:
        thread.join()
    assert sorted(each.viewed for each in seen) == [0, 8, 16]
    assert all("local `head` in" in repr(each) for each in seen)


def test_retention_works_while_threads_allocate():
    def work():
        views = [block(1000)[3:], block(100)[:1]]
        assert len(views) == 2

    with threads_repeat(work, 3):
        for _ in range(20):
            assert all(each.viewed < each.nbytes for each in found())


def test_retention_changes_no_references_or_memory():
    live = memrt.stats().live
    view = block()[1]
    base = view.base
    before = [sys.getrefcount(each) for each in (view, base)]
    made = memrt.stats().mi_alloc
    del base
    seen = found()
    base = view.base
    assert [sys.getrefcount(each) for each in (view, base)] == before
    assert memrt.stats().mi_alloc == made
    del view, base
    gc.collect()
    assert memrt.stats().live == live
    assert seen.wasted


def test_result_converts_to_json_and_pickle():
    view = block()[1]
    seen = found()
    as_dict = seen.to_dict()
    assert json.loads(json.dumps(as_dict)) == as_dict
    assert as_dict["buffers"][0]["wasted"] == SIZE - PLANE
    assert pickle.loads(pickle.dumps(seen)) == seen
    assert [*seen] == [*seen.buffers]
    assert view.size


def test_repr_prints_holder_trees():
    view = block()[1]
    lines = repr(found()).splitlines()
    assert lines[0] == "memrt.debug.retention: 1 buffer, 22.3 KiB wasted"
    assert lines[2] == "22.3 KiB wasted: 23.4 KiB kept for 1.2 KiB in 1 view"
    assert lines[3].startswith("23.4 KiB MemInfo, refcount 1, policy kept")
    assert lines[4] == "└─ ndarray float64 (20, 30, 5), owner of the block"
    assert lines[5] == "   └─ ndarray float64 (30, 5), view of 1.2 KiB"
    assert lines[6].startswith("      └─ local `view` in test_repr_prints_holder_trees() ")
    assert view.size


def test_tracked_buffer_has_its_allocation_site(untracked):
    early = block()[1]
    with memrt.debug.tracking():
        late = block((30, 40))[1]
    known, unknown = sorted(found(), key=lambda each: each.nbytes)
    assert (unknown.site, unknown.place) == (None, None)
    assert "allocated in" not in repr(unknown)
    line = block.__code__.co_firstlineno + 3
    place = f"block at {os.path.relpath(__file__)}:{line}"
    assert [str(known.place), str(known.holders.place)] == [place] * 2
    assert known.site is not None
    assert known.site.frames[0].function == "block"
    assert repr(known).splitlines()[1].endswith(f"policy kept, allocated in {place}")
    whole = f"block at {__file__}:{line}"
    assert [each["holders"]["place"] for each in found().to_dict()["buffers"]] == [None, whole]
    assert early.size + late.size


def test_retention_finds_a_view_of_an_array_at_16_modulo_64():
    with memrt.Policy(alignment=16):
        large = np.zeros(1_000_000, "u1")
    view = large[:10]
    del large
    (found,) = memrt.debug.retention().buffers
    assert found.nbytes == 1_000_000
    assert view.nbytes == 10
