"""DLPack between memrt and other libraries: no copy, the right lifetime."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import memrt
import numpy as np
import pyarrow
import pytest
import tvm_ffi
from elsewhere import elsewhere
from exported import exports_of

jax.config.update("jax_enable_x64", True)


@dataclass(frozen=True)
class Client:
    """How a library imports and exports tensors; `take` is None if the library cannot import."""

    name: str
    take: Callable[[Any], Any] | None
    address: Callable[[Any], int]
    make: Callable[[], Any]  # values from 0.0 to 23.0
    gives_writable: bool

    def __str__(self) -> str:
        return self.name


CLIENTS = [
    Client("numpy", np.from_dlpack, lambda a: a.ctypes.data, lambda: np.arange(24.0), True),
    Client("jax", jax.dlpack.from_dlpack, lambda a: a.unsafe_buffer_pointer(),
           lambda: jnp.arange(24.0), False),
    Client("tvm", tvm_ffi.from_dlpack, lambda a: np.from_dlpack(a).ctypes.data,
           lambda: tvm_ffi.from_dlpack(np.arange(24.0)), True),
    Client("pyarrow", None, lambda a: a.buffers()[1].address,
           lambda: pyarrow.array(np.arange(24.0)), False),
]  # fmt: skip
takers = pytest.mark.parametrize("client", [c for c in CLIENTS if c.take is not None], ids=str)
givers = pytest.mark.parametrize("client", CLIENTS, ids=str)


def tensor(shape=(2, 3, 4)) -> memrt.types.Tensor:
    array = memrt.empty(shape)
    array[...] = np.arange(array.size).reshape(shape)
    return memrt.types.Tensor(array)


@takers
def test_client_shares_tensor_and_releases_export(client):
    exporter = tensor()
    mi = exporter.meminfo
    before = mi.refcount
    taken = client.take(exporter)
    assert tuple(taken.shape) == (2, 3, 4)
    assert client.address(taken) == mi.address
    assert (mi.refcount, exports_of(mi, "dlpack")) == (before + 1, 1)
    del taken
    assert exports_of(mi, "dlpack") == 0
    assert mi.refcount == before


@takers
def test_client_imports_meminfo_as_bytes(client):
    mi = memrt.alloc(640, zero=True)
    taken = client.take(mi)
    assert tuple(taken.shape) == (640,)
    assert str(taken.dtype) == "uint8"
    assert exports_of(mi, "dlpack") == 1
    del taken
    assert exports_of(mi, "dlpack") == 0


@takers
def test_imported_tensor_outlives_memrt_objects(client):
    exporter = tensor()
    taken = client.take(exporter)
    del exporter
    gc.collect()
    assert np.asarray(np.from_dlpack(taken)).sum() == 276
    before = memrt.stats()
    del taken
    gc.collect()
    assert (memrt.stats() - before).mi_free >= 1


@takers
def test_imported_tensor_may_be_freed_on_any_thread(client):
    exporter = tensor()
    kept = [client.take(exporter)]
    elsewhere(kept.clear)
    assert exports_of(exporter.meminfo, "dlpack") == 0


@takers
def test_requested_copy_does_not_export_buffer(client):
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


@givers
def test_client_tensor_is_adopted_without_copy_and_released(client):
    theirs = client.make()
    before = memrt.stats()
    array = memrt.from_dlpack(theirs)
    assert array.tolist() == list(range(24))
    assert array.ctypes.data == client.address(theirs)
    assert array.flags.writeable == client.gives_writable
    assert memrt.meminfo(array).kind == "adopted"
    assert (memrt.stats() - before).adopted == 192
    del theirs
    gc.collect()
    assert array.sum() == 276
    del array
    assert (memrt.stats() - before).adopted == 0


@givers
def test_copy_of_client_tensor_is_memrt_memory(client):
    array = memrt.from_dlpack(client.make(), copy=True)
    assert (array.sum(), array.flags.writeable) == (276, True)
    assert memrt.meminfo(array).kind == "inline"


@givers
def test_client_capsule_cannot_be_imported_twice(client):
    class Twice:
        capsule = client.make().__dlpack__(max_version=(1, 0))

        def __dlpack__(self, **wishes):
            return self.capsule

    array = memrt.from_dlpack(Twice())
    assert array.sum() == 276
    with pytest.raises(ValueError, match="unused capsule"):
        memrt.from_dlpack(Twice())


@takers
def test_round_trip_through_client_does_not_copy(client):
    exporter = tensor((24,))
    taken = client.take(exporter)
    back = memrt.from_dlpack(taken)
    assert back.ctypes.data == exporter.meminfo.address
    del taken
    assert exports_of(exporter.meminfo, "dlpack") == 1  # held by `back`
    del back
    assert exports_of(exporter.meminfo, "dlpack") == 0


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
