"""Real libraries import memrt's arrays and export arrays to memrt, on a GPU, if installed."""

from __future__ import annotations

import gc
import importlib

import memrt
import numpy as np
import pytest
from memrt.cuda import Stream, empty


def why_not_numba(cuda) -> str | None:
    """Return the error of Numba without memrt, for example with a NumPy that is too new."""
    try:
        cuda.jit(lambda values: None)[1, 1](np.zeros(1))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.fixture
def client(machine, request):
    """Return a library by its name, on a GPU."""
    name = request.param
    if not machine.is_real or importlib.util.find_spec(name.partition(".")[0]) is None:
        pytest.skip(f"needs a GPU and {name.partition('.')[0]}")
    library = importlib.import_module(name)
    if name == "numba.cuda" and (why := why_not_numba(library)):
        pytest.skip(f"numba.cuda does not work here: {why}")
    return library


def counting(**options) -> memrt.cuda.Array:
    array = empty((3, 4), "f4", **options)
    array.copy_from_host(np.arange(12).reshape(3, 4))
    return array


COUNTING = np.arange(12, dtype="f4").reshape(3, 4)


@pytest.mark.parametrize("client", ["cupy"], indirect=True)
@pytest.mark.parametrize("kind", ["device", "managed", "pinned"])
def test_cupy_imports_array_without_copy_and_holds_memory(client, kind):
    array = counting(kind=kind, stream=Stream())
    taken = client.asarray(array)
    meminfo = array.meminfo
    assert taken.data.ptr == meminfo.address
    del array
    gc.collect()
    np.testing.assert_array_equal(client.asnumpy(taken * 2), COUNTING * 2)
    before = meminfo.refcount
    del taken
    gc.collect()
    assert meminfo.refcount <= before


@pytest.mark.parametrize("client", ["cupy"], indirect=True)
@pytest.mark.parametrize("index", [np.s_[:], np.s_[::-1], np.s_[:, ::2], np.s_[0:0]])
def test_cupy_array_is_imported_with_values_and_strides(client, index):
    theirs = client.arange(12, dtype="f4").reshape(3, 4)[index]
    taken = memrt.from_cuda_array_interface(theirs)
    np.testing.assert_array_equal(taken.copy_to_host(), COUNTING[index])
    assert taken.strides == theirs.strides or theirs.size == 0


@pytest.mark.parametrize("client", ["cupy"], indirect=True)
def test_import_waits_for_cupy_stream(client):
    stream = client.cuda.Stream(non_blocking=True)
    with stream:
        theirs = client.ones((2000, 2000), "f4")
        for _ in range(20):
            theirs = theirs @ client.full((2000, 2000), 1 / 2000, "f4")
        taken = memrt.from_cuda_array_interface(theirs)
    np.testing.assert_allclose(taken.copy_to_host(), 1, rtol=1e-3)


@pytest.mark.parametrize("client", ["cupy"], indirect=True)
def test_array_accepts_cupy_stream(client):
    stream = client.cuda.Stream(non_blocking=True)
    array = counting(stream=stream)
    assert array.stream == stream.ptr
    np.testing.assert_array_equal(array.copy_to_host(), COUNTING)


@pytest.mark.parametrize("client", ["torch"], indirect=True)
def test_pytorch_imports_array_without_copy_and_holds_memory(client):
    array = counting()
    taken = client.as_tensor(array, device="cuda")
    assert taken.data_ptr() == array.meminfo.address
    del array
    gc.collect()
    np.testing.assert_array_equal((taken * 2).cpu().numpy(), COUNTING * 2)


@pytest.mark.parametrize("client", ["torch"], indirect=True)
def test_pytorch_tensor_is_imported_without_copy(client):
    theirs = client.arange(12, dtype=client.float32, device="cuda").reshape(3, 4).T
    taken = memrt.from_cuda_array_interface(theirs)
    assert taken.meminfo.address == theirs.data_ptr()
    np.testing.assert_array_equal(taken.copy_to_host(), COUNTING.T)


@pytest.mark.parametrize("client", ["numba.cuda"], indirect=True)
def test_numba_kernel_changes_imported_array_in_place(client):
    array = counting(stream=Stream())
    taken = client.as_cuda_array(array)
    assert taken.__cuda_array_interface__["data"][0] == array.meminfo.address

    @client.jit
    def double(values):
        i, j = client.grid(2)
        if i < values.shape[0] and j < values.shape[1]:
            values[i, j] *= 2

    double[(1, 1), (4, 4)](taken)
    client.synchronize()
    np.testing.assert_array_equal(array.copy_to_host(), COUNTING * 2)


@pytest.mark.parametrize("client", ["numba.cuda"], indirect=True)
def test_numba_array_is_imported_with_values(client):
    theirs = client.to_device(COUNTING)
    np.testing.assert_array_equal(memrt.from_cuda_array_interface(theirs).copy_to_host(), COUNTING)


CLIENTS = ["cupy", "torch", "jax"]


def host_copy(client, array) -> np.ndarray:
    """Return a library's array as a NumPy array."""
    return client.asnumpy(array) if client.__name__ == "cupy" else np.asarray(array.tolist(), "f4")


@pytest.mark.parametrize("client", CLIENTS, indirect=True)
@pytest.mark.parametrize("with_stream", [False, True])
def test_client_imports_array_by_dlpack_and_holds_memory(client, with_stream):
    array = counting(stream=Stream()) if with_stream else counting()
    importing = client.dlpack if client.__name__ == "jax" else client
    taken = importing.from_dlpack(array)
    meminfo = array.meminfo
    assert meminfo.refcount > 1
    del array
    gc.collect()
    np.testing.assert_array_equal(host_copy(client, taken + taken), COUNTING * 2)
    del taken
    gc.collect()
    assert meminfo.refcount == 1


@pytest.mark.parametrize("client", CLIENTS, indirect=True)
def test_array_of_client_is_imported_by_dlpack(client):
    namespace = client.numpy if client.__name__ == "jax" else client
    theirs = namespace.asarray(COUNTING)
    theirs = theirs.cuda() if client.__name__ == "torch" else theirs
    taken = memrt.from_dlpack(theirs)
    assert isinstance(taken, memrt.cuda.Array)
    np.testing.assert_array_equal(taken.copy_to_host(), COUNTING)


@pytest.mark.parametrize("client", ["jax"], indirect=True)
def test_jax_array_is_imported_by_cuda_array_interface(client):
    theirs = client.numpy.asarray(COUNTING) * 2
    taken = memrt.from_cuda_array_interface(theirs)
    np.testing.assert_array_equal(taken.copy_to_host(), COUNTING * 2)


@pytest.mark.parametrize("client", ["torch"], indirect=True)
def test_copies_overlap_work_in_other_stream(client):
    """An array in pinned memory is copied while the device computes: the copy needs no wait."""
    stream = client.cuda.Stream()
    with memrt.Policy(pinned=True):
        host = np.full(1_000_000, 3, "f4")
    assert client.from_numpy(host).is_pinned()
    with client.cuda.stream(stream):
        theirs = client.from_numpy(host).to("cuda", non_blocking=True)
    stream.synchronize()
    assert theirs.sum().item() == 3_000_000
