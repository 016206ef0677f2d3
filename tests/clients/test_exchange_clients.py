"""Exchange by Arrow and DLPack between memrt and other libraries: no copy, the right lifetime.

Arrow has three implementations here: Arrow's own in C++, nanoarrow in C, Polars in Rust.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import memrt
import nanoarrow
import numpy as np
import polars
import pyarrow
import pytest
import tvm_ffi
from elsewhere import elsewhere
from exported import exports_of
from memrt import _memrt

jax.config.update("jax_enable_x64", True)

NUMBERS = list(range(24))


@dataclass(frozen=True)
class Client:
    """A library: how to import and export arrays, and how to read their address and values."""

    name: str
    take: Callable[[Any], Any] | None  # None if the library cannot import
    address: Callable[[Any], int]
    values: Callable[[Any], list]
    gives: Callable[[list], Any] | None  # from values; None if the library exports streams only
    gives_writable: bool = False
    takes_read_only: bool = True
    protocol: str = "dlpack"

    @property
    def export(self) -> type:
        return memrt.types.Column if self.protocol == "arrow" else memrt.types.Tensor

    @property
    def adopt(self) -> Callable[[Any], np.ndarray]:
        return memrt.from_arrow if self.protocol == "arrow" else memrt.from_dlpack

    def __str__(self) -> str:
        return f"{self.name} by {self.protocol}"


def values_by_dlpack(array: Any) -> list:
    return np.from_dlpack(array).ravel().tolist()


BY_ARROW = [
    Client(
        "pyarrow",
        pyarrow.array,
        lambda a: a.buffers()[1].address + a.offset * 8,
        lambda a: a.to_pylist(),
        lambda values: pyarrow.array(values, pyarrow.float64()),
        protocol="arrow",
    ),
    Client(
        "nanoarrow",
        nanoarrow.c_array,
        lambda a: np.asarray(a.view().buffer(1)).ctypes.data,
        lambda a: nanoarrow.Array(a).to_pylist(),
        lambda values: nanoarrow.c_array(values, nanoarrow.float64()),
        protocol="arrow",
    ),
    Client(
        "polars",
        polars.Series,
        lambda a: a.drop_nulls().to_numpy().ctypes.data,
        lambda a: a.to_list(),
        None,
        protocol="arrow",
    ),
]
BY_DLPACK = [
    Client("numpy", np.from_dlpack, lambda a: a.ctypes.data, values_by_dlpack, np.array, True),
    Client("jax", jax.dlpack.from_dlpack, lambda a: a.unsafe_buffer_pointer(),
           values_by_dlpack, jnp.array, takes_read_only=False),
    Client("tvm", tvm_ffi.from_dlpack, lambda a: np.from_dlpack(a).ctypes.data,
           values_by_dlpack, lambda values: tvm_ffi.from_dlpack(np.array(values)), True),
    Client("pyarrow", None, lambda a: a.buffers()[1].address,
           values_by_dlpack, pyarrow.array),
]  # fmt: skip
CLIENTS = BY_ARROW + BY_DLPACK
AS_NUMPY = {
    "pyarrow": lambda a: a.to_numpy(),
    "nanoarrow": lambda a: pyarrow.array(a).to_numpy(),
    "polars": lambda a: a.to_numpy(),
}


def taking(clients: list[Client]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("client", [c for c in clients if c.take], ids=str)


def giving(clients: list[Client]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("client", [c for c in clients if c.gives], ids=str)


def numbers(*shape: int) -> np.ndarray:
    """Return memory of memrt with the values of NUMBERS."""
    return memrt.array(np.array(NUMBERS, float).reshape(shape or 24))


def column(name: str = "") -> memrt.types.Column:
    return memrt.types.Column(numbers(), name)


def tensor() -> memrt.types.Tensor:
    return memrt.types.Tensor(numbers(2, 3, 4))


# --- By both protocols. ---


@taking(CLIENTS)
def test_client_shares_memory_and_releases_export(client):
    exporter = client.export(numbers())
    mi = memrt.meminfo(exporter.array)
    before = mi.refcount
    taken = client.take(exporter)
    assert client.values(taken) == NUMBERS
    assert client.address(taken) == mi.address
    assert (mi.refcount, exports_of(mi, client.protocol)) == (before + 1, 1)
    del taken
    assert exports_of(mi, client.protocol) == 0
    assert mi.refcount == before


@taking(CLIENTS)
def test_client_imports_meminfo_as_bytes(client):
    mi = memrt.alloc(640, zero=True)
    memoryview(mi)[0] = 200
    taken = client.take(mi)
    assert client.values(taken) == [200] + [0] * 639
    assert exports_of(mi, client.protocol) == 1
    del taken
    assert exports_of(mi, client.protocol) == 0


@taking(CLIENTS)
def test_imported_data_outlives_memrt_objects(client):
    taken = client.take(client.export(numbers()))
    gc.collect()
    np.ones(1000)  # would reuse the memory after an early free
    assert client.values(taken) == NUMBERS
    before = memrt.stats()
    del taken
    gc.collect()
    assert (memrt.stats() - before).mi_free >= 1


@taking(CLIENTS)
def test_imported_data_may_be_freed_on_any_thread(client):
    taken = [client.take(client.export(numbers()))]
    before = memrt.stats()
    elsewhere(taken.clear)
    gc.collect()
    assert (memrt.stats() - before).mi_free == 1


@taking(CLIENTS)
def test_threads_import_and_release_the_same_memory(client):
    exporter = client.export(numbers())
    mi = memrt.meminfo(exporter.array)
    found = set()

    def work() -> None:
        for _ in range(50):
            found.add(client.address(client.take(exporter)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {mi.address}
    assert exports_of(mi, client.protocol) == 0


@giving(CLIENTS)
def test_client_memory_is_adopted_without_copy_and_released(client):
    theirs = client.gives([float(number) for number in NUMBERS])
    before = memrt.stats()
    array = client.adopt(theirs)
    assert array.tolist() == NUMBERS
    assert array.ctypes.data == client.address(theirs)
    assert array.flags.writeable == client.gives_writable
    assert memrt.meminfo(array).kind == "adopted"
    assert (memrt.stats() - before).adopted == 24 * 8
    del theirs
    gc.collect()
    assert array.tolist() == NUMBERS
    del array
    assert (memrt.stats() - before).adopted == 0


@giving(CLIENTS)
def test_adopted_array_may_be_freed_on_any_thread(client):
    before = memrt.stats()
    got = [client.adopt(client.gives(NUMBERS))]
    elsewhere(got.clear)
    _memrt.owners()
    assert (memrt.stats() - before).adopted == 0


@taking(CLIENTS)
def test_round_trip_through_client_does_not_copy(client):
    """memrt's memory goes to another library, back to memrt, and again to the same library."""
    exporter = client.export(numbers())
    mi = memrt.meminfo(exporter.array)
    back = client.adopt(client.take(exporter))
    assert back.ctypes.data == mi.address
    assert exports_of(mi, client.protocol) == 1  # held by `back`
    if client.takes_read_only:
        again = client.take(client.export(back))
        del back
        assert client.address(again) == mi.address
        assert exports_of(mi, client.protocol) == 1
        del again
    else:
        del back
    assert exports_of(mi, client.protocol) == 0


# --- By Arrow. ---


@taking(BY_ARROW)
def test_client_imports_slice_without_copy(client):
    exporter = memrt.types.Column(column().array[7:12])
    taken = client.take(exporter)
    assert client.values(taken) == NUMBERS[7:12]
    assert client.address(taken) == exporter.array.ctypes.data


@taking(BY_ARROW)
def test_client_imports_nulls(client):
    masked = np.ma.MaskedArray(column().array, np.arange(24) % 5 == 0, copy=False)
    taken = client.take(memrt.types.Column(masked))
    assert client.values(taken) == masked.tolist()


@taking(BY_ARROW)
@pytest.mark.parametrize(
    "dtype", "i1 u1 i2 u2 i4 u4 i8 u8 f4 f8 M8[ms] M8[us] M8[ns] m8[ns]".split()
)
def test_client_sees_same_dtype_and_values(client, dtype):
    array = memrt.array(np.arange(5).astype(dtype))
    taken = AS_NUMPY[client.name](client.take(memrt.types.Column(array)))
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
    assert exports_of(memrt.meminfo(exporter.array), "arrow") == 1
    del frame
    assert exports_of(memrt.meminfo(exporter.array), "arrow") == 0


def test_pyarrow_imports_device_array_without_copy():
    exporter = column()
    taken = pyarrow.Array._import_from_c_device_capsule(*exporter.__arrow_c_device_array__())
    assert (taken.device_type, taken.is_cpu) == (pyarrow.DeviceAllocationType.CPU, True)
    assert taken.buffers()[1].address == exporter.array.ctypes.data
    assert exports_of(memrt.meminfo(exporter.array), "arrow") == 1
    del taken
    assert exports_of(memrt.meminfo(exporter.array), "arrow") == 0


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


@giving(BY_ARROW)
def test_client_array_is_adopted_with_nulls(client):
    got = memrt.from_arrow(client.gives([1.0, None, 3.0, None]), masked=True)
    assert got.tolist() == [1.0, None, 3.0, None]
    with pytest.raises(BufferError, match="2 of 4"):
        memrt.from_arrow(client.gives([1.0, None, 3.0, None]))


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


# --- By DLPack. ---


@taking(BY_DLPACK)
def test_client_sees_the_shape_of_a_tensor(client):
    assert tuple(client.take(tensor()).shape) == (2, 3, 4)


def test_requested_copy_does_not_export_buffer():
    exporter = tensor()
    capsule = exporter.__dlpack__(copy=True, max_version=(1, 0))
    assert exports_of(exporter.meminfo, "dlpack") == 0
    del capsule


def test_read_only_memory_needs_versioned_consumer():
    array = memrt.zeros(24)
    array.flags.writeable = False
    exporter = memrt.types.Tensor(array)
    assert not np.from_dlpack(exporter).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        jax.dlpack.from_dlpack(exporter)  # requests a tensor as before version 1.0


@giving(BY_DLPACK)
def test_copy_of_client_tensor_is_memrt_memory(client):
    array = memrt.from_dlpack(client.gives(NUMBERS), copy=True)
    assert (array.sum(), array.flags.writeable) == (276, True)
    assert memrt.meminfo(array).kind == "inline"


@giving(BY_DLPACK)
def test_client_capsule_cannot_be_imported_twice(client):
    class Twice:
        capsule = client.gives(NUMBERS).__dlpack__(max_version=(1, 0))

        def __dlpack__(self, **wishes):
            return self.capsule

    array = memrt.from_dlpack(Twice())
    assert array.sum() == 276
    with pytest.raises(ValueError, match="unused capsule"):
        memrt.from_dlpack(Twice())


def test_tvm_function_takes_and_returns_memrt_tensor():
    """TVM's functions look for the exchange table of the argument's type, and return that type."""
    exporter = tensor()
    mi = exporter.meminfo
    echo = tvm_ffi.get_global_func("testing.echo")
    answer = echo(exporter)
    assert type(answer) is memrt.types.Tensor
    assert (answer.shape, answer.meminfo.address) == ((2, 3, 4), mi.address)
    assert exports_of(mi, "dlpack") == 1
    del answer
    assert exports_of(mi, "dlpack") == 0


def test_type_unknown_to_numpy_is_refused():
    brain = tvm_ffi.from_dlpack(jnp.arange(8, dtype=jnp.bfloat16))
    with pytest.raises(BufferError, match="NumPy does not support"):
        memrt.from_dlpack(brain)
