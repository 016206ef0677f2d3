"""Import memory of other libraries as arrays: DLPack and the CUDA Array Interface."""

from __future__ import annotations

from typing import Any

from memrt import _memrt
from memrt._support.public import public
from memrt.cuda._array import Array
from memrt.cuda._interface import read_interface
from memrt.cuda._layout import Layout
from memrt.cuda._memory import Keep
from memrt.cuda._stream import NONE


def of_tensor(tensor: _memrt.Tensor) -> Array:
    """Return an array over device memory imported through DLPack."""
    meminfo, dtype, shape, strides, offset, readonly, keep = _memrt.tensor_layout(tensor)
    assert keep is not None  # the tensor is in device memory
    return Array._over(meminfo, offset, Layout(shape, strides, dtype), readonly, keep)


@public("memrt")
def from_cuda_array_interface(obj: Any, sync: bool = True, owner: Any = ...) -> Array:
    """Import the memory of an object with ``__cuda_array_interface__``, without a copy.

    Parameters
    ----------
    obj : object
        Array of another library, the producer. Versions 0 to 3 of the interface are supported, with
        arbitrary strides. A read-only array stays read-only.
    sync : bool, default True
        True: wait for the producer's stream before the return. False: do not wait; all work on the
        array is ordered after the work in the producer's stream. In both cases the producer's
        stream becomes the array's stream. If MEMRT_CUDA_SYNC is 0, the producer's stream is
        ignored.
    owner : object, optional
        Object that keeps the memory alive. Default: `obj`. None: the caller must keep the memory
        alive.

    Returns
    -------
    memrt.cuda.Array
        Array over the memory of the producer.

    Raises
    ------
    TypeError
        The attribute is missing, or an entry has the wrong type.
    ValueError
        An entry is missing or invalid, for example stream 0.
    NotImplementedError
        The producer has a mask.
    CudaError
        The driver does not know the address, reported an error, or is missing.
    MemoryError
        An allocation failed. Nothing was imported.

    Notes
    -----
    Ownership: memrt holds one reference to `owner`, and drops the reference after the last release
    of the array's MemInfo. Statistics count the memory as `adopted`, in the account of the policy
    "cuda foreign". The address is resolved for the device's primary context.

    Examples
    --------
    >>> import memrt
    >>> theirs = memrt.cuda.empty(3, "i4")  # stands for an array of another library
    >>> theirs.copy_from_host([1, 2, 3])
    >>> memrt.from_cuda_array_interface(theirs).copy_to_host()
    array([1, 2, 3], dtype=int32)
    """
    interface = read_interface(obj)
    layout = interface.layout
    low, high = layout.extent
    stream = interface.stream if _memrt.cuda_sync() else NONE
    keep: Keep = [obj if owner is ... else owner]
    start = interface.address + low if layout.size else 0
    meminfo = _memrt.cuda_wrap(start, high - low, interface.readonly, stream, keep)
    array = Array._over(meminfo, -low, layout, interface.readonly, keep)
    if sync:
        array.synchronize()
    return array
