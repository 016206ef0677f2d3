"""Allocate arrays in CUDA memory."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from memrt import _memrt
from memrt._support.public import public
from memrt.cuda._accounts import kind_number
from memrt.cuda._array import Array
from memrt.cuda._layout import Layout, dense_strides
from memrt.cuda._memory import Keep
from memrt.cuda._stream import device_number, stream_handle


@public("memrt.cuda")
def empty(
    shape: int | Sequence[int],
    dtype: DTypeLike = float,
    *,
    stream: Any = None,
    kind: str = "device",
    device: int | None = None,
    name: str | None = None,
) -> Array:
    """Allocate an array in CUDA memory, in C order, with undefined contents.

    Parameters
    ----------
    shape : int or sequence of int
        Elements along each axis. With an extent of 0, no memory is allocated.
    dtype : dtype_like, default float
        Data type of the elements. Object types are refused.
    stream : Stream, int or object, optional
        Stream that allocates and uses the array: a :class:`Stream`, a handle, or a stream object of
        another library. If the device has memory pools, the memory is allocated and freed in stream
        order, without waiting. None: any stream may use the array at once, and the free waits for
        the device.
    kind : {'device', 'managed', 'pinned'}, default 'device'
        Kind of memory. 'managed' memory moves between host and devices on access. 'pinned' is host
        memory that devices can access.
    device : int, optional
        Ordinal of the device. None: the device of the thread's current context, else the first
        device.
    name : str, optional
        Name in reports, at most 63 bytes in UTF-8.

    Returns
    -------
    Array
        New array.

    Raises
    ------
    ValueError
        An argument is out of range.
    TypeError
        An argument has the wrong type.
    MemoryError
        The driver has no memory, or the limit of :func:`set_limit` is reached.
    CudaError
        No driver is installed, or the driver reported an error.

    Notes
    -----
    Ownership: a stream object is kept alive as long as the memory.

    Examples
    --------
    >>> import memrt
    >>> array = memrt.cuda.empty((2, 3), "f4", kind="managed", name="grid")
    >>> array.shape, array.nbytes, array.kind
    ((2, 3), 24, 'managed')
    """
    handle = stream_handle(stream)
    type_ = np.dtype(dtype)
    if type_.hasobject or not type_.isnative:
        raise TypeError(f"dtype must have native byte order and no Python objects, got {type_}")
    extents = _shape_of(shape)
    layout = Layout(extents, dense_strides(extents, type_.itemsize), type_)
    keep: Keep = [stream]
    meminfo = _memrt.cuda_alloc(
        layout.nbytes, kind_number(kind), device_number(device), handle, keep, name
    )
    return Array._over(meminfo, 0, layout, False, keep)


def copied(array: Array) -> Array:
    """Return a copy of the elements in new memory of the same kind and device."""
    low, high = array._layout.extent
    keep: Keep = []
    meminfo = _memrt.cuda_copy(array.meminfo, array._offset + low, high - low, keep)
    return Array._over(meminfo, -low, array._layout, False, keep)


def _shape_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    given = shape if isinstance(shape, Sequence) else (shape,)
    numbers = tuple(map(operator.index, given))
    if any(extent < 0 for extent in numbers):
        raise ValueError(f"shape must have no negative extent, got {numbers}")
    return numbers
