"""Arrow types beyond plain numbers, exchanged with pyarrow, nanoarrow, Polars and DuckDB.

The producers are implementations of Arrow in C++, C and Rust.
"""

from __future__ import annotations

import datetime
import decimal
import gc
from decimal import Decimal
from typing import Any

import duckdb
import memrt
import nanoarrow
import numpy as np
import polars
import pyarrow
import pytest
from exported import exports_of
from memrt.types import Column

DAY = datetime.date(2026, 11, 27)
TEXT = ["a", None, "héé", "", "a text of more than twelve bytes"]

# Name: the array of pyarrow, the dtype of its NumPy array, and whether the array is a copy.
IMPORTED: dict[str, tuple[Any, str, bool]] = {
    "bool": (pyarrow.array([True, None, False]), "?", True),
    "date32": (pyarrow.array([DAY, None]), "M8[D]", True),
    "date64": (pyarrow.array([DAY, None], pyarrow.date64()), "M8[ms]", False),
    "time32": (pyarrow.array([datetime.time(1, 2, 3)], pyarrow.time32("s")), "m8[s]", True),
    "time64": (pyarrow.array([datetime.time(1, 2, 3)], pyarrow.time64("us")), "m8[us]", False),
    "timestamp": (pyarrow.array([1, None], pyarrow.timestamp("ns", "UTC")), "M8[ns]", False),
    "duration": (pyarrow.array([1, None], pyarrow.duration("ms")), "m8[ms]", False),
    "decimal32": (pyarrow.array([Decimal("-1.5")], pyarrow.decimal32(5, 1)), "O", True),
    "decimal64": (pyarrow.array([Decimal("-1.5")], pyarrow.decimal64(12, 1)), "O", True),
    "decimal128": (pyarrow.array([Decimal("-1.50"), None]), "O", True),
    "decimal256": (pyarrow.array([-(10**70), 10**70], pyarrow.decimal256(76, 2)), "O", True),
    "binary": (pyarrow.array([b"a", None, b"bc"]), "O", True),
    "binary_view": (pyarrow.array([b"a", b"b" * 20], pyarrow.binary_view()), "O", True),
    "fixed_size_binary": (pyarrow.array([b"abc", b"def"], pyarrow.binary(3)), "V3", False),
    "string": (pyarrow.array(TEXT), "T", True),
    "large_string": (pyarrow.array(TEXT, pyarrow.large_string()), "T", True),
    "string_view": (pyarrow.array(TEXT, pyarrow.string_view()), "T", True),
    "list": (pyarrow.array([[1, 2], None, [], [3]]), "O", True),
    "large_list": (pyarrow.array([[1], [2, 3]], pyarrow.large_list(pyarrow.int8())), "O", True),
    "list_view": (pyarrow.array([[1], None, [2]], pyarrow.list_view(pyarrow.int8())), "O", True),
    "map": (pyarrow.array([[("k", 1)]], pyarrow.map_(pyarrow.string(), pyarrow.int8())), "O", True),
    "fixed_size_list": (
        pyarrow.array([[1, None], [3, 4]], pyarrow.list_(pyarrow.int32(), 2)),
        "i4",
        False,
    ),
    "dictionary": (pyarrow.array(["a", "b", None, "a"]).dictionary_encode(), "T", True),
}  # fmt: skip


def read(theirs: Any) -> np.ndarray:
    return memrt.from_arrow(theirs, masked=True, copy=None)


def plain(values: Any) -> Any:
    """Return values as pyarrow's `to_pylist` does."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, list):
        return [plain(value) for value in values]
    return values


def numbers(theirs: Any) -> list:
    """Return the integers of dates, times and timestamps."""
    bits = theirs.type.bit_width
    return theirs.view(pyarrow.int32() if bits == 32 else pyarrow.int64()).to_pylist()


def expected(theirs: Any, dtype: str) -> list:
    if dtype[0] in "Mm":
        return numbers(theirs)
    if pyarrow.types.is_map(theirs.type):
        return [[tuple(pair) for pair in pairs] for pairs in theirs.to_pylist()]
    return theirs.to_pylist()


@pytest.mark.parametrize("name", IMPORTED)
@pytest.mark.parametrize("start", [0, 1])
def test_pyarrow_type_gives_numpy_dtype(name, start):
    theirs, dtype, is_copy = IMPORTED[name]
    theirs = theirs[start:]
    array = read(theirs)
    assert array.dtype.kind == "T" if dtype == "T" else array.dtype == dtype
    data = array.view("i8") if dtype[0] in "Mm" else array
    assert plain(data) == expected(theirs, dtype)
    if is_copy:
        with pytest.raises(BufferError, match="pass copy=None"):
            memrt.from_arrow(theirs, masked=True)
    else:
        assert plain(memrt.from_arrow(theirs, masked=True)) == plain(array)
    if len(array) and dtype not in ("T", "O"):
        assert memrt.meminfo(array.data).kind == ("inline" if is_copy else "adopted")


@pytest.mark.parametrize(
    "name", [name for name in IMPORTED if IMPORTED[name][0].null_count or name == "fixed_size_list"]
)
def test_nulls_need_a_mask(name):
    theirs = IMPORTED[name][0]
    with pytest.raises(BufferError, match=r"are null: pass masked=True"):
        memrt.from_arrow(theirs, copy=None)


@pytest.mark.parametrize("name", IMPORTED)
def test_column_of_imported_array_is_exported_unchanged(name):
    theirs = IMPORTED[name][0][1:]
    [column] = Column.chunks(theirs)
    array = pyarrow.array(column)
    array.validate(full=True)
    assert array.type == theirs.type
    assert array.equals(theirs)
    chunks = pyarrow.chunked_array(column)
    chunks.validate(full=True)
    assert (chunks.num_chunks, chunks.chunk(0).equals(theirs)) == (1, True)
    addresses = [each.address for each in theirs.buffers() if each is not None and each.size]
    taken = [each.address for each in array.buffers() if each is not None and each.size]
    assert set(taken) <= set(addresses) or not len(theirs)
    if "view" not in name:  # nanoarrow 0.9 crashes on views of pyarrow, too
        assert nanoarrow.Array(column).to_pylist() == nanoarrow.Array(theirs).to_pylist()


@pytest.mark.parametrize("name", IMPORTED)
def test_parts_keep_pyarrow_buffers_alive(name):
    before = memrt.stats().adopted
    pool = pyarrow.total_allocated_bytes()
    theirs = pyarrow.concat_arrays([IMPORTED[name][0]] * 2)
    expected = theirs.to_pylist()
    [column] = Column.chunks(theirs)
    del theirs
    parts, again = column.parts, pyarrow.array(column)
    assert memrt.stats().adopted > before
    del column
    assert again.to_pylist() == expected
    del again, parts
    gc.collect()
    assert memrt.stats().adopted == before
    assert pyarrow.total_allocated_bytes() == pool


def test_parts_have_the_arrays_of_arrow():
    [column] = Column.chunks(pyarrow.array(TEXT))
    parts = column.parts
    assert parts["offsets"].tolist() == [0, 1, 1, 6, 6, 38]
    assert parts["data"].tobytes().decode() == "".join(text or "" for text in TEXT)
    assert np.unpackbits(parts["validity"], bitorder="little")[:5].tolist() == [1, 0, 1, 1, 1]
    assert not parts["data"].flags.writeable
    [column] = Column.chunks(pyarrow.array([[1, 2], [3]]))
    assert column.parts["offsets"].tolist() == [0, 2, 3]
    assert column.parts["items"].array.tolist() == [1, 2, 3]
    [column] = Column.chunks(pyarrow.array(["x", "y", "x"]).dictionary_encode())
    assert column.parts["values"].tolist() == [0, 1, 0]
    assert column.parts["dictionary"].to_numpy(copy=None).tolist() == ["x", "y"]
    [column] = Column.chunks(pyarrow.array([Decimal(5)], pyarrow.decimal128(10, 0)))
    assert column.parts["values"].tolist() == [[5, 0]]
    [column] = Column.chunks(pyarrow.array([True, False, True]))
    assert column.parts["bits"].tolist() == [0b101]
    [column] = Column.chunks(pyarrow.array([[1, 2], [3, 4]], pyarrow.list_(pyarrow.int8(), 2))[1:])
    assert column.parts["items"].array.tolist() == [3, 4]
    [column] = Column.chunks(pyarrow.array(TEXT, pyarrow.string_view()))
    assert column.parts["views"]["length"].tolist() == [1, 0, 5, 0, 32]
    assert column.parts["data"][0].tobytes().decode() == TEXT[-1]


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (pyarrow.array([None]), "NumPy has no dtype for elements of Arrow's format 'n'"),
        (pyarrow.RunEndEncodedArray.from_arrays([1, 3], [5, 6]), "without unions and run ends"),
        (
            pyarrow.UnionArray.from_sparse(pyarrow.array([0], "int8"), [pyarrow.array([1])]),
            "without unions and run ends",
        ),
    ],
)
@pytest.mark.parametrize("copy", [False, None, True])
def test_type_without_dtype_is_refused(theirs, message, copy):
    with pytest.raises(BufferError, match=message):
        memrt.from_arrow(theirs, masked=True, copy=copy)


def test_interval_gives_structured_dtype_without_copy():
    theirs = pyarrow.array([(1, 2, 3), None], pyarrow.month_day_nano_interval())
    array = memrt.from_arrow(theirs, masked=True)
    assert array.dtype.names == ("months", "days", "nanoseconds")
    assert array[:1].tolist() == [(1, 2, 3)]
    assert array.mask.tolist() == [(False,) * 3, (True,) * 3]
    assert array.data.ctypes.data == theirs.buffers()[1].address


# --- Tables. ---

ROWS = [{"x": 1, "word": "one", "when": DAY}, {"x": 2, "word": None, "when": DAY}]


@pytest.mark.parametrize(
    "theirs",
    [
        pyarrow.array(ROWS),
        pyarrow.RecordBatch.from_pylist(ROWS),
        pyarrow.Table.from_pylist(ROWS),
        polars.DataFrame(ROWS),
    ],
    ids=lambda each: type(each).__name__,
)
def test_table_gives_structured_array(theirs):
    array = read(theirs)
    assert array.dtype.names == ("x", "word", "when")
    assert array["x"].tolist() == [1, 2]
    assert array["word"].tolist() == ["one", None]
    assert array["when"].tolist() == [DAY, DAY]
    [column] = Column.chunks(theirs)
    x, word, when = column.parts["fields"]
    assert (x.name, word.name, when.name) == ("x", "word", "when")
    assert x.array.tolist() == [1, 2]
    assert memrt.meminfo(x.array).kind == "adopted"


def test_structs_with_null_rows_are_masked():
    theirs = pyarrow.array([{"a": 1}, None, {"a": None}])
    assert read(theirs).mask.tolist() == [(False,), (True,), (True,)]
    assert read(theirs[1:]).mask.tolist() == [(True,), (True,)]
    nested = pyarrow.array([{"a": {"b": 1}}, {"a": None}])
    assert read(nested).data.tolist()[0] == ((1,),)
    assert read(nested).mask.tolist() == [((False,),), ((True,),)]


@pytest.mark.parametrize("names", [["a", "a"], ["a", ""]])
def test_fields_without_distinct_names_are_refused(names):
    theirs = pyarrow.StructArray.from_arrays([pyarrow.array([1]), pyarrow.array([2])], names)
    with pytest.raises(BufferError, match="distinct names"):
        read(theirs)
    assert [field.name for field in Column.chunks(theirs)[0].parts["fields"]] == names


def test_dict_of_arrays_is_a_table_without_copy():
    numbers, words = memrt.array([1.5, 2.5]), np.array(["a", "b"])
    table = Column({"n": numbers, "w": Column(words, copy=None)})
    batch = pyarrow.record_batch(table)
    batch.validate(full=True)
    assert batch.to_pydict() == {"n": [1.5, 2.5], "w": ["a", "b"]}
    assert batch.column(0).buffers()[1].address == numbers.ctypes.data
    assert pyarrow.table(table).equals(pyarrow.table(batch))
    assert polars.DataFrame(table).to_dict(as_series=False) == batch.to_pydict()
    assert exports_of(memrt.meminfo(numbers), "arrow") >= 1
    del batch, table
    gc.collect()
    assert exports_of(memrt.meminfo(numbers), "arrow") == 0


# --- Export. ---

STRINGS = np.dtypes.StringDType(na_object=None)
EXPORTED = {
    "dates": (np.array([DAY, "NaT"], "M8[D]"), pyarrow.array([DAY, None])),
    "str": (np.array(["a", "bé", ""]), pyarrow.array(["a", "bé", ""])),
    "strings": (np.array(["a", None], STRINGS), pyarrow.array(["a", None])),
    "objects": (np.array(["a", None], object), pyarrow.array(["a", None])),
    "masked": (np.ma.MaskedArray(["a", "b"], [1, 0]), pyarrow.array([None, "b"])),
    "bytes": (np.array([b"a", None], object), pyarrow.array([b"a", None])),
    "swapped": (np.array([1, 2], ">i4"), pyarrow.array([1, 2], pyarrow.int32())),
    "strided": (np.arange(6)[::3], pyarrow.array([0, 3])),
    "structured": (
        np.array([(1, "a"), (2, "b")], [("n", "i8"), ("w", "U1")]),
        pyarrow.array([{"n": 1, "w": "a"}, {"n": 2, "w": "b"}]),
    ),
    "no elements": (np.array([], "U1"), pyarrow.array([], pyarrow.string())),
    "nulls only": (np.array([None], object), pyarrow.array([None], pyarrow.string())),
    "rows": (
        np.array([["a", "b"], ["c", "d"]]),
        pyarrow.array([["a", "b"], ["c", "d"]], pyarrow.list_(pyarrow.string(), 2)),
    ),
}


@pytest.mark.parametrize("name", EXPORTED)
def test_array_that_needs_a_copy_is_exported(name):
    array, wanted = EXPORTED[name]
    with pytest.raises((BufferError, ValueError)):
        Column(array)
    column = Column(array, copy=None)
    taken = pyarrow.array(column)
    taken.validate(full=True)
    assert taken.to_pylist() == wanted.to_pylist()
    assert polars.Series(column).to_list() == polars.Series(wanted).to_list()


def test_axes_become_fixed_size_lists_without_copy():
    array = memrt.array(np.arange(24).reshape(2, 3, 4))
    taken = pyarrow.array(Column(array))
    taken.validate(full=True)
    assert taken.to_pylist() == array.tolist()
    assert taken.flatten().flatten().buffers()[1].address == array.ctypes.data
    back = memrt.from_arrow(taken)
    assert back.tolist() == array.tolist()
    assert back.ctypes.data == array.ctypes.data
    masked = np.ma.MaskedArray(array, array % 5 == 0, copy=False)
    assert pyarrow.array(Column(masked)).to_pylist() == masked.tolist()


def test_indices_and_offsets_are_exported_without_copy():
    words = Column(np.array(["a", "b"]), copy=None)
    codes = memrt.array([1, 0, 1], np.int8)
    taken = pyarrow.array(Column(codes, dictionary=words))
    taken.validate(full=True)
    assert taken.to_pylist() == ["b", "a", "b"]
    assert taken.indices.buffers()[1].address == codes.ctypes.data
    items, offsets = memrt.array([1, 2, 3]), memrt.array([0, 1, 1, 3], np.int32)
    lists = pyarrow.array(Column(items, offsets=offsets))
    lists.validate(full=True)
    assert lists.to_pylist() == [[1], [], [2, 3]]
    assert lists.values.buffers()[1].address == items.ctypes.data


# --- Chunks and streams. ---


def test_chunks_are_imported_apart_or_combined():
    theirs = pyarrow.chunked_array([[1, 2], [], [None, 4]])
    columns = Column.chunks(theirs)
    assert [column.array.tolist() for column in columns] == [[1, 2], [], [None, 4]]
    with pytest.raises(BufferError, match="got 3 chunks"):
        memrt.from_arrow(theirs, masked=True)
    array = memrt.from_arrow(theirs, masked=True, copy=None)
    assert array.tolist() == [1, 2, None, 4]
    assert memrt.meminfo(array.data).kind == "inline"
    assert Column.chunks(pyarrow.chunked_array([], pyarrow.int8())) == []


def test_chunks_of_polars_are_combined():
    theirs = polars.concat([polars.Series(["a", None]), polars.Series(["b"])], rechunk=False)
    assert theirs.n_chunks() == 2
    assert read(theirs).tolist() == ["a", None, "b"]
    frame = polars.DataFrame({"x": [1]}).vstack(polars.DataFrame({"x": [2]}))
    assert read(frame)["x"].tolist() == [1, 2]


def test_copy_combines_chunks_in_policy():
    theirs = pyarrow.chunked_array([[1.0], [2.0]])
    policy = memrt.Policy(name="combined")
    array = memrt.from_arrow(theirs, copy=True, policy=policy)
    assert (memrt.meminfo(array).policy, array.flags.writeable) == ("combined", True)
    single = memrt.from_arrow(pyarrow.array([1.0]), copy=True)
    assert (memrt.meminfo(single).kind, single.flags.writeable) == ("inline", True)


def test_stream_of_columns_keeps_chunks():
    arrays = [memrt.array([1, 2]), memrt.array([3])]
    stream = Column.stream([Column(array) for array in arrays])
    taken = pyarrow.chunked_array(stream)
    taken.validate(full=True)
    assert taken.to_pylist() == [1, 2, 3]
    assert [chunk.buffers()[1].address for chunk in taken.chunks] == [
        array.ctypes.data for array in arrays
    ]
    assert polars.Series(stream).to_list() == [1, 2, 3]
    assert [array.to_pylist() for array in nanoarrow.ArrayStream(stream)] == [[1, 2], [3]]
    assert exports_of(memrt.meminfo(arrays[0]), "arrow") == 1
    del taken
    gc.collect()
    assert exports_of(memrt.meminfo(arrays[0]), "arrow") == 0


def test_reader_that_stops_early_releases_the_other_chunks():
    arrays = [memrt.array([i]) for i in range(5)]
    tables = [Column({"x": array}) for array in arrays]
    reader = pyarrow.RecordBatchReader.from_stream(Column.stream(tables))
    first = reader.read_next_batch()
    reader.close()
    del reader
    gc.collect()
    counts = [exports_of(memrt.meminfo(array), "arrow") for array in arrays]
    assert (counts, first.to_pydict()) == ([1, 0, 0, 0, 0], {"x": [0]})


def test_failing_reader_gives_all_chunks_back():
    def batches():
        yield pyarrow.record_batch({"x": pyarrow.array(np.arange(1000))})
        raise RuntimeError("the disk is gone")

    before, pool = memrt.stats().adopted, pyarrow.total_allocated_bytes()
    schema = pyarrow.schema([("x", pyarrow.int64())])
    with pytest.raises(BufferError, match="the disk is gone"):
        Column.chunks(pyarrow.RecordBatchReader.from_batches(schema, batches()))
    gc.collect()
    assert (memrt.stats().adopted, pyarrow.total_allocated_bytes()) == (before, pool)


def test_duckdb_queries_streams_and_gives_tables():
    table = Column({"x": memrt.array([1, 2, 3]), "w": Column(np.array(["a", "b", "c"]), copy=None)})
    stream = Column.stream([table, table])
    connection = duckdb.connect()
    connection.register("stream", stream)
    assert connection.sql("SELECT sum(x), max(w), count(*) FROM stream").fetchall() == [
        (12, "c", 6)
    ]
    theirs = connection.sql(
        "SELECT range AS n, 'text ' || range AS t, range % 2 = 0 AS b, [range] AS l "
        "FROM range(5000)"
    )
    array = memrt.from_arrow(theirs, copy=None)
    assert [value if i < 3 else value.tolist() for i, value in enumerate(array[4999])] == [
        4999, "text 4999", False, [4999],
    ]  # fmt: skip
    connection.close()


def test_decimals_are_exact():
    values = [Decimal(10) ** 70 / 7, Decimal("-0.01"), Decimal(-(2**200))]
    with decimal.localcontext(prec=76):
        values = [value.quantize(Decimal("0.01")) for value in values]
    theirs = pyarrow.array(values, pyarrow.decimal256(76, 2))
    assert memrt.from_arrow(theirs, copy=None).tolist() == values
