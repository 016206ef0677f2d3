"""Libraries that import buffers and NumPy's arrays: no copy, the right lifetime."""

from __future__ import annotations

import gc
import sys

import jax
import memrt
import nanoarrow
import numpy as np
import polars
import pyarrow
import pytest
from elsewhere import elsewhere

jax.config.update("jax_enable_x64", True)


def test_pyarrow_imports_meminfo_as_buffer():
    mi = memrt.alloc(64, zero=True)
    before = sys.getrefcount(mi)
    buffer = pyarrow.py_buffer(mi)
    assert (buffer.address, buffer.size, buffer.is_mutable) == (mi.address, 64, True)
    assert sys.getrefcount(mi) == before + 1
    del buffer
    assert sys.getrefcount(mi) == before


def test_pyarrow_buffer_of_read_only_memory_is_immutable():
    theirs = pyarrow.array([1, 2, 3])
    mi = memrt.meminfo(memrt.from_arrow(theirs))
    buffer = pyarrow.py_buffer(mi)
    assert (buffer.address, buffer.is_mutable) == (theirs.buffers()[1].address, False)


@pytest.mark.parametrize(
    "take",
    [np.asarray, memoryview, pyarrow.py_buffer, nanoarrow.c_buffer],
    ids=["numpy", "memoryview", "pyarrow", "nanoarrow"],
)
def test_buffer_outlives_meminfo_and_frees_on_any_thread(take):
    mi = memrt.alloc(64, zero=True)
    taken = [take(mi)]
    assert np.asarray(taken[0]).ctypes.data == mi.address
    before = memrt.stats()
    del mi
    gc.collect()
    assert (memrt.stats() - before).mi_free == 0
    assert bytes(taken[0]) == bytes(64)
    elsewhere(taken.clear)
    gc.collect()
    assert (memrt.stats() - before).mi_free == 1


def test_pyarrow_shares_memrt_array_and_polars_imports_data():
    array = memrt.zeros(1000)
    assert pyarrow.array(array).buffers()[1].address == array.ctypes.data
    assert pyarrow.Tensor.from_numpy(array.reshape(10, 100)).to_numpy().ctypes.data == (
        array.ctypes.data
    )
    assert polars.Series(array).to_numpy().shape == (1000,)  # Polars may copy


def test_jax_imports_memrt_array_without_copy():
    """JAX shares memory that is aligned to 64 bytes. NumPy's own memory has the alignment only by
    chance.
    """
    array = memrt.full(1000, 2.5)
    address, before = array.ctypes.data, sys.getrefcount(array)
    theirs = jax.device_put(array)
    assert theirs.unsafe_buffer_pointer() == address
    assert sys.getrefcount(array) == before + 1
    assert float(theirs.sum()) == 2500.0
    del theirs
    gc.collect()
    assert sys.getrefcount(array) == before


def test_jax_array_outlives_memrt_array():
    array = memrt.full(1000, 2.5)
    theirs = jax.device_put(array)
    before = memrt.stats()
    del array
    gc.collect()
    assert (memrt.stats() - before).mi_free == 0
    assert float(theirs.sum()) == 2500.0
    del theirs
    gc.collect()
    assert (memrt.stats() - before).mi_free == 1


def test_jax_array_is_wrapped_read_only_without_copy():
    theirs = jax.numpy.arange(24.0)
    view = np.asarray(theirs)
    assert view.ctypes.data == theirs.unsafe_buffer_pointer()
    mi = memrt.wrap(view.ctypes.data, view.nbytes, owner=view, readonly=True)
    array = memrt.as_array(mi, 24, float)
    del theirs, view
    gc.collect()
    assert array.sum() == 276
    assert not array.flags.writeable
