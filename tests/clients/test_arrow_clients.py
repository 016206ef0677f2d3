"""Arrow between memrt and other libraries: no copy, the right lifetime.

The libraries are three implementations: Arrow's own in C++, nanoarrow in C, Polars in Rust.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import memrt
import nanoarrow
import numpy as np
import polars
import pyarrow
import pytest
from elsewhere import elsewhere
from exported import exports_of
from memrt import _memrt

NUMBERS = list(range(24))


@dataclass(frozen=True)
class Client:
    """A library: how to import arrays, read their address and values, and export arrays."""

    name: str
    take: Callable[[Any], Any]
    address: Callable[[Any], int]
    values: Callable[[Any], list]
    as_numpy: Callable[[Any], np.ndarray]
    gives: Callable[[Any], Any] | None  # from values; None if the library exports streams only

    def __str__(self) -> str:
        return self.name


def address_in_nanoarrow(array: Any) -> int:
    return int(nanoarrow.c_array(array).view().buffer(1).__array_interface__["data"][0])


CLIENTS = [
    Client(
        "pyarrow",
        pyarrow.array,
        lambda a: a.buffers()[1].address + a.offset * 8,
        lambda a: a.to_pylist(),
        lambda a: a.to_numpy(),
        lambda values: pyarrow.array(values, pyarrow.float64()),
    ),
    Client(
        "nanoarrow",
        nanoarrow.c_array,
        lambda a: np.asarray(a.view().buffer(1)).ctypes.data,
        lambda a: nanoarrow.Array(a).to_pylist(),
        lambda a: pyarrow.array(a).to_numpy(),
        lambda values: nanoarrow.c_array(values, nanoarrow.float64()),
    ),
    Client(
        "polars",
        polars.Series,
        lambda a: a.drop_nulls().to_numpy().ctypes.data,
        lambda a: a.to_list(),
        lambda a: a.to_numpy(),
        None,
    ),
]
takers = pytest.mark.parametrize("client", CLIENTS, ids=str)
givers = pytest.mark.parametrize("client", [c for c in CLIENTS if c.gives], ids=str)


def column(name="") -> memrt.types.Column:
    array = memrt.empty(24)
    array[...] = NUMBERS
    return memrt.types.Column(array, name)


def meminfo(exporter: memrt.types.Column) -> memrt.MemInfo:
    return memrt.meminfo(exporter.array)


@takers
def test_client_shares_column_and_releases_export(client):
    exporter = column()
    mi = meminfo(exporter)
    before = mi.refcount
    taken = client.take(exporter)
    assert client.values(taken) == NUMBERS
    assert client.address(taken) == mi.address
    assert (mi.refcount, exports_of(mi, "arrow")) == (before + 1, 1)
    del taken
    assert exports_of(mi, "arrow") == 0
    assert mi.refcount == before


@takers
def test_client_imports_slice_without_copy(client):
    exporter = memrt.types.Column(column().array[7:12])
    taken = client.take(exporter)
    assert client.values(taken) == NUMBERS[7:12]
    assert client.address(taken) == exporter.array.ctypes.data


@takers
def test_client_imports_meminfo_as_bytes(client):
    mi = memrt.alloc(3, zero=True)
    taken = client.take(mi)
    assert client.values(taken) == [0, 0, 0]
    assert exports_of(mi, "arrow") == 1
    del taken
    assert exports_of(mi, "arrow") == 0


@takers
def test_imported_data_outlives_memrt_objects(client):
    exporter = column()
    taken = client.take(exporter)
    del exporter
    gc.collect()
    np.ones(1000)  # would reuse the memory after an early free
    assert client.values(taken) == NUMBERS
    before = memrt.stats()
    del taken
    gc.collect()
    assert (memrt.stats() - before).mi_free >= 1


@takers
def test_imported_data_may_be_freed_on_any_thread(client):
    taken = [client.take(column())]
    before = memrt.stats()
    elsewhere(taken.clear)
    gc.collect()
    assert (memrt.stats() - before).mi_free == 1


@takers
def test_threads_import_and_release_same_column(client):
    exporter = column()

    def work() -> None:
        for _ in range(50):
            assert client.address(client.take(exporter)) == exporter.array.ctypes.data

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert exports_of(meminfo(exporter), "arrow") == 0


@takers
def test_client_imports_nulls(client):
    masked = np.ma.MaskedArray(column().array, np.arange(24) % 5 == 0, copy=False)
    taken = client.take(memrt.types.Column(masked))
    assert client.values(taken) == masked.tolist()


@takers
@pytest.mark.parametrize(
    "dtype", "i1 u1 i2 u2 i4 u4 i8 u8 f4 f8 M8[ms] M8[us] M8[ns] m8[ns]".split()
)
def test_client_sees_same_dtype_and_values(client, dtype):
    array = memrt.array(np.arange(5).astype(dtype))
    taken = client.as_numpy(client.take(memrt.types.Column(array)))
    assert (taken.dtype, taken.tolist()) == (array.dtype, array.tolist())


def test_bool_column_is_pyarrow_bool8():
    array = memrt.array([True, False, True])
    taken = pyarrow.array(memrt.types.Column(array))
    assert taken.type == pyarrow.bool8()
    assert taken.to_numpy(zero_copy_only=True).ctypes.data == array.ctypes.data
    assert memrt.from_arrow(taken).tolist() == [True, False, True]


def test_column_in_table_shares_memory():
    exporter = column("x")
    table = pyarrow.table({"x": exporter})
    assert table["x"].chunk(0).buffers()[1].address == exporter.array.ctypes.data
    assert pyarrow.field(exporter).name == "x"
    frame = polars.DataFrame(table)
    assert frame["x"].to_numpy().ctypes.data == exporter.array.ctypes.data
    del table
    assert exports_of(meminfo(exporter), "arrow") == 1
    del frame
    assert exports_of(meminfo(exporter), "arrow") == 0


def test_pyarrow_imports_device_array_without_copy():
    exporter = column()
    taken = pyarrow.Array._import_from_c_device_capsule(*exporter.__arrow_c_device_array__())
    assert (taken.device_type, taken.is_cpu) == (pyarrow.DeviceAllocationType.CPU, True)
    assert taken.buffers()[1].address == exporter.array.ctypes.data
    assert exports_of(meminfo(exporter), "arrow") == 1
    del taken
    assert exports_of(meminfo(exporter), "arrow") == 0


def test_capsules_are_imported_once_by_pyarrow_or_memrt():
    capsules = column().__arrow_c_array__()
    taken = pyarrow.Array._import_from_c_capsule(*capsules)
    with pytest.raises(BufferError, match="released"):
        _memrt.take_arrow(*capsules, None)
    with pytest.raises(pyarrow.ArrowInvalid, match="released"):
        pyarrow.Array._import_from_c_capsule(*capsules)
    assert taken.to_pylist() == NUMBERS
    capsules = pyarrow.array(NUMBERS).__arrow_c_array__()
    assert _memrt.take_arrow(*capsules, None)[2] == 24
    with pytest.raises(pyarrow.ArrowInvalid, match="released"):
        pyarrow.Array._import_from_c_capsule(*capsules)


@givers
def test_client_array_is_adopted_without_copy_and_released(client):
    theirs = client.gives(NUMBERS)
    before = memrt.stats()
    got = memrt.from_arrow(theirs)
    assert got.ctypes.data == client.address(theirs)
    assert got.tolist() == NUMBERS
    assert not got.flags.writeable
    assert (memrt.stats() - before).adopted == 24 * 8
    del theirs
    gc.collect()
    assert got.tolist() == NUMBERS
    del got
    assert (memrt.stats() - before).adopted == 0


@givers
def test_client_array_is_adopted_with_nulls(client):
    got = memrt.from_arrow(client.gives([1.0, None, 3.0, None]), masked=True)
    assert got.tolist() == [1.0, None, 3.0, None]
    with pytest.raises(BufferError, match="2 of 4"):
        memrt.from_arrow(client.gives([1.0, None, 3.0, None]))


@givers
def test_adopted_array_may_be_freed_on_any_thread(client):
    before = memrt.stats()
    got = [memrt.from_arrow(client.gives(NUMBERS))]
    elsewhere(got.clear)
    _memrt.owners()
    assert (memrt.stats() - before).adopted == 0


@givers
def test_round_trip_through_client_does_not_copy(client):
    """memrt's memory goes to another library, back to memrt, and again to the same library."""
    exporter = column()
    again = client.take(memrt.types.Column(memrt.from_arrow(client.take(exporter))))
    assert client.address(again) == exporter.array.ctypes.data
    mi = meminfo(exporter)
    assert exports_of(mi, "arrow") == 1
    del again
    assert exports_of(mi, "arrow") == 0


def test_pyarrow_slice_is_adopted_without_copy():
    theirs = pyarrow.array([None, *NUMBERS], pyarrow.int64())[5:]
    got = memrt.from_arrow(theirs)
    assert got.ctypes.data == theirs.buffers()[1].address + 5 * 8
    assert got.tolist() == NUMBERS[4:]


@pytest.mark.parametrize(
    "theirs",
    [
        pyarrow.array(["text"]),
        pyarrow.array([True]),
        pyarrow.array([[1]]),
        pyarrow.array([{"a": 1}]),
        pyarrow.array([1]).dictionary_encode(),
        pyarrow.record_batch({"a": [1]}),
        pyarrow.array([None]),
        pyarrow.array([1], pyarrow.date32()),
        pyarrow.array([1], pyarrow.decimal128(5)),
    ],
    ids=lambda each: str(each.type if isinstance(each, pyarrow.Array) else "a batch"),
)
def test_arrow_data_without_numpy_view_is_refused(theirs):
    with pytest.raises(BufferError):
        memrt.from_arrow(theirs)


@pytest.mark.parametrize(
    "chunked",
    [lambda values: polars.Series(values), lambda values: pyarrow.chunked_array([values])],
    ids=["polars", "pyarrow"],
)
def test_stream_only_exporter_is_imported_without_copy(chunked):
    theirs = chunked(NUMBERS)
    assert not hasattr(theirs, "__arrow_c_array__")
    array = memrt.from_arrow(theirs)
    assert array.tolist() == NUMBERS
    assert array.ctypes.data == np.asarray(theirs).ctypes.data
    assert memrt.stats().adopted == array.nbytes


def test_several_chunks_must_be_combined_first():
    theirs = pyarrow.chunked_array([[1.0, 2.0], [3.0]])
    with pytest.raises(BufferError, match="chunks"):
        memrt.from_arrow(theirs)
    assert memrt.from_arrow(theirs.combine_chunks()).tolist() == [1, 2, 3]
