# ruff: noqa: F841 - variables of the tests are what they look for
"""Who holds a buffer: every kind of holder, every way to refer to one, and that asking is safe."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import dataclasses
import functools
import gc
import json
import os
import pickle
import sys
import threading
import types

import memrt
import numpy as np
import pytest
from memrt import _memrt

CACHE: dict = {}
GLOBAL = None


def held() -> np.ndarray:
    """A block of NumPy's that memrt made, of 8000 bytes."""
    with memrt.Policy(name="held"):
        return np.zeros(1000)


def texts(found: memrt.Holders) -> list[str]:
    """What refers to any of the holders, in words."""
    return [each.text for row in found.rows for each in row.referrers]


def expressions(found: memrt.Holders) -> set[str | None]:
    return {each.expression for row in found.rows for each in row.referrers}


def row_of(found: memrt.Holders, kind: str) -> memrt.Holder:
    """The one row of a kind."""
    (row,) = [row for row in found.rows if row.kind == kind]
    return row


def referrer(found: memrt.Holders, expression: str) -> memrt.Referrer:
    for row in found.rows:
        for each in row.referrers:
            if each.expression == expression:
                return each
    raise AssertionError(f"{expression} is not among {sorted(map(str, expressions(found)))}")


def is_explained(found: memrt.Holders) -> bool:
    """No reference to anything is left over."""
    return found.unexplained == 0 and all(row.unexplained == 0 for row in found.rows)


class Plain:
    """An object with attributes."""


class Slotted:
    __slots__ = ("kept",)


# --- What keeps a buffer alive. ---


def test_an_array_that_owns_its_block_is_told():
    with memrt.Policy(name="mine"):
        mine = np.zeros((10, 100))
    found = memrt.holders(mine)
    assert (found.size, found.refcount, found.policy, found.kind) == (8000, 1, "mine", "block")
    assert found.address == mine.ctypes.data
    row = row_of(found, "block")
    assert row.text == "ndarray float64 (10, 100), owner of the block"
    assert row.nbytes == 8000
    assert row.referrers[0].expression == "mine"
    assert is_explained(found)


def test_an_array_over_a_meminfo_is_told():
    mine = memrt.zeros(1000, np.uint8)
    found = memrt.holders(mine)
    assert found.kind == "inline"
    assert [row.kind for row in found.rows] == ["meminfo", "array"]
    assert row_of(found, "meminfo").holders == (row_of(found, "array"),)
    assert row_of(found, "array").text == "ndarray uint8 (1000,), all of it"
    assert is_explained(found)


def test_a_meminfo_by_itself_is_told_and_its_name():
    mi = memrt.alloc(100, name="table")
    found = memrt.holders(mi)
    assert (found.name, found.refcount, found.size) == ("table", 1, 100)
    assert row_of(found, "meminfo").referrers[0].text.startswith("local `mi` in test_a_meminfo_by")
    assert is_explained(found)
    mi.name = None
    assert memrt.holders(mi).name is None


def test_views_are_under_what_they_are_views_of():
    mine = memrt.zeros((100, 10))
    view = mine[3, ::2]
    other = view[1:]
    found = memrt.holders(mine)
    whole = row_of(found, "meminfo").holders[0]
    assert [row.text for row in whole.holders] == [
        "ndarray float64 (5,), view of 40 B",
        "ndarray float64 (4,), view of 32 B",
    ]
    assert {"view", "other", "mine"} <= expressions(found)
    assert is_explained(found)
    assert other.size == 4


def test_any_of_them_leads_to_the_same_holders():
    mine = memrt.zeros(1000)
    view, memory, mi = mine[5:], memoryview(mine)[3:], memrt.meminfo(mine)
    seen = {tuple(sorted(texts(memrt.holders(each)))) for each in (mine, view, memory, mi)}
    assert len(seen) == 1


def test_an_array_that_only_the_call_refers_to_is_told():
    mi = memrt.alloc(80)
    found = memrt.holders(memrt.as_array(mi, 10))
    assert [(row.kind, row.references) for row in found.rows] == [("meminfo", 2), ("array", 0)]
    assert is_explained(found)


def test_a_memoryview_and_what_it_is_a_view_of_are_told():
    mine = memrt.zeros(1000, np.uint8)
    memory = memoryview(mine)[10:20]
    found = memrt.holders(mine)
    assert "memory" in expressions(found)
    assert any(row.text.startswith("memoryview of 10 B") for row in found.rows)
    assert row_of(found, "buffer").references == 1
    memory.release()
    assert "memory" not in expressions(memrt.holders(mine))


def test_a_released_memoryview_holds_nothing():
    mi = memrt.alloc(100)
    memory = memoryview(mi)
    assert [row.kind for row in memrt.holders(mi).rows] == ["meminfo", "buffer", "memoryview"]
    memory.release()
    assert [row.kind for row in memrt.holders(mi).rows] == ["meminfo"]


def test_a_capsule_of_c_code_is_told(probe):
    mine = probe.make_array(100)
    found = memrt.holders(mine)
    assert [row.kind for row in found.rows] == ["capsule", "array"]
    assert is_explained(found)
    capsule = mine.base
    assert "capsule" in expressions(memrt.holders(capsule))


def test_a_buffer_between_arrays_is_passed():
    mine = memrt.zeros(100, np.uint8)
    again = np.frombuffer(memoryview(mine)[10:], np.uint8)
    found = memrt.holders(again)
    assert {"mine", "again"} <= expressions(found)
    assert is_explained(found)


def test_what_as_strided_leaves_is_passed():
    mine = memrt.zeros(100)
    windows = np.lib.stride_tricks.sliding_window_view(mine, 10)
    found = memrt.holders(windows)
    assert row_of(found, "strides").holders
    assert any(row.nbytes == 800 and row.text.endswith("all of it") for row in found.rows)
    assert is_explained(found)


def test_a_tiny_array_is_like_any_other():
    with memrt.Policy():
        tiny = np.zeros(3, np.uint8)
    view = tiny[1:]
    found = memrt.holders(view)
    assert (found.size, found.refcount) == (3, 1)
    assert {"tiny", "view"} <= expressions(found)
    assert is_explained(found)
    assert memrt.holders(memrt.meminfo(tiny)).refcount == 2


def test_a_wrapped_meminfo_leads_on_to_what_its_owner_holds():
    mine = memrt.zeros(100, np.uint8)
    outer = memrt.wrap(mine.ctypes.data, 100, owner=mine)
    again = memrt.meminfo(memrt.as_array(outer, 100, np.uint8))
    found = memrt.holders(mine)
    assert any("MemInfo" in text and "outer" in text for text in texts(found))
    assert is_explained(found)
    assert again == outer


def test_an_object_of_a_users_class_that_has_a_meminfo_leads_to_it():
    class Exporter:
        def __init__(self):
            self.mi = memrt.alloc(100)

        def __memrt_meminfo__(self):
            return self.mi.__memrt_meminfo__()

    exporter = Exporter()
    found = memrt.holders(exporter)
    assert found.refcount == 1
    assert "exporter.mi" in expressions(found)


def test_a_resizable_and_an_empty_one_are_told(probe):
    mi = probe.make_resizable(100)
    assert memrt.holders(mi).size == 100
    empty = memrt.zeros(0)
    assert memrt.holders(empty).size == 0
    assert is_explained(memrt.holders(empty))


def test_references_of_c_under_a_name_are_told(probe):
    mine = memrt.zeros(100)
    address = probe.hold_as(mine, "loader", 1)
    probe.hold_as(mine, "loader", 1)
    probe.hold_as(mine, "dlpack", 2)
    found = memrt.holders(mine)
    assert found.refcount == 4
    assert found.unexplained == 0
    rows = [(row.name, row.kind, row.count) for row in found.named]
    assert rows == [("loader", "reference", 2), ("dlpack", "export", 1)]
    assert found.named[0].thread == threading.get_native_id()
    assert 0 <= found.named[0].age < 60
    assert "├─ C reference 'loader', 2 times\n" in repr(found)
    assert repr(found).endswith("└─ C export 'dlpack'")
    for name, kind in (("loader", 1), ("loader", 1), ("dlpack", 2)):
        probe.release_as(address, name, kind)
    assert memrt.holders(mine).named == ()


def test_references_of_c_without_a_name_are_unexplained(probe):
    mine = memrt.zeros(100)
    address = probe.hold(mine)
    found = memrt.holders(mine)
    assert found.unexplained == 1
    assert repr(found).endswith(
        "└─ 1 reference unexplained: compiled code or C that took it without a name"
    )
    probe.release(address)
    assert memrt.holders(mine).unexplained == 0


def test_an_array_that_c_code_holds_is_unexplained_by_itself(probe):
    mine = memrt.zeros(100)
    probe.keep(mine)
    row = row_of(memrt.holders(mine), "array")
    assert row.unexplained == 1
    probe.keep(None)
    assert row_of(memrt.holders(mine), "array").unexplained == 0


# --- What refers to it. ---


def test_a_local_is_told_with_function_file_and_line():
    array = held()
    mine = array[:10]
    found = memrt.holders(mine)
    line = sys._getframe().f_lineno - 1
    each = referrer(found, "mine")
    name = "test_a_local_is_told_with_function_file_and_line"
    assert (each.kind, each.function, each.line) == ("local", name, line)
    assert each.file == __file__
    assert each.text == f"local `mine` in {name}() test_holders.py:{line}"


def test_a_global_is_told_by_its_module():
    array = held()
    global GLOBAL
    GLOBAL = array[1:]
    each = referrer(memrt.holders(array), f"{__name__}.GLOBAL")
    assert (each.kind, each.text) == ("global", f"{__name__}.GLOBAL")
    GLOBAL = None


Request = collections.namedtuple("Request", "method number")


class Lying(tuple):
    """What it says of itself is not asked for."""

    __slots__ = ()

    def __len__(self):
        raise AssertionError("asked for its length")

    def __getitem__(self, index):
        raise AssertionError("asked for an item")

    def __iter__(self):
        raise AssertionError("iterated")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("k", "'k'"),
        (3, "3"),
        (None, "None"),
        (b"b", "b'b'"),
        (1.5, "1.5"),
        (("a", 1), "('a', 1)"),
        ((1,), "(1,)"),
        (tuple(range(6)), "(0, 1, 2, 3, ...)"),
        (1 << 100_000, "<int>"),
        ("x" * 500, "'" + "x" * 59 + "..."),
        (frozenset([1]), "<frozenset>"),
        (object, "<type>"),
        (Plain(), "<Plain>"),
        ((Plain(), ((1,),)), "(<Plain>, (<tuple>,))"),
        (Request("get", 5), "Request('get', 5)"),
        (Lying((1, 2)), "Lying(1, 2)"),
    ],
    ids=range(16),
)
def test_a_value_of_a_dict_is_told_by_its_key(key, text):
    array = held()
    CACHE[key] = array[1:]
    assert f"{__name__}.CACHE[{text}]" in expressions(memrt.holders(array))
    CACHE.clear()


def test_a_key_of_a_dict_is_told():
    mi = memrt.alloc(10)
    CACHE[mi] = 1
    assert f"{__name__}.CACHE (the key <MemInfo>)" in expressions(memrt.holders(mi))
    CACHE.clear()


def test_places_in_containers_are_told():
    array = held()
    kept = {
        "list": [0, array],
        "tuple": (0, (1, array)),
        "deque": collections.deque([0, array]),
        "nested": [{"a": [array]}],
        "default": collections.defaultdict(list, a=[array]),
        "objects": np.array([None, array, None], dtype=object),
    }
    pair = collections.namedtuple("Pair", "a b")(0, array)
    elements = {functools.partial(len, array)}
    found = memrt.holders(array)
    assert {
        "kept['list'][1]",
        "kept['tuple'][1][1]",
        "kept['deque'][1]",
        "kept['nested'][0]['a'][0]",
        "kept['default']['a'][0]",
        "kept['objects'][1]",
        "pair[1]",
    } <= expressions(found)
    assert any("elements (an element)" in text for text in texts(found))
    assert row_of(found, "block").unexplained == 0


def test_a_dict_that_the_collector_does_not_track_is_looked_into():
    array = held()
    untracked = {"only": array}
    nested = ((array,),)
    gc.collect()
    assert {"untracked['only']", "nested[0][0]"} <= expressions(memrt.holders(array))
    assert nested


def test_attributes_are_told_with_class_and_name():
    array = held()
    plain, slotted = Plain(), Slotted()
    plain.kept = array
    slotted.kept = array
    Plain.shared = array
    found = memrt.holders(array)
    assert referrer(found, "plain.kept").kind == "attribute"
    assert referrer(found, "plain.kept").text.startswith("attribute `kept` of Plain, `plain.kept`")
    assert referrer(found, "slotted.kept").text.startswith("attribute `kept` of Slotted, ")
    shared = referrer(found, f"{__name__}.Plain.shared")
    assert shared.text == f"attribute `shared` of class Plain, {__name__}.Plain.shared"
    del Plain.shared


def test_variables_of_closures_are_told():
    array = held()

    def make():
        mine = array[1:]
        return lambda: mine

    function = make()
    found = memrt.holders(array)
    each = referrer(found, "function (closure variable `mine`)")
    assert each.kind == "closure"
    assert is_explained(found)


def test_defaults_methods_and_partials_are_told():
    array = held()

    def function(a=array):
        return a

    method = array.sum
    partial = functools.partial(len, array)
    found = memrt.holders(array)
    assert {"function.__defaults__[0]", "partial.args[0]"} <= expressions(found)
    assert "method.__self__" in expressions(found)
    assert row_of(found, "block").unexplained == 0


def test_results_in_caches_are_told():
    array = held()

    @functools.lru_cache
    def bounded(n):
        return array[n:]

    @functools.cache
    def unbounded(n):
        return array[n:]

    bounded(1), unbounded(2)
    found = memrt.holders(array)
    assert referrer(found, "bounded (a cached result)").kind == "cache"
    assert referrer(found, "unbounded (a cached result)").kind == "cache"
    assert is_explained(found)


def test_variables_of_generators_and_coroutines_are_told():
    array = held()

    def generate(mine):
        yield len(mine)

    @types.coroutine
    def pause():
        yield

    async def wait(mine):
        await pause()
        return mine

    async def generate_later(mine):
        yield mine

    generator, coroutine, later = generate(array), wait(array), generate_later(array)
    next(generator)
    coroutine.send(None)
    found = memrt.holders(array)
    some = [text for text in texts(found) if "local `mine` in " in text]
    assert len(some) == 3, texts(found)
    assert any(" in generator " in text and "generate() " in text for text in some)
    assert any(" in coroutine " in text and "wait() " in text for text in some)
    assert is_explained(found)
    coroutine.close()
    del later


def test_a_generator_that_runs_is_told_once():
    array = held()

    def generate(mine):
        yield memrt.holders(mine)

    found = next(generate(array))
    assert sum("local `mine`" in text for text in texts(found)) == 1


def test_variables_of_tasks_of_asyncio_are_told():
    array = held()

    async def hold(mine):
        await asyncio.sleep(60)
        return mine

    async def main():
        task = asyncio.create_task(hold(array))
        await asyncio.sleep(0)
        found = memrt.holders(array)
        task.cancel()
        return found

    assert any("coroutine" in text and "`mine`" in text for text in texts(asyncio.run(main())))


def test_variables_of_other_threads_are_told():
    array = held()
    inside, leave = threading.Event(), threading.Event()

    def work(mine):
        inside.set()
        leave.wait()
        return mine

    thread = threading.Thread(target=work, args=(array[3:],))
    thread.start()
    inside.wait()
    found = memrt.holders(array)
    leave.set()
    thread.join()
    assert any("local `mine` in" in text and "work() test_holders.py" in text
               for text in texts(found))  # fmt: skip


def test_values_of_context_variables_and_thread_locals_are_found():
    array = held()
    variable = contextvars.ContextVar("variable")
    local = threading.local()
    variable.set(array)
    local.kept = array
    found = memrt.holders(array)
    assert row_of(found, "block").unexplained == 0
    variable.set(None)


def test_what_a_traceback_keeps_is_told():
    array = held()

    def fail(mine):
        raise ValueError(len(mine))

    try:
        fail(array)
    except ValueError as error:
        kept = error
    found = memrt.holders(array)
    assert any("local `mine` in" in text and "kept by a traceback" in text for text in texts(found))
    del kept


def test_what_only_garbage_refers_to_is_told_so():
    array = held()
    plain = Plain()
    plain.itself = plain
    plain.kept = array
    gc.disable()
    del plain
    found = memrt.holders(array)
    gc.enable()
    (text,) = [text for text in texts(found) if "Plain" in text]
    assert text == "attribute `kept` of Plain"


def test_cycles_do_not_hinder():
    array = held()
    first, second = Plain(), [array]
    first.other = second
    second.append(first)
    CACHE["cycle"] = second
    CACHE["itself"] = CACHE
    assert "second[0]" in expressions(memrt.holders(array))
    del first, second
    assert f"{__name__}.CACHE['cycle'][0]" in expressions(memrt.holders(array))
    CACHE.clear()


def test_a_deep_chain_is_shortened():
    array = held()
    chain = [array]
    for _ in range(100_000):
        chain = [chain]
    found = memrt.holders(array)
    (text,) = [text for text in texts(found) if "[0][0]" in text]
    assert "..." in text
    assert len(text) < 300
    while type(chain) is list:
        chain = chain[0]


def test_many_views_are_counted_and_some_are_listed():
    array = held()
    views = [array[i % 1000 :] for i in range(3000)]
    found = memrt.holders(array)
    assert found.more == 3000 + 1 - len(found.rows)
    assert len(repr(found).splitlines()) < 100
    assert "more object" in repr(found)
    assert row_of(found, "block").unexplained == 0
    assert len(views) == 3000


def test_many_references_to_one_array_are_counted_and_some_are_listed():
    array = held()
    lists = [[array, array] for _ in range(500)]
    row = row_of(memrt.holders(array), "block")
    assert row.references > 1000
    assert row.unexplained == 0
    assert row.more >= 2 * (500 - 32)
    assert len(lists) == 500


def test_several_references_from_one_object_are_one_row():
    array = held()
    kept = [array, None, array]
    found = memrt.holders(array)
    assert referrer(found, "kept[0]").count == 2
    assert ", 2 times" in repr(found)


# --- That asking is safe. ---


def test_counts_are_as_before():
    array = held()
    mine, mi = array[1:], memrt.meminfo(array)
    plain = Plain()
    plain.kept = mine
    objects = (array, mine, mi, plain, CACHE, sys._getframe())
    before = [sys.getrefcount(each) for each in objects]
    memrt.holders(mine)
    assert [sys.getrefcount(each) for each in objects] == before
    assert mi.refcount == 2
    assert gc.isenabled()


def test_what_a_function_lets_go_is_gone_after_it_was_asked():
    mine = memrt.zeros(1000)
    found = memrt.holders(mine)
    live = memrt.stats().live
    del mine
    assert memrt.stats().live == live - 8000
    assert found.size == 8000


def test_the_block_of_an_array_is_not_made_a_meminfo():
    with memrt.Policy():
        mine = np.zeros(1000)
    before = memrt.stats().mi_alloc
    memrt.holders(mine)
    assert memrt.stats().mi_alloc == before


def test_a_collector_that_is_off_stays_off():
    array = held()
    gc.disable()
    memrt.holders(array)
    assert not gc.isenabled()
    gc.enable()


class Hostile:
    """Whatever is asked of it, it fails the test."""

    def _fail(self, *args):
        os.abort()

    __repr__ = __str__ = __eq__ = __hash__ = __getattr__ = __len__ = __iter__ = _fail
    __bool__ = __format__ = __call__ = __array__ = _fail
    __class__ = property(_fail)
    __dict__ = property(_fail)


class HostileMeta(type):
    """The same of classes."""

    def _fail(cls, *args):
        os.abort()

    __repr__ = __getattribute__ = __eq__ = __hash__ = __instancecheck__ = __subclasscheck__ = _fail
    __mro__ = __name__ = __module__ = property(_fail)


def test_nothing_of_hostile_objects_runs():
    array = held()
    hostile = Hostile()
    object.__setattr__(hostile, "kept", array)
    kind = HostileMeta("Kind", (), {"shared": array})
    member = object.__new__(kind)
    object.__setattr__(member, "kept", array)
    kept = [hostile, kind, member]
    found = memrt.holders(array)
    assert any("attribute `kept` of Hostile" in text for text in texts(found))
    assert any("attribute `kept` of Kind" in text for text in texts(found))
    assert any("attribute `shared` of class Kind" in text for text in texts(found))
    assert row_of(found, "block").unexplained == 0
    assert repr(found)
    assert len(kept) == 3


def test_containers_of_hostile_classes_are_looked_into_as_what_they_are():
    array = held()

    class Dict(dict):
        __iter__ = items = keys = values = __getitem__ = __len__ = Hostile._fail

    class List(list):
        __iter__ = __getitem__ = __len__ = index = Hostile._fail

    class Array(np.ndarray):
        shape = dtype = base = nbytes = property(Hostile._fail)

    dict_, list_ = Dict(a=array), List([array])
    view = np.ndarray.view(array, Array)
    found = memrt.holders(array)
    assert {"dict_['a']", "list_[0]", "view"} <= expressions(found)
    assert any(row.text == "Array float64 (1000,), all of it" for row in found.rows)


def test_containers_may_change_meanwhile():
    array = held()
    stop = threading.Event()
    kept: dict = {}

    def change():
        while not stop.is_set():
            kept[len(kept)] = [array, array[1:]]
            if len(kept) > 50:
                kept.clear()

    threads = [threading.Thread(target=change) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(6):
            assert memrt.holders(array).size == 8000
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_interrupting_it_raises_and_leaves_all_as_before(run_python):
    code = """
import memrt, gc, signal, threading, time, os
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored by inheritance
kept = [[i] for i in range(300_000)]
mine = memrt.zeros(10)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        memrt.holders(mine)
except KeyboardInterrupt:
    print("interrupted", gc.isenabled(), memrt.holders(mine).refcount)
"""
    assert run_python(code).stdout == "interrupted True 1\n"


def test_a_handler_of_signals_that_goes_on_lets_it_finish(run_python):
    code = """
import memrt, signal, threading, os
signal.signal(signal.SIGINT, lambda *_: print("signal", flush=True))
kept = [[i] for i in range(300_000)]
mine = memrt.zeros(10)
threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
print(memrt.holders(mine).refcount)
"""
    assert sorted(run_python(code).stdout.split()) == ["1", "signal"]


def test_a_program_that_traces_itself_is_not_disturbed():
    array = held()
    lines = []

    def trace(frame, event, argument):
        lines.append(frame.f_lineno)
        return trace

    def work():
        mine = array[1:]
        found = memrt.holders(mine)
        del mine
        return found

    sys.settrace(trace)
    found = work()
    sys.settrace(None)
    assert "mine" in expressions(found)
    assert lines


# --- What it is refused for, and what it gives. ---


@pytest.mark.parametrize("thing", [5, "text", None, np.zeros, [1], np.float64(1)], ids=repr)
def test_what_has_no_memory_is_a_type_error(thing):
    with pytest.raises(TypeError, match=r"expected an array, a memoryview, a memrt\.MemInfo"):
        memrt.holders(thing)


@pytest.mark.parametrize("thing", [np.zeros(3), memoryview(b"abc")], ids=["array", "memoryview"])
def test_memory_of_others_is_a_value_error_that_says_what_to_do(thing):
    with pytest.raises(ValueError, match=r"is not managed by memrt: memrt\.adopt\(\)"):
        memrt.holders(thing)


def test_a_meminfo_whose_cycle_was_collected_is_a_reference_error():
    plain = Plain()
    plain.mi = memrt.wrap(1, 0, owner=plain)
    seen = []
    plain.last = type("Last", (), {"__del__": lambda self: seen.append(self.mi)})()
    plain.last.mi = plain.mi
    mi = plain.mi
    assert memrt.holders(mi).size == 0
    del plain, mi
    gc.collect()
    seen.clear()


def test_the_result_is_plain_data():
    array = held()
    mine = array[::2]
    found = memrt.holders(mine)
    as_dict = found.to_dict()
    assert json.loads(json.dumps(as_dict)) == as_dict
    assert as_dict["holders"][0]["kind"] == "block"
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.size = 1


def test_the_tree_is_drawn():
    array = held()
    mine = array[2:12]
    lines = repr(memrt.holders(mine)).splitlines()
    assert lines[0] == "7.8 KiB MemInfo, refcount 1, policy held"
    assert lines[1] == "└─ ndarray float64 (1000,), owner of the block"
    assert lines[2].startswith("   ├─ ")
    assert lines[-2] == "   └─ ndarray float64 (10,), view of 80 B"
    assert lines[-1].startswith("      └─ local `mine` in test_the_tree_is_drawn() ")


def test_variables_of_a_frame_are_read_without_a_dict():
    array = held()
    mine = array[1:]

    def inner():
        return mine

    frame = sys._getframe()
    found = dict(_memrt.frame_variables(frame))
    assert found["array"] is array
    assert found["mine"].cell_contents is mine
    assert inner() is mine
    with pytest.raises(TypeError, match="expected a frame, got int"):
        _memrt.frame_variables(5)
    del found, frame


def test_a_heap_of_many_objects_is_searched():
    array = held()
    kept = [{"i": [i]} for i in range(200_000)]
    kept.append({"here": array})
    assert "kept[200000]['here']" in expressions(memrt.holders(array))
