# ruff: noqa: F841 - holders() looks for these local variables
"""Holders of a buffer: every kind of holder, every way to refer to a holder, and safe queries."""

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
from atonce import threads_repeat
from gil import needs_gil
from memrt import _memrt
from memrt._holders.search import build

pytestmark = needs_gil

CACHE: dict = {}
GLOBAL = None


def held() -> np.ndarray:
    """Return an array of 8000 bytes whose block NumPy allocated from memrt."""
    with memrt.Policy(name="held"):
        return np.zeros(1000)


def texts(found: memrt.types.Holders) -> list[str]:
    """Return the texts of all referrers of the holders."""
    return [each.text for row in found.rows for each in row.referrers]


def expressions(found: memrt.types.Holders) -> set[str | None]:
    return {each.expression for row in found.rows for each in row.referrers}


# References of the operands of a running call, besides the argument.
OPERANDS = 0 if sys.version_info >= (3, 11) else 1


def row_of(found: memrt.types.Holders, kind: str) -> memrt.types.Holder:
    """Return the only row of a kind."""
    (row,) = [row for row in found.rows if row.kind == kind]
    return row


def referrer(found: memrt.types.Holders, expression: str) -> memrt.types.Referrer:
    for row in found.rows:
        for each in row.referrers:
            if each.expression == expression:
                return each
    raise AssertionError(f"{expression} is not among {sorted(map(str, expressions(found)))}")


def is_explained(found: memrt.types.Holders) -> bool:
    """Return whether referrers explain all references."""
    return found.unexplained == 0 and all(row.unexplained == 0 for row in found.rows)


class Plain:
    """An object with attributes."""


class Slotted:
    __slots__ = ("kept",)


# --- Holders that keep a buffer alive. ---


def test_holders_lists_an_array_that_owns_its_block():
    with memrt.Policy(name="mine"):
        mine = np.zeros((10, 100))
    found = memrt.holders(mine)
    assert (found.nbytes, found.refcount, found.policy, found.kind) == (8000, 1, "mine", "block")
    assert found.address == mine.ctypes.data
    row = row_of(found, "block")
    assert row.text == "ndarray float64 (10, 100), owner of the block"
    assert row.nbytes == 8000
    assert row.referrers[0].expression == "mine"
    assert is_explained(found)


def test_holders_lists_an_array_under_its_meminfo():
    mine = memrt.zeros(1000, np.uint8)
    found = memrt.holders(mine)
    assert found.kind == "inline"
    assert [row.kind for row in found.rows] == ["meminfo", "array"]
    assert row_of(found, "meminfo").holders == (row_of(found, "array"),)
    assert row_of(found, "array").text == "ndarray uint8 (1000,), whole buffer"
    assert is_explained(found)


def test_holders_lists_a_lone_meminfo_and_its_name():
    mi = memrt.alloc(100, name="table")
    found = memrt.holders(mi)
    assert (found.name, found.refcount, found.nbytes) == ("table", 1, 100)
    assert row_of(found, "meminfo").referrers[0].text.startswith("local `mi` in test_holders_lists")
    assert is_explained(found)
    mi.name = None
    assert memrt.holders(mi).name is None


def test_non_string_attribute_key_is_shown_as_a_dict_item():
    mine, it = memrt.zeros(100), Plain()
    it.__dict__[7] = mine
    (reference,) = [each for each in row_of(memrt.holders(mine), "array").referrers
                    if "it" in each.expression]  # fmt: skip
    assert reference.expression.endswith("[7]")


def test_views_are_listed_under_their_base_array():
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


def test_holders_are_the_same_for_array_view_and_meminfo():
    mine = memrt.zeros(1000)
    view, memory, mi = mine[5:], memoryview(mine)[3:], memrt.meminfo(mine)
    seen = {tuple(sorted(texts(memrt.holders(each)))) for each in (mine, view, memory, mi)}
    assert len(seen) == 1


def test_array_referenced_only_by_the_call_has_0_references():
    mi = memrt.alloc(80)
    found = memrt.holders(memrt.as_array(mi, 10))
    assert [(row.kind, row.references) for row in found.rows] == [("meminfo", 2), ("array", 0)]
    assert is_explained(found)


def test_memoryview_and_its_buffer_are_listed():
    mine = memrt.zeros(1000, np.uint8)
    memory = memoryview(mine)[10:20]
    found = memrt.holders(mine)
    assert "memory" in expressions(found)
    assert any(row.text.startswith("memoryview of 10 B") for row in found.rows)
    assert row_of(found, "buffer").references == 1
    memory.release()
    assert "memory" not in expressions(memrt.holders(mine))


def test_released_memoryview_is_not_a_holder():
    mi = memrt.alloc(100)
    memory = memoryview(mi)
    assert [row.kind for row in memrt.holders(mi).rows] == ["meminfo", "buffer", "memoryview"]
    memory.release()
    assert [row.kind for row in memrt.holders(mi).rows] == ["meminfo"]


def test_capsule_of_c_code_is_listed(probe):
    mine = probe.make_array(100)
    found = memrt.holders(mine)
    assert [row.kind for row in found.rows] == ["capsule", "array"]
    assert is_explained(found)
    capsule = mine.base
    assert "capsule" in expressions(memrt.holders(capsule))


def test_arrays_on_both_sides_of_a_buffer_are_listed():
    mine = memrt.zeros(100, np.uint8)
    again = np.frombuffer(memoryview(mine)[10:], np.uint8)
    found = memrt.holders(again)
    assert {"mine", "again"} <= expressions(found)
    assert is_explained(found)


def test_arrays_around_an_as_strided_object_are_listed():
    mine = memrt.zeros(100)
    windows = np.lib.stride_tricks.sliding_window_view(mine, 10)
    found = memrt.holders(windows)
    assert row_of(found, "strides").holders
    assert any(row.nbytes == 800 and row.text.endswith("whole buffer") for row in found.rows)
    assert is_explained(found)


def test_holders_of_a_3_byte_array_lists_array_and_view():
    with memrt.Policy():
        tiny = np.zeros(3, np.uint8)
    view = tiny[1:]
    found = memrt.holders(view)
    assert (found.nbytes, found.refcount) == (3, 1)
    assert {"tiny", "view"} <= expressions(found)
    assert is_explained(found)
    assert memrt.holders(memrt.meminfo(tiny)).refcount == 2


def test_wrapping_meminfo_is_listed_as_holder_of_its_owner():
    mine = memrt.zeros(100, np.uint8)
    outer = memrt.wrap(mine.ctypes.data, 100, owner=mine)
    again = memrt.meminfo(memrt.as_array(outer, 100, np.uint8))
    found = memrt.holders(mine)
    assert any("MemInfo" in text and "outer" in text for text in texts(found))
    assert is_explained(found)
    assert again == outer


def test_holders_accepts_objects_that_export_a_meminfo():
    class Exporter:
        def __init__(self):
            self.mi = memrt.alloc(100)

        def __memrt_meminfo__(self):
            return self.mi.__memrt_meminfo__()

    exporter = Exporter()
    found = memrt.holders(exporter)
    assert found.refcount == 1
    assert "exporter.mi" in expressions(found)


def test_holders_accepts_resizable_and_empty_buffers(probe):
    mi = probe.make_resizable(100)
    assert memrt.holders(mi).nbytes == 100
    empty = memrt.zeros(0)
    assert memrt.holders(empty).nbytes == 0
    assert is_explained(memrt.holders(empty))


def test_named_c_references_are_listed_with_count(probe):
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


def test_unnamed_c_references_are_unexplained(probe):
    mine = memrt.zeros(100)
    address = probe.hold(mine)
    found = memrt.holders(mine)
    assert found.unexplained == 1
    assert repr(found).endswith(
        "└─ 1 reference unexplained: held by compiled code, or acquired by C code without a name"
    )
    probe.release(address)
    assert memrt.holders(mine).unexplained == 0


def test_array_held_by_c_code_has_an_unexplained_reference(probe):
    mine = memrt.zeros(100)
    probe.keep(mine)
    row = row_of(memrt.holders(mine), "array")
    assert row.unexplained == 1
    probe.keep(None)
    assert row_of(memrt.holders(mine), "array").unexplained == 0


# --- Referrers of holders. ---


def test_local_is_shown_with_function_file_and_line():
    array = held()
    mine = array[:10]
    found = memrt.holders(mine)
    line = sys._getframe().f_lineno - 1
    each = referrer(found, "mine")
    name = "test_local_is_shown_with_function_file_and_line"
    assert (each.kind, each.function, each.line) == ("local", name, line)
    assert each.file == __file__
    assert each.text == f"local `mine` in {name}() test_holders.py:{line}"


def test_global_is_shown_with_its_module():
    array = held()
    global GLOBAL
    GLOBAL = array[1:]
    each = referrer(memrt.holders(array), f"{__name__}.GLOBAL")
    assert (each.kind, each.text) == ("global", f"{__name__}.GLOBAL")
    for _ in range(10):
        GLOBAL = [GLOBAL]
    found = memrt.holders(array)
    GLOBAL = None
    assert f"{__name__}.GLOBAL" + "[0]" * 10 in expressions(found)


def test_global_of_a_module_outside_sys_modules_has_no_name():
    array = held()
    module = types.ModuleType("unlisted")
    module.kept = array[1:]
    each = referrer(memrt.holders(array), "<module>.kept")
    assert (each.kind, each.text) == ("global", "<module>.kept")


Request = collections.namedtuple("Request", "method number")


class Lying(tuple):
    """A tuple whose methods fail: memrt must not call them."""

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
def test_dict_value_is_shown_with_its_key(key, text):
    array = held()
    CACHE[key] = array[1:]
    assert f"{__name__}.CACHE[{text}]" in expressions(memrt.holders(array))
    CACHE.clear()


def test_dict_key_is_shown_as_a_key():
    mi = memrt.alloc(10)
    CACHE[mi] = 1
    assert f"{__name__}.CACHE (the key <MemInfo>)" in expressions(memrt.holders(mi))
    CACHE.clear()


def test_container_items_are_shown_with_index_or_key():
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


def test_containers_untracked_by_the_collector_are_searched():
    array = held()
    untracked = {"only": array}
    nested = ((array,),)
    gc.collect()
    assert {"untracked['only']", "nested[0][0]"} <= expressions(memrt.holders(array))
    assert nested


def test_attributes_are_shown_with_class_and_name():
    array = held()
    plain, slotted, other = Plain(), Slotted(), np.zeros(3).view(Array)
    plain.kept = array
    slotted.kept = array
    other.kept = array
    Plain.shared = array
    found = memrt.holders(array)
    assert referrer(found, "plain.kept").kind == "attribute"
    assert referrer(found, "plain.kept").text.startswith("attribute `kept` of Plain, `plain.kept`")
    assert referrer(found, "slotted.kept").text.startswith("attribute `kept` of Slotted, ")
    assert referrer(found, "other.kept").text.startswith("attribute `kept` of Array, ")
    shared = referrer(found, f"{__name__}.Plain.shared")
    assert shared.text == f"attribute `shared` of class Plain, {__name__}.Plain.shared"
    del Plain.shared


def test_closure_variables_are_shown():
    array = held()

    def make():
        mine = array[1:]
        return lambda: mine

    function = make()
    found = memrt.holders(array)
    each = referrer(found, "function (closure variable `mine`)")
    assert each.kind == "closure"
    assert is_explained(found)


def test_defaults_methods_and_partials_are_shown():
    array = held()

    def function(a=array):
        return a

    method = array.sum
    partial = functools.partial(len, array)
    found = memrt.holders(array)
    assert {"function.__defaults__[0]", "partial.args[0]"} <= expressions(found)
    assert "method.__self__" in expressions(found)
    assert row_of(found, "block").unexplained == 0


def test_functools_cache_results_are_shown():
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


def test_generator_and_coroutine_locals_are_shown():
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


def test_running_generator_is_shown_once():
    array = held()

    def generate(mine):
        yield memrt.holders(mine)

    found = next(generate(array))
    assert sum("local `mine`" in text for text in texts(found)) == 1


def count_listed(row: memrt.types.Holder) -> int:
    """Return the number of references to a holder that the referrers make."""
    return sum(each.count for each in row.referrers)


def test_argument_of_a_function_adds_only_its_own_references():
    """Since Python 3.14 an argument may borrow the reference of the calling function's variable."""
    mine = memrt.zeros(100)

    def query(argument):
        return memrt.holders(argument)

    found = query(mine)
    array = row_of(found, "array")
    assert "mine" in expressions(found)
    assert (array.unexplained, found.unexplained) == (OPERANDS, 0)
    assert count_listed(array) + OPERANDS == array.references


def test_temporary_argument_is_shown_under_the_argument():
    def query(argument):
        return memrt.holders(argument)

    found = query(memrt.zeros(100))
    assert expressions(found) == {"argument"}
    assert (row_of(found, "array").unexplained, found.unexplained) == (OPERANDS, 0)


def test_operands_of_a_running_generator_add_no_references():
    def query():
        mine = memrt.zeros(100)
        yield build(*_memrt.find_holders(mine, 0, 0))  # the argument stays an operand

    found = next(query())
    row = row_of(found, "array")
    assert [each.expression for each in row.referrers] == ["mine"]
    assert count_listed(row) == 1


def test_asyncio_task_locals_are_shown():
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


def test_locals_of_other_threads_are_shown():
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


def test_context_variables_and_thread_locals_are_explained():
    array = held()
    variable = contextvars.ContextVar("variable")
    local = threading.local()
    variable.set(array)
    local.kept = array
    found = memrt.holders(array)
    assert row_of(found, "block").unexplained == 0
    variable.set(None)


def test_locals_kept_by_a_traceback_are_shown():
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


def test_attribute_of_garbage_is_shown_without_a_path():
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


def test_holders_inside_reference_cycles_are_found():
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


def test_deep_expression_is_shortened():
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


def test_long_path_in_garbage_is_shortened():
    array = held()
    chain = [array]
    for _ in range(20):
        chain = [chain]
    chain.append(chain)
    gc.disable()
    try:
        del chain
        found = memrt.holders(array)
    finally:
        gc.enable()
    (text,) = [text for text in texts(found) if "[0][0]" in text]
    assert text.startswith("<list> ... [0][0]")
    assert text.endswith("[0], without a known path from a variable")


@pytest.mark.parametrize(("ancestors", "path"), [(64, "<list> ... [0][0]"), (65, "<list>[0],")])
def test_garbage_object_has_a_path_of_up_to_64_ancestors(ancestors, path):
    array = held()
    gc.disable()
    try:
        last = [array]
        first = chain = []
        first.append(first)
        for _ in range(ancestors - 1):
            chain.append([])
            chain = chain[-1]
        chain.append(last)
        del first, chain, last
        found = memrt.holders(array)
    finally:
        gc.enable()
    (text,) = [text for text in texts(found) if "[0]" in text]
    assert text.startswith(path)
    assert text.endswith("[0], without a known path from a variable")


def test_many_views_are_counted_and_some_are_listed():
    array = held()
    views = [array[i % 1000 :] for i in range(3000)]
    found = memrt.holders(array)
    assert found.more == 3000 + 1 - len(found.rows)
    assert len(repr(found).splitlines()) < 100
    assert "more object" in repr(found)
    assert row_of(found, "block").unexplained == 0
    assert len(views) == 3000


def test_many_references_to_an_array_are_counted_some_listed():
    array = held()
    lists = [[array, array] for _ in range(500)]
    row = row_of(memrt.holders(array), "block")
    assert row.references > 1000
    assert row.unexplained == 0
    assert row.more >= 2 * (500 - 32)
    assert len(lists) == 500


def test_references_from_the_same_object_share_a_row():
    array = same = held()
    kept = [array, None, array]
    found = memrt.holders(array)
    assert [referrer(found, name).count for name in ("array", "kept[0]")] == [2, 2]
    assert ", 2 times" in repr(found)


# --- Safety of queries. ---


def test_holders_leaves_reference_counts_unchanged():
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


def test_holders_result_does_not_keep_the_buffer_alive():
    mine = memrt.zeros(1000)
    found = memrt.holders(mine)
    live = memrt.stats().live
    del mine
    assert memrt.stats().live == live - 8000
    assert found.nbytes == 8000


def test_holders_creates_no_meminfo_for_a_block():
    with memrt.Policy():
        mine = np.zeros(1000)
    before = memrt.stats().mi_alloc
    memrt.holders(mine)
    assert memrt.stats().mi_alloc == before


def test_holders_leaves_a_disabled_collector_disabled():
    array = held()
    gc.disable()
    memrt.holders(array)
    assert not gc.isenabled()
    gc.enable()


class Hostile:
    """An object whose methods and properties abort the test."""

    def _fail(self, *args):
        os.abort()

    __repr__ = __str__ = __eq__ = __hash__ = __getattr__ = __len__ = __iter__ = _fail
    __bool__ = __format__ = __call__ = __array__ = _fail
    __class__ = property(_fail)
    __dict__ = property(_fail)


class HostileMeta(type):
    """A metaclass whose methods and properties abort the test."""

    def _fail(cls, *args):
        os.abort()

    __repr__ = __getattribute__ = __eq__ = __hash__ = __instancecheck__ = __subclasscheck__ = _fail
    __mro__ = __name__ = __module__ = property(_fail)


def test_holders_runs_no_code_of_hostile_objects():
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


def test_containers_of_hostile_subclasses_are_searched():
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
    assert any(row.text == "Array float64 (1000,), whole buffer" for row in found.rows)


def test_holders_works_while_threads_change_containers():
    array = held()
    kept: dict = {}

    def change():
        kept[len(kept)] = [array, array[1:]]
        if len(kept) > 50:
            kept.clear()

    with threads_repeat(change, 3):
        for _ in range(6):
            assert memrt.holders(array).nbytes == 8000


STRUCTURES = {
    "many lists": "kept = [[i] for i in range(300_000)]\n",
    "a long chain of views": """
kept = mine
for _ in range(50_000):
    kept = np.asarray(memoryview(kept))
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("call", ["memrt.holders(mine)", "memrt.debug.retention(0, 0)"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_interrupt_raises_and_keeps_refcount_and_gc_state(run_python, structure, call):
    code = f"""
import memrt, gc, signal, threading, time, os
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored by inheritance
mine = memrt.zeros(10)
{STRUCTURES[structure]}
before = memrt.holders(mine).refcount
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        {call}
except KeyboardInterrupt:
    print("interrupted", gc.isenabled(), memrt.holders(mine).refcount - before)
"""
    assert run_python(code).stdout == "interrupted True 0\n"


SEARCHES = {
    "holders": "_memrt.find_holders(buffers[0], 0, 0)",
    "retention": "_memrt.find_retention(0, 0.0, 10)",
    "survey": "_memrt.survey(addresses, 20_000, 1)",
}
AT_CHECKS = """
import ctypes, gc, os, signal, sys
import numpy as np
import memrt
from memrt import _memrt

signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored by inheritance
plan = ctypes.CDLL(os.environ["LD_PRELOAD"].split(":")[-1])
count = 9_000  # more than the steps between two checks
buffers = [memrt.alloc(16, name="buffer") for _ in range(count)]
addresses = [each.address for each in buffers]
kept = [[memrt.as_array(each)[1:]] for each in buffers]
views = [np.asarray(memoryview(buffers[0])) for _ in range(count)]
del buffers[1:]


def interrupted(nth):
    plan.interrupts_plan(nth)
    try:
        SEARCH
    except KeyboardInterrupt:
        return True
    return False


def references():
    return gc.isenabled(), buffers[0].refcount, sys.getrefcount(buffers[0])


before = references()
assert not interrupted(0)
checks = plan.interrupts_seen()
chosen = [*range(1, checks, 3), *range(checks - 9, checks)]
signal.signal(signal.SIGINT, lambda *_: handled.append(1))
handled = []
assert not interrupted(5)  # the search starts again after a handler that returns
assert handled == [1] * bool(checks)
signal.signal(signal.SIGINT, signal.default_int_handler)
print(checks, sum(map(interrupted, chosen)) == len(chosen), references() == before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
def test_interrupt_at_any_check_ends_a_search(run_python, interrupts, search):
    preload = ":".join(filter(None, (os.environ.get("LD_PRELOAD"), str(interrupts))))
    code = AT_CHECKS.replace("SEARCH", SEARCHES[search])
    checks, are_interrupted, is_same = run_python(code, env={"LD_PRELOAD": preload}).stdout.split()
    if checks == "0":
        pytest.skip("this Python has no shared libpython: no preload can interrupt a search")
    assert int(checks) > 50
    assert (are_interrupted, is_same) == ("True", "True")


# --- Cost. ---


class Linked:
    __slots__ = ("after", "value")

    def __init__(self, after: object, value: object) -> None:
        self.after, self.value = after, value


def deep_list(array: np.ndarray, length: int) -> list:
    """Return a linked list whose last 100 nodes have views of the array."""
    head = None
    for number in range(length):
        head = Linked(head, array[number:] if number < 100 else None)
    return [head]


def chained_views(array: np.ndarray, length: int) -> list:
    for _ in range(length // 10):
        array = np.asarray(memoryview(array))
    return [array]


def views_in_one_list(array: np.ndarray, length: int) -> list:
    return [array[number % 1000 :] for number in range(length)]


def steps_of(function, build, length: int) -> int:
    """Return the steps of a search, less the steps with a structure of length 0."""
    counts = []
    for size in (0, length):
        array = held()
        kept = build(array, size)
        function(array)
        counts.append(_memrt.graph_steps())
        assert kept is not None
        while kept and type(kept[0]) is Linked:  # free a deep list node by node
            kept[0] = kept[0].after
        del array, kept
    return counts[1] - counts[0]


@pytest.mark.slow
@pytest.mark.parametrize("build", [deep_list, chained_views, views_in_one_list])
@pytest.mark.parametrize("function", [memrt.holders, lambda _: memrt.debug.retention(0, 0)])
def test_search_steps_are_linear_in_object_graph_size(function, build):
    few, many = (steps_of(function, build, length) for length in (2_000, 32_000))
    assert few > 0
    assert many < 64 * few  # 16 if linear (more where tables double); 256 if quadratic


@pytest.mark.slow
def test_survey_steps_are_linear_in_the_number_of_buffers():
    with (
        memrt.Policy(name="held"),
        memrt.debug.tracking(),
    ):  # tracking finds a buffer by its address
        counts = []
        for length in (100, 1_600, 25_600):
            kept = [np.ones(20) for _ in range(length)]
            addresses = [array.ctypes.data for array in kept]
            rows, references, ways = _memrt.survey(addresses, 10, 0)
            counts.append(_memrt.graph_steps())
            assert [row[3] for row in rows] == [1] * length
            assert (len(references), len(ways)) == (length, 1)
    assert counts[2] - counts[1] < 64 * (counts[1] - counts[0])


def test_survey_limits_reference_paths_but_counts_all_buffers():
    with memrt.Policy(name="held"), memrt.debug.tracking():
        kept = [Plain() for _ in range(20)]
        for each in kept:
            each.array = np.ones(20)
    del each
    addresses = [each.array.ctypes.data for each in kept]
    rows, references, ways = _memrt.survey([*addresses, 8], 5, 0)
    assert [(row[0], row[3]) for row in rows] == [(1, 1)] * 20 + [(0, 0)]
    assert (len(ways), sum(way == -1 for _, way, *_ in references)) == (5, 15)


def test_survey_of_many_paths_keeps_no_objects():
    with memrt.debug.tracking():
        kept = [Plain() for _ in range(600)]  # CPython never frees integers up to 256
        for each in kept:
            each.array = memrt.empty(8)
        del each
        addresses = [each.array.ctypes.data for each in kept]
        blocks = []
        for _ in range(3):
            rows, references, ways = _memrt.survey(addresses, 20_000, 0)
            assert len(ways) == len(rows) == 600
            del rows, references, ways
            gc.collect()
            blocks.append(sys.getallocatedblocks())
    assert blocks[2] - blocks[1] < 100


@pytest.mark.parametrize("arguments", [((), 1, 0), ([None], 1, 0), ([2**70], 1, 0), ([1],)])
def test_survey_refuses_invalid_arguments(arguments):
    with pytest.raises((TypeError, OverflowError)):
        _memrt.survey(*arguments)


def array_of(first, second):
    array = np.empty(2, object)
    array[:] = first, second
    return array


def nested(first, second):
    container = [first, second]
    for _ in range(20):
        container = [container]
    return container


def cycle(first, second):
    table = {"first": first, "second": second}
    table["table"] = table


def long_cycle(first, second):
    innermost = container = [first, second]
    for _ in range(100):
        container = [container]
    innermost.append(container)


class Set(set):
    pass


class FrozenSet(frozenset):
    __slots__ = ()


class Array(np.ndarray):
    pass


def self_containing(first, second):
    container = [first, second]
    container.append(container)


def array_attributes(first, second):
    array = np.zeros(3).view(Array)
    array.first, array.second = first, second
    return array


def owned(first, second):
    table, memory = {"first": first, "second": second}, np.zeros(8)
    return memrt.wrap(memory.ctypes.data, 64, owner=table), memory


def attributes(first, second):
    each = Plain()
    each.first, each.second = first, second
    vars(each)  # CPython makes the dict
    return each


CONTAINERS = {
    "list": (lambda a, b: [a, b], 1),
    "tuple": (lambda a, b: (a, b), 1),
    "set": (lambda a, b: {a, b}, 1),
    "frozenset": (lambda a, b: frozenset((a, b)), 1),
    "subclass of set": (lambda a, b: Set((a, b)), 1),
    "subclass of frozenset": (lambda a, b: FrozenSet((a, b)), 1),
    "deque": (lambda a, b: collections.deque((a, b)), 1),
    "object array": (array_of, 1),
    "ordered dict": (lambda a, b: collections.OrderedDict(first=a, second=b), 1),
    "dict of a frame": (lambda a, b: {"first": a, "second": b}, 1),
    "dict in a dict": (lambda a, b: {"table": {"first": a, "second": b}}, 1),
    "dict in a tuple": (lambda a, b: ({"first": a, "second": b},), 1),
    "deeply nested lists": (nested, 1),
    "dict of a cycle": (cycle, 2),
    "long cycle": (long_cycle, 1),
    "list in itself": (self_containing, 1),
    "attributes of an array": (array_attributes, 2),
    "dict that owns memory": (owned, 2),
    "attributes": (attributes, 2),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_survey_reports_one_way_per_container(container):
    make, ways = CONTAINERS[container]
    gc.collect()
    gc.disable()  # a cycle stays until the search
    try:
        buffers = [memrt.alloc(16, name="buffer") for _ in range(2)]
        addresses = [each.address for each in buffers]
        kept = make(*buffers)
        del buffers
        rows, references, found = _memrt.survey(addresses, 10, 0)
    finally:
        gc.enable()
    assert [row[3] for row in rows] == [1, 1]
    assert (len(references), len(found)) == (2, ways)


def test_survey_of_address_0_finds_no_buffer():
    rows, references, ways = _memrt.survey([0], 10, 0)
    assert ([row[0] for row in rows], references, ways) == ([0], [], [])


def test_survey_counts_all_references_but_reports_four():
    buffer = memrt.alloc(16, name="buffer")
    kept = [[buffer] for _ in range(9)]
    rows, references, _ = _memrt.survey([buffer.address], 20, 0)
    assert (rows[0][3], len(references)) == (10, 4)


class DummyArray:
    """A class with the name of the object that NumPy's as_strided leaves in a chain of bases."""


def test_search_ends_on_a_circular_chain_of_bases():
    first, second = DummyArray(), DummyArray()
    first.base, second.base = second, first
    vars(first), vars(second)  # CPython makes the dicts
    array = held()
    assert list(memrt.debug.retention(0, 0)) == []
    assert is_explained(memrt.holders(array))
    del first.base


def test_dict_of_an_as_strided_object_is_explained():
    array = held()
    view = np.lib.stride_tricks.as_strided(array, (3,), (8,))
    assert vars(view.base)
    found = memrt.holders(array)
    assert is_explained(found)
    assert "view" in expressions(found)


def test_target_of_a_write_back_is_no_link():
    array = held()
    flags = [["readwrite", "updateifcopy"]]
    with np.nditer(array, [], flags, casting="unsafe", op_dtypes=["f4"]) as iterator:
        copy = iterator.operands[0]
        assert copy.base is array
        found = memrt.holders(array)
        assert is_explained(found)
        text = referrer(found, "copy.base").text
        assert text.startswith("attribute `base` of ndarray, `copy.base` in ")
        assert memrt.adopt(copy) is not copy


def test_holders_inside_a_generator_names_its_variable():
    def generator():
        mine = held()
        yield memrt.holders(mine)

    assert "mine" in expressions(next(generator()))


@pytest.mark.parametrize("length", [1, 2, 3])
def test_block_without_a_header_has_the_same_holders(length):
    with memrt.Policy(16, "small"):
        array = np.ones(length)
    memrt.meminfo(array)
    assert expressions(memrt.holders(array)) == {"array"}


def test_replaced_collector_function_raises_runtime_error(monkeypatch):
    array = held()
    monkeypatch.setattr(gc, "get_objects", lambda: 5)
    with pytest.raises(RuntimeError, match="was replaced"):
        memrt.holders(array)


class Here:
    pass


def test_place_is_none_where_the_object_is_absent():
    for container in ({1: 2}, [1], (1,), np.ones(3), array_of(1, 2), {1}, 5):
        assert _memrt.find_place(container, Here) is None
    for container in ({1: 2}, [1], (1,), {1}, 5):
        assert _memrt.find_places(container, [Here]) == [None]


def test_first_place_of_an_object_is_reported():
    assert _memrt.find_places([Here, Here], [Here]) == [("index", 0)]
    assert _memrt.find_places((1, Here, Here), [Here]) == [("index", 1)]
    kind, _ = _memrt.find_places({Here: Here}, [Here])[0]
    assert kind == "value"


def test_container_of_many_views_is_not_searched_per_view(monkeypatch):
    array = held()
    views = views_in_one_list(array, 500)
    single = []

    def find_place(container, value, find=_memrt.find_place):
        single.append(container)
        return find(container, value)

    monkeypatch.setattr(_memrt, "find_place", find_place)
    found = memrt.holders(array)
    assert sum(container is views for container in single) == 0
    assert expressions(found) >= {f"views[{number}]" for number in range(500)}


def test_long_chain_of_views_is_cut_and_counted():
    array = held()
    (end,) = chained_views(array, 20_000)
    found = memrt.holders(array)
    assert 0 < len(found.rows) <= 64
    assert found.more > 2_000
    assert "more object" in repr(found)
    assert json.dumps(found.to_dict())
    assert end.size == array.size


def test_array_element_that_is_its_own_view_is_shown():
    with memrt.Policy(name="held"):
        array = np.empty(20, object)
    array[0] = array[:1]
    found = memrt.holders(array)
    assert "array[0]" in expressions(found)
    assert row_of(found, "block").holders == (row_of(found, "array"),)
    array[0] = None


def test_holders_finishes_after_a_returning_signal_handler(run_python):
    code = """
import memrt, signal, threading, os
signal.signal(signal.SIGINT, lambda *_: print("signal", flush=True))
kept = [[i] for i in range(300_000)]
mine = memrt.zeros(10)
threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
print(memrt.holders(mine).refcount)
"""
    assert sorted(run_python(code).stdout.split()) == ["1", "signal"]


def test_holders_works_under_sys_settrace():
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


# --- Refusals and results. ---


@pytest.mark.parametrize("thing", [5, "text", None, np.zeros, [1], np.float64(1)], ids=repr)
def test_holders_of_an_unsupported_type_raises_type_error(thing):
    with pytest.raises(TypeError, match=r"expected an array, a memoryview, a memrt\.MemInfo"):
        memrt.holders(thing)


@pytest.mark.parametrize("thing", [np.zeros(3), memoryview(b"abc")], ids=["array", "memoryview"])
def test_holders_of_unmanaged_memory_raises_with_advice(thing):
    with pytest.raises(ValueError, match=r"is not managed by memrt: call memrt\.adopt\(\)"):
        memrt.holders(thing)


def meminfo_of_collected_cycle(dtor=None) -> memrt.MemInfo:
    """Return a MemInfo of a reference cycle that a finalizer made reachable again."""
    plain = Plain()
    plain.mi = memrt.wrap(1, 0, dtor, owner=plain)
    seen = []
    plain.last = type("Last", (), {"__del__": lambda self: seen.append(self.mi)})()
    plain.last.mi = plain.mi
    assert memrt.holders(plain.mi).nbytes == 0
    del plain
    assert seen == []
    gc.collect()
    (mi,) = seen
    return mi


def test_holders_of_a_meminfo_released_with_its_cycle_raises():
    freed = []
    mi = meminfo_of_collected_cycle(lambda *arguments: freed.append(arguments))
    assert freed == [(1, 0)]
    with pytest.raises(ReferenceError, match="reference cycle"):
        memrt.holders(mi)


def test_holders_of_a_resurrected_meminfo_without_dtor_works():
    mi = meminfo_of_collected_cycle()
    assert mi.parent.mi is mi
    assert memrt.holders(mi).nbytes == 0


def test_holders_result_is_frozen_and_serializable():
    array = held()
    mine = array[::2]
    found = memrt.holders(mine)
    as_dict = found.to_dict()
    assert json.loads(json.dumps(as_dict)) == as_dict
    assert as_dict["holders"][0]["kind"] == "block"
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.nbytes = 1


def test_repr_of_holders_draws_a_tree():
    array = held()
    mine = array[2:12]
    lines = repr(memrt.holders(mine)).splitlines()
    assert lines[0] == "7.8 KiB MemInfo, refcount 1, policy held"
    assert lines[1] == "└─ ndarray float64 (1000,), owner of the block"
    assert lines[2].startswith("   ├─ ")
    assert lines[-2] == "   └─ ndarray float64 (10,), view of 80 B"
    assert lines[-1].startswith("      └─ local `mine` in test_repr_of_holders_draws_a_tree() ")


def test_frame_variables_returns_locals_and_closure_cells():
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


def test_holder_among_200_000_objects_is_found():
    array = held()
    kept = [{"i": [i]} for i in range(200_000)]
    kept.append({"here": array})
    assert "kept[200000]['here']" in expressions(memrt.holders(array))
