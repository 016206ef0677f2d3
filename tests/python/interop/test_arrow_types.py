"""Arrow arrays of several buffers, with children or dictionaries, and streams of them.

memrt exports the arrays. A test changes a field of a struct before memrt imports the struct.
"""

from __future__ import annotations

import contextlib
import ctypes
import decimal
import gc
import itertools
import signal
import threading

import hypothesis.strategies as st
import memrt
import numpy as np
import pytest
from arrowarray import Array, Schema, StreamProducer, release, struct_of, structs_in
from atonce import on_threads
from exported import exports_of
from gil import GIL_IS_OFF
from hypothesis import given
from memrt import _memrt
from memrt.types import Column

WORDS = ["one", "", "three", "a word of more than twelve bytes"]


def words() -> Column:
    return Column(np.array([*WORDS, None], object), "words", copy=None)


def lists() -> Column:
    return Column(memrt.array([1, 2, 3]), offsets=memrt.array([0, 1, 3], np.int32))


def codes() -> Column:
    return Column(memrt.array([0, 4, 1], np.int8), dictionary=words())


def rows() -> Column:
    return Column(memrt.array([[1, 2], [3, 4]]))


def table() -> Column:
    masked = np.ma.MaskedArray(memrt.array([1.5, 2.5]), [True, False], copy=False)
    return Column({"x": masked, "y": memrt.array([True, False]), "z": rows()}, "table")


def dates() -> Column:
    return Column(np.array(["2026-11-27", "NaT"], "M8[D]"), copy=None)


COLUMNS = {
    "words": words, "lists": lists, "codes": codes, "rows": rows, "table": table, "dates": dates,
}  # fmt: skip
VALUES = {
    "words": [*WORDS, None],
    "lists": [[1], [2, 3]],
    "codes": ["one", None, ""],
    "rows": [[1, 2], [3, 4]],
    "table": [(None, True, [1, 2]), (2.5, False, [3, 4])],
    "dates": [np.datetime64("2026-11-27").item(), None],
}


def values_of(x: object) -> list:
    array = memrt.from_arrow(x, masked=True, copy=None)
    if array.dtype.names is not None:  # not all at once: numpy.ma fails for fields with axes
        return list(zip(*[array[name].tolist() for name in array.dtype.names], strict=True))
    return [item.tolist() if isinstance(item, np.ndarray) else item for item in array.tolist()]


class Changed:
    """Export the capsules of a Column, after a change of the structs."""

    def __init__(self, column: Column, change=lambda schema, array: None) -> None:
        self.capsules = column.__arrow_c_array__()
        change(*[struct_of(capsule) for capsule in self.capsules])

    def __arrow_c_array__(self, requested_schema=None):
        return self.capsules


@pytest.fixture(autouse=True)
def _balance(request):
    """Check that each test gives all memory back."""
    before = memrt.stats()
    yield
    gc.collect()
    _memrt.owners()
    if request.node.get_closest_marker("thread_unsafe"):
        difference = memrt.stats() - before
        assert (difference.adopted, difference.live) == (0, 0)


# --- Round trips. ---


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("again", [0, 1, 2])
def test_column_survives_export_and_import(kind, again):
    column = COLUMNS[kind]()
    format, name = column.format, column.name
    for _ in range(again):
        [column] = Column.chunks(column)
    assert (column.format, column.name) == (format, name)
    assert values_of(column) == VALUES[kind]
    assert len(column) == len(VALUES[kind])


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.parametrize("kind", COLUMNS)
def test_part_keeps_the_whole_array_alive(kind):
    column = COLUMNS[kind]()
    before = memrt.stats().exported
    [taken] = Column.chunks(column)
    held = memrt.stats().exported
    assert held > before
    parts = taken.parts
    del taken
    gc.collect()
    assert memrt.stats().exported == held
    while parts:
        parts.popitem()
    gc.collect()
    assert memrt.stats().exported == before


def test_import_without_copy_has_the_same_addresses():
    array = memrt.array(np.arange(24).reshape(2, 3, 4))
    back = memrt.from_arrow(Column(array))
    assert (back.shape, back.ctypes.data) == (array.shape, array.ctypes.data)
    assert not back.flags.writeable
    [column] = Column.chunks(Column({"a": memrt.array([1, 2])}))
    assert memrt.meminfo(column.parts["fields"][0].array).kind == "adopted"


def test_copy_is_made_by_the_policy():
    policy = memrt.Policy(name="copies")
    array = memrt.from_arrow(dates(), masked=True, copy=None, policy=policy)
    assert memrt.meminfo(array.data).policy == "copies"
    array = memrt.from_arrow(Column(memrt.array([1, 2])), copy=True, policy=policy)
    assert (memrt.meminfo(array).policy, array.flags.writeable) == ("copies", True)


@pytest.mark.parametrize("kind", ["words", "lists", "codes", "table", "dates"])
def test_import_that_needs_a_copy_is_refused_without_the_array(kind):
    producer = Changed(COLUMNS[kind]())
    with pytest.raises(BufferError, match="pass copy=None"):
        memrt.from_arrow(producer, masked=True)
    assert values_of(producer) == VALUES[kind]


@pytest.mark.parametrize("copy", ["yes", 1, 0, ()])
def test_copy_must_be_none_or_bool(copy):
    with pytest.raises(TypeError, match="copy must be"):
        memrt.from_arrow(words(), copy=copy)
    with pytest.raises(TypeError, match="copy must be"):
        Column(memrt.array([1]), copy=copy)
    with pytest.raises(TypeError, match="copy must be"):
        words().to_numpy(copy=copy)


def test_attributes_of_columns():
    column = words()
    assert repr(column) == "<memrt.types.Column of 5 elements of Arrow's format 'u'>"
    assert column.to_numpy(masked=True, copy=None).tolist() == [*WORDS, None]
    plain = Column(memrt.array([1, 2]))
    assert (plain.format, plain.to_numpy().tolist(), plain.parts["validity"]) == ("l", [1, 2], None)
    [imported] = Column.chunks(plain)
    assert (imported.array.tolist(), repr(imported)[-4:]) == ([1, 2], "'l'>")
    [imported] = Column.chunks(words())
    with pytest.raises(BufferError, match="pass copy=None"):
        _ = imported.array


NUMBERS = st.lists(st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)), max_size=20)
TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=20)), max_size=10)


@given(TEXTS, st.integers(0, 10), st.integers(0, 10))
def test_any_texts_survive_slices(texts, start, length):
    column = Column(np.array([*texts, None], object)[:-1], copy=None)
    schema, array = column.__arrow_c_array__()
    struct = struct_of(array)
    start = min(start, len(texts))
    struct.offset, struct.length = start, min(length, len(texts) - start)
    struct.null_count = -1
    taken = Column._of(_take(schema, array))
    assert taken.to_numpy(masked=True, copy=None).tolist() == texts[start : start + length]


@given(NUMBERS)
def test_any_days_survive(days):
    array = np.ma.MaskedArray(
        [day or 0 for day in days], [day is None for day in days], "M8[D]", shrink=False
    )
    back = memrt.from_arrow(Column(array, copy=None), masked=True, copy=None)
    assert np.ma.getmaskarray(back).tolist() == np.ma.getmaskarray(array).tolist()
    assert back.compressed().view("i8").tolist() == [day for day in days if day is not None]


def _take(schema, array):
    from memrt._interop.arrow_parts import take

    return take(schema, array, None)


# --- Malformed arrays. ---


def setting(**fields):
    """Return a change of structs: fields of the array, or after ``schema_`` of the schema."""

    def change(schema, array):
        for field, value in fields.items():
            owner = schema if field.startswith("schema_") else array
            setattr(owner, field.removeprefix("schema_"), value)

    return change


def in_child(**fields):
    def change(schema, array):
        setting(**fields)(structs_in(schema)[0], structs_in(array)[0])

    return change


def offsets_of(*numbers, index=1):
    """Return a change of the offsets of texts or lists."""

    def change(_, array):
        kept.append((ctypes.c_int32 * len(numbers))(*numbers))
        array.buffers[index] = ctypes.addressof(kept[-1])

    return change


def without_first(pointers: int) -> None:
    ctypes.c_void_p.from_address(pointers).value = None


kept: list = []
BOOL8 = ctypes.create_string_buffer(
    b"\x01\0\0\0\x14\0\0\0ARROW:extension:name\x0b\0\0\0arrow.bool8"
)
OTHER = ctypes.create_string_buffer(b"\x01\0\0\0\x04\0\0\0unit\x01\0\0\0m")

MALFORMED = {
    "a negative length": ("words", setting(length=-1)),
    "a negative offset": ("words", setting(offset=-1)),
    "an end beyond int64": ("words", setting(offset=2**62, length=2**62)),
    "too many nulls": ("words", setting(null_count=6)),
    "a negative number of nulls": ("words", setting(null_count=-2)),
    "nulls without a bitmap": ("dates", lambda _, a: a.buffers.__setitem__(0, None)),
    "two buffers": ("words", setting(n_buffers=2)),
    "a negative number of buffers": ("words", setting(n_buffers=-1)),
    "a wild number of buffers": ("words", setting(n_buffers=2**40)),
    "no table of buffers": ("words", setting(buffers=None)),
    "no offsets": ("words", lambda _, a: a.buffers.__setitem__(1, None)),
    "no data": ("words", lambda _, a: a.buffers.__setitem__(2, None)),
    "data beyond the address space": ("words", lambda _, a: a.buffers.__setitem__(2, 2**64 - 2)),
    "a negative last offset": ("words", offsets_of(0, 1, 2, 3, 4, -5)),
    "falling offsets": ("words", offsets_of(0, 3, 2, 8, 8, 8)),
    "a negative first offset": ("words", offsets_of(-1, 3, 3, 8, 8, 8)),
    "a list beyond its items": ("lists", offsets_of(0, 1, 4)),
    "falling offsets of lists": ("lists", offsets_of(0, 3, 2)),
    "no children": ("table", setting(n_children=0)),
    "a negative number of children": ("table", setting(n_children=-1, schema_n_children=-1)),
    "a wild number of children": ("table", setting(n_children=2**40, schema_n_children=2**40)),
    "a NULL child": ("table", lambda _, a: without_first(a.children)),
    "a NULL child schema": ("table", lambda s, _: without_first(s.children)),
    "truth values with children": (
        "lists",
        lambda s, a: setting(schema_format=b"c", schema_metadata=ctypes.addressof(BOOL8))(s, a),
    ),
    "no table of children": ("table", setting(children=None)),
    "no table of child schemas": ("table", setting(schema_children=None)),
    "a list without items": ("lists", setting(n_children=0, schema_n_children=0)),
    "a released child": ("table", lambda _, a: release(structs_in(a)[0])),
    "a released child schema": ("table", lambda s, _: release(structs_in(s)[0])),
    "a child without a format": ("table", in_child(schema_format=None)),
    "a short child": ("table", in_child(length=1)),
    "short rows": ("rows", in_child(length=3)),
    "no dictionary": ("codes", setting(dictionary=None)),
    "no schema of the dictionary": ("codes", setting(schema_dictionary=None)),
    "indices that are floats": ("codes", setting(schema_format=b"f")),
    "an index beyond the dictionary": (
        "codes",
        lambda _, a: setting(length=1)(None, Array.from_address(a.dictionary)),
    ),
    "an unknown format": ("words", setting(schema_format=b"+ud:0")),
    "a format that is not UTF-8": ("words", setting(schema_format=b"\xff")),
    "a released array": ("words", lambda _, a: release(a)),
}


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.parametrize("what", MALFORMED)
def test_malformed_array_is_refused_and_released(what):
    kind, change = MALFORMED[what]
    producer = Changed(COLUMNS[kind](), change)
    with pytest.raises(BufferError):
        memrt.from_arrow(producer, masked=True, copy=None)


def test_indices_with_metadata_stay_indices():
    change = setting(schema_metadata=ctypes.addressof(BOOL8))
    assert values_of(Changed(codes(), change)) == VALUES["codes"]


@pytest.mark.parametrize(
    ("metadata", "values"), [(BOOL8, [[True], [True, True]]), (OTHER, [[1], [2, 3]])]
)
def test_only_metadata_of_bool8_makes_child_bytes_truth_values(metadata, values):
    column = Column(memrt.array([1, 2, 3], np.int8), offsets=memrt.array([0, 1, 3], np.int32))
    found = values_of(Changed(column, in_child(schema_metadata=ctypes.addressof(metadata))))
    assert repr(found) == repr(values)


def test_array_without_a_name_has_an_empty_name():
    assert Column.chunks(Changed(words(), setting(schema_name=None)))[0].name == ""


def test_parts_are_taken_from_capsules_only():
    schema, array = words().__arrow_c_array__()
    for arguments in ((), (schema, array), (None, array, None), (schema, 3, None)):
        with pytest.raises(TypeError):
            _memrt.take_arrow_parts(*arguments)
        with pytest.raises(TypeError):
            _memrt.take_arrow(*arguments)
    with pytest.raises(ValueError, match="arrow_schema"):
        _memrt.take_arrow_parts(array, array, None)
    with pytest.raises(TypeError, match="policy"):
        _memrt.take_arrow_parts(schema, array, 3)
    assert _memrt.take_arrow_parts(schema, array, None)[1][4] == 5


def test_texts_that_are_not_utf8_are_refused():
    column = Column(np.array([b"\xff"], object), copy=None)
    producer = Changed(column, setting(schema_format=b"u"))
    with pytest.raises(BufferError, match="UTF-8"):
        memrt.from_arrow(producer, copy=None)


def test_deep_array_is_refused():
    column = Column(memrt.array([1]))
    for _ in range(70):
        column = Column({"x": column})
    with pytest.raises(BufferError, match="64 levels"):
        Column.chunks(column)


def test_capsules_of_many_parts_are_taken_once():
    producer = Changed(table())
    assert len(Column.chunks(producer)) == 1
    with pytest.raises(BufferError, match="array was released"):
        Column.chunks(producer)


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_concurrent_imports_take_an_array_once():
    for _ in range(20):
        producer, taken = Changed(table()), []

        def take(number, producer=producer, taken=taken):
            with contextlib.suppress(BufferError):
                taken.append(Column.chunks(producer))

        on_threads(take, 4)
        assert len(taken) == 1
        del take, producer
        taken.clear()


# --- Export. ---


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Column({"a": memrt.array([1]), "b": memrt.array([1, 2])}), ValueError, "same"),
        (lambda: Column({"a": 3}), TypeError, "numpy.ndarray"),
        (lambda: Column(np.array([1, "a"], object), copy=None), BufferError, "all be str"),
        (lambda: Column(np.array("a"), copy=None), BufferError, "scalar"),
        (lambda: Column(np.zeros((2, 2), [("a", "i4")]), copy=None), BufferError, "one dimension"),
        (lambda: Column(np.array([2**40], "M8[D]"), copy=None), BufferError, "32-bit"),
        (lambda: Column(memrt.array([[1, 2], [3, 4]]).T), BufferError, "contiguous"),
        (lambda: Column(memrt.array([1j]), copy=None), BufferError, "no format"),
        (lambda: Column(memrt.array([1.5]), dictionary=words()), BufferError, "integers"),
        (lambda: Column(memrt.array([True]), dictionary=words()), BufferError, "integers"),
        (lambda: Column(memrt.array([5]), dictionary=words()), BufferError, "below 5"),
        (lambda: Column(memrt.array([-1]), dictionary=words()), BufferError, "got -1"),
        (lambda: Column(memrt.array([1]), offsets=memrt.array([0.0])), BufferError, "int32"),
        (lambda: Column(memrt.array([1]), offsets=memrt.array([], "i4")), BufferError, "at least"),
        (lambda: Column(memrt.array([1]), offsets=memrt.array([0, 2])), BufferError, "at most 1"),
        (lambda: Column(memrt.array([1]), offsets=memrt.array([1, 0])), BufferError, "ascend"),
        (lambda: Column.stream([]), ValueError, "not be empty"),
        (lambda: Column.stream([3]), TypeError, "Column objects"),
        (lambda: Column.stream([words(), lists()]), ValueError, "same Arrow type"),
    ],
)  # fmt: skip
def test_wrong_column_is_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize("array", [
    np.zeros((0, 3)), np.zeros((3, 0)), np.array([], "U3"), np.array([], object),
    np.array([], "M8[D]"), np.zeros(0, [("a", "i4"), ("b", "U3")]), np.arange(10)[::3],
    np.arange(3, dtype=">i4"), np.ma.MaskedArray(np.arange(6).reshape(2, 3).T, 1),
    np.array([["a", "bc"]]), np.array(["a", "b"])[::-1], np.array([b"ab", b"c"]).view("V2"),
])  # fmt: skip
def test_copied_array_survives_export_and_import(array):
    back = memrt.from_arrow(Column(array, copy=None), masked=True, copy=None)
    assert (back.shape, back.tolist()) == (array.shape, array.tolist())


def test_string_dtype_with_missing_value():
    strings = getattr(np.dtypes, "StringDType", None)
    if strings is None:
        pytest.skip("NumPy before 2.0 has no StringDType")
    for missing in (None, np.nan):
        array = np.array(["a", missing, "c"], strings(na_object=missing))
        assert values_of(Column(array, copy=None)) == ["a", None, "c"]


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.parametrize("kind", COLUMNS)
def test_moved_array_is_released_on_a_thread_without_gil(kind):
    column = COLUMNS[kind]()
    schema, array = column.__arrow_c_array__()
    struct = struct_of(array)
    moved = Array.from_buffer_copy(struct)
    struct.release = None
    del schema, array, struct, column
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(moved.release)  # ctypes releases the GIL
    thread = threading.Thread(target=free, args=(ctypes.addressof(moved),))
    thread.start()
    thread.join()
    assert not moved.release


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_moved_children_are_released_apart():
    schema, array = table().__arrow_c_array__()
    moved = []
    for child in structs_in(struct_of(array)):
        moved.append(Array.from_buffer_copy(child))
        child.release = None
    del array, schema
    for child in moved:
        assert child.length == 2
        release(child)


# --- Streams. ---


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("count", [1, 3])
def test_stream_gives_all_chunks(kind, count):
    stream = Column.stream([COLUMNS[kind]() for _ in range(count)])
    assert [values_of(chunk) for chunk in Column.chunks(stream)] == [VALUES[kind]] * count
    assert values_of(stream) == VALUES[kind] * count


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_stream_capsule_releases_arrays_that_nobody_took():
    arrays = [memrt.array([1]), memrt.array([2])]
    stream = Column.stream([Column(array) for array in arrays])
    capsule = stream.__arrow_c_stream__()
    exported = 2 if GIL_IS_OFF else 1  # exports_of() counts those of all buffers without the GIL
    assert [exports_of(memrt.meminfo(array), "arrow") for array in arrays] == [exported] * 2
    del capsule
    assert [exports_of(memrt.meminfo(array), "arrow") for array in arrays] == [0, 0]


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_stream_calls_go_on_after_the_end():
    capsule = Column.stream([table(), table()]).__arrow_c_stream__()
    stream = struct_of(capsule)
    get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    get_schema, get_next = get(stream.get_schema), get(stream.get_next)
    for _ in range(2):
        schema = Schema()
        assert get_schema(ctypes.addressof(stream), ctypes.addressof(schema)) == 0
        assert [child.name for child in structs_in(schema)] == [b"x", b"y", b"z"]
        release(schema)
    taken = [Array() for _ in range(4)]
    for array in taken:
        assert get_next(ctypes.addressof(stream), ctypes.addressof(array)) == 0
    assert [bool(array.release) for array in taken] == [True, True, False, False]
    del capsule, stream  # the arrays outlive the stream
    for array in taken[:2]:
        assert structs_in(array)[0].length == 2
        release(array)


@pytest.mark.thread_unsafe(reason="handles a signal")
def test_stream_may_wait_for_a_thread_that_needs_the_gil():
    stream = StreamProducer()
    stream.struct.get_next = ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p).value
    waiting, over = threading.get_ident(), threading.Event()

    def wake():
        while not over.wait(0.01):
            signal.pthread_kill(waiting, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda *_: over.set())
    thread = threading.Thread(target=wake)
    thread.start()
    try:
        with pytest.raises(BufferError, match="error -1"):
            Column.chunks(stream)
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert stream.released == 1


@pytest.mark.parametrize("arguments", [(), (3,), ((3,),), (((3,),),), ([],), ((),)])
def test_invalid_parts_are_refused(arguments):
    for function in (_memrt.export_arrow_stream, _memrt.export_arrow_parts):
        with pytest.raises(TypeError):
            function(*arguments)


def test_invalid_buffers_are_refused():
    good = ("l", "", False, 0, 1, 0, 0, (None, None), (), None)
    for buffers in ((3,), ((),), (("mi", 0),), ((memrt.alloc(8), "x"),)):
        parts = (*good[:7], buffers, *good[8:])
        with pytest.raises(TypeError):
            _memrt.export_arrow_parts(parts, False)
        with pytest.raises(TypeError):
            _memrt.export_arrow_stream((good, parts))
    nested = ("+s", "", False, 0, 1, 0, 0, (None,), (good, 3), None)
    encoded = (*good[:9], nested)
    for parts in (nested, encoded):
        with pytest.raises(TypeError):
            _memrt.export_arrow_parts(parts, True)


def test_device_array_of_many_parts_is_on_the_cpu():
    column = table()
    _schema, array = column.__arrow_c_device_array__()
    struct = struct_of(array)
    assert (struct.device_type, struct.device_id, struct.sync_event) == (1, -1, None)
    assert [child.length for child in structs_in(struct.array)] == [2, 2, 2]


def test_schema_of_column_and_stream():
    for exporter in (table(), Column.stream([table()])):
        capsule = exporter.__arrow_c_schema__()
        schema = struct_of(capsule)
        assert (schema.format, [child.format for child in structs_in(schema)]) == (
            b"+s",
            [b"g", b"c", b"+w:2"],
        )
        [flags, _, _] = [child.flags for child in structs_in(schema)]
        assert flags == 2


HOLDERS = {
    "column": lambda column: Column.chunks(column),
    "array": lambda column: memrt.from_arrow(column),
    "capsules": lambda column: column.__arrow_c_array__(),
    "stream": lambda column: column.__arrow_c_stream__(),
}


@pytest.mark.thread_unsafe(reason="counts blocks of the whole process")
def test_buffer_is_freed_with_last_holder():
    for order in itertools.permutations(range(len(HOLDERS))):
        column = rows()
        holders = [[hold(column)] for hold in HOLDERS.values()]
        del column
        gc.collect()
        before = memrt.stats()
        for i in order[:-1]:
            holders[i].clear()
        assert memrt.stats().live == before.live
        holders[order[-1]].clear()
        assert before.live - memrt.stats().live == 32


# --- Arrays of types that memrt imports only. ---


class Made:
    """Export an array from its parts: each buffer is an array or None."""

    def __init__(self, format, length, *buffers, children=(), nulls=0, offset=0, values=None):
        held = tuple([None if each is None else (memrt.meminfo(memrt.array(each)), 0)
                      for each in buffers])  # fmt: skip
        self.parts = (
            format, "x", False, 0, length, nulls, offset, held,
            tuple([child.parts for child in children]), None if values is None else values.parts,
        )  # fmt: skip

    def __arrow_c_array__(self, requested_schema=None):
        return _memrt.export_arrow_parts(self.parts, False)


def bits(*numbers: int) -> np.ndarray:
    return np.packbits(np.array(numbers, bool), bitorder="little")


LONG = b"a text of more than twelve bytes"
VIEWS = np.array([(3, b"abc", 0, 0), (len(LONG), LONG[:4], 0, 2)],
                 [("n", "i4"), ("start", "S4"), ("index", "i4"), ("offset", "i4")])  # fmt: skip


def views(format="vu", change=None, data=b"--" + LONG, sizes=(34,), **options) -> Made:
    table = VIEWS.copy()
    for field, value in (change or {}).items():
        table[field][1] = value
    buffers = [np.frombuffer(table.tobytes(), "u1")] + ([np.frombuffer(data, "u1")] if data else [])
    sizes = np.array(sizes, "i8") if sizes else None
    return Made(format, 2, options.pop("validity", None), *buffers, sizes, **options)


def numbers(*values: int, dtype="i4") -> Made:
    return Made("i", len(values), None, np.array(values, dtype))


def words_of(*texts: bytes) -> Made:
    offsets = np.cumsum([0, *map(len, texts)]).astype("i4")
    return Made("u", len(texts), None, offsets, np.frombuffer(b"".join(texts) or b"-", "u1"))


D = decimal.Decimal


def imported() -> dict[str, tuple[Made, list]]:
    """Return arrays with their values. A test makes the arrays, so that no block outlives it."""
    return {
        "bits": (Made("b", 5, None, bits(1, 1, 0, 0, 1, 1, 0), offset=2),
                 [False, False, True, True, False]),
        "bits with nulls": (Made("b", 2, bits(1, 1, 0), bits(0, 1, 1), offset=1, nulls=-1),
                            [True, None]),
        "times": (Made("tts", 2, None, np.array([5, -1], "i4")), [5, -1]),
        "months": (Made("tiM", 1, None, np.array([7], "i4")), [7]),
        "decimal32": (Made("d:5,2,32", 1, None, np.array([-150], "i4")), [D("-1.50")]),
        "decimal64": (Made("d:5,0,64", 1, None, np.array([7], "i8")), [D(7)]),
        "decimal128": (Made("d:5,-2", 1, None, np.array([-1, -1], "i8")), [D("-1E+2")]),
        "decimal256": (Made("d:76,1,256", 1, None, np.array([1, 0, 1, 0])),
                       [D("34028236692093846346337460743176821145.7")]),
        "binary": (Made("z", 2, None, np.array([0, 1, 3], "i4"), np.array([1, 2, 3], "u1")),
                   [b"\1", b"\2\3"]),
        "binary with nulls": (Made("Z", 2, bits(0, 1), np.array([0, 1, 2]), np.array([1, 2], "u1"),
                                   nulls=1), [None, b"\2"]),
        "views": (views(), ["abc", LONG.decode()]),
        "views of bytes": (views("vz"), [b"abc", LONG]),
        "views with a null outside": (views(change={"index": 9}, validity=bits(1, 0), nulls=1),
                                      ["abc", None]),
        "views of inline texts": (views(change={"n": 1, "start": b"x"}, data=None, sizes=None),
                                  ["abc", "x"]),
        "views of an empty buffer": (views(change={"n": 0}, sizes=(0,)), ["abc", ""]),
        "list views": (Made("+vl", 3, bits(1, 0, 1), np.array([1, 99, 0], "i4"),
                            np.array([2, 99, 1], "i4"), children=[numbers(1, 2, 3)], nulls=1),
                       [[2, 3], None, [1]]),
        "large lists": (Made("+L", 1, None, np.array([1, 3]), children=[numbers(1, 2, 3)]),
                        [[2, 3]]),
        "lists of nulls": (Made("+l", 1, None, np.array([0, 2], "i4"), children=[
            Made("i", 2, bits(0, 1), np.array([1, 2], "i4"), nulls=1)]), [[None, 2]]),
        "times without a bitmap": (Made("tts", 1, None, np.array([5], "i4"), nulls=-1), [5]),
        "rows with nulls": (Made("+w:2", 2, bits(1, 0), children=[numbers(1, 2, 3, 4)], nulls=1),
                            [[1, 2], [None, None]]),
        "rows and items with nulls": (
            Made("+w:2", 2, bits(1, 0), nulls=1, children=[
                Made("i", 4, bits(0, 1, 1, 1), np.array([1, 2, 3, 4], "i4"), nulls=1)]),
            [[None, 2], [None, None]]),
        "rows without items": (Made("+w:0", 2, None, children=[numbers()]), [[], []]),
        "intervals": (Made("tiD", 2, bits(0, 1), np.array([1, 2, 3, 4], "i4"), nulls=1),
                      [(None, None), (3, 4)]),
        "structs with nulls": (Made("+s", 2, bits(1, 0), nulls=1, children=[numbers(5, 6)]),
                               [(5,), (None,)]),
        "a slice of structs": (Made("+s", 1, None, offset=1, children=[numbers(5, 6)]), [(6,)]),
        "structs of texts": (Made("+s", 1, None, children=[words_of(b"a")]), [("a",)]),
        "a dictionary with nulls": (
            Made("c", 3, bits(1, 0, 1), np.array([1, 77, 0], "i1"), nulls=1,
                 values=Made("i", 2, bits(1, 0), np.array([4, 5], "i4"), nulls=1)),
            [None, None, 4]),
        "a dictionary with a null value": (
            Made("c", 2, None, np.array([1, 0], "i1"),
                 values=Made("i", 2, bits(1, 0), np.array([4, 5], "i4"), nulls=1)),
            [None, 4]),
        "an empty dictionary": (
            Made("c", 1, bits(0), np.array([7], "i1"), nulls=1, values=numbers()), [None]),
        "no elements": (Made("+l", 0, None, None, children=[numbers()]), []),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(imported()))
def test_type_is_imported_with_a_copy(name):
    made, expected = imported()[name]
    array = memrt.from_arrow(made, masked=True, copy=None)
    if array.dtype.kind == "m":
        array = array.view("i8")
    values = [item.tolist() if isinstance(item, np.ndarray) else item for item in array.tolist()]
    assert values == expected
    [column] = Column.chunks(made)
    assert {"validity", "first_bit"} <= set(column.parts)
    [again] = Column.chunks(column)
    assert again.format == made.parts[0]


def test_nulls_of_chunks_are_joined():
    class Chunks:
        def __init__(self, *made):
            self.parts = tuple([each.parts for each in made])

        def __arrow_c_stream__(self, requested_schema=None):
            return _memrt.export_arrow_stream(self.parts)

    plain, nulls = numbers(1, 2), Made("i", 1, bits(0), np.array([3], "i4"), nulls=1)
    array = memrt.from_arrow(Chunks(plain, nulls), masked=True, copy=None)
    assert array.tolist() == [1, 2, None]
    structs = Chunks(*[Made("+s", each.parts[4], None, children=[each]) for each in (plain, nulls)])
    array = memrt.from_arrow(structs, masked=True, copy=None)
    assert array.mask.tolist() == [(False,), (False,), (True,)]
    with pytest.raises(BufferError, match="1 of 3 elements are null"):
        memrt.from_arrow(structs, copy=None)
    intervals = [Made("tiD", 1, bits(valid), np.array([1, 2], "i4"), nulls=-1) for valid in (0, 1)]
    array = memrt.from_arrow(Chunks(*intervals), masked=True, copy=None)
    assert array.tolist() == [(None, None), (1, 2)]


def refused() -> dict[str, tuple[Made, str]]:
    """Return arrays with the messages of their refusal."""
    return {
        "unions": (Made("+ud:0", 0), "unions"),
        "decimals of 16 bits": (Made("d:5,2,16", 1, None, np.array([1], "i2")), "known format"),
        "decimals without digits": (Made("d:0,2", 1, None, np.array([1, 1])), "known format"),
        "nulls without a type": (Made("n", 1), "NumPy has no dtype"),
        "lists of nulls": (Made("+l", 1, None, np.array([0, 1], "i4"), children=[Made("n", 1)]),
                           "NumPy has no dtype"),
        "views with a negative length": (views(change={"n": -1}), "element 1 outside"),
        "views without their buffer": (views(change={"index": 1}), "element 1 outside"),
        "views beyond their buffer": (views(change={"offset": 3}), "element 1 outside"),
        "views before their buffer": (views(change={"offset": -1}), "element 1 outside"),
        "views with negative sizes": (views(sizes=(-1,)), "must not be negative"),
        "list views beyond their items": (
            Made("+vl", 1, None, np.array([1], "i4"), np.array([1], "i4"), children=[numbers(1)]),
            "at most 1 items"),
        "two fields of one name": (Made("+s", 1, None, children=[numbers(1), numbers(2)]),
                                   "distinct names"),
        "no fields": (Made("+s", 1, None), "distinct names"),
        "an index beyond the dictionary": (
            Made("c", 1, None, np.array([2], "i1"), values=numbers(1)), "got 2 to 2"),
        "a negative index": (Made("c", 1, None, np.array([-1], "i1"), values=numbers(1)), "got -1"),
        "an index into nothing": (Made("c", 1, None, np.array([0], "i1"), values=numbers()),
                                  "length of the dictionary, 0"),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(refused()))
def test_type_or_value_without_numpy_meaning_is_refused(name):
    made, message = refused()[name]
    with pytest.raises(BufferError, match=message):
        memrt.from_arrow(made, masked=True, copy=None)
    if name == "nulls without a type":
        with pytest.raises(BufferError, match=message):
            _ = Column.chunks(made)[0].array
