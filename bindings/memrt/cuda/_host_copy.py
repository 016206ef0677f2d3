"""Copy elements between CUDA memory and NumPy arrays of the host, and wait for the copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memrt import _memrt
from memrt._memrt import MemInfo
from memrt.cuda._layout import Layout

_MOST_EXTRA = 4  # one copy of the whole extent, if the extent is at most 4 times nbytes


def read_elements(
    meminfo: MemInfo, offset: int, layout: Layout, out: np.ndarray, stream: int
) -> None:
    """Copy the elements to a host array.

    Parameters
    ----------
    meminfo : MemInfo
        MemInfo of the CUDA memory.
    offset : int
        Bytes from the start of the memory to the first element.
    layout : Layout
        Positions of the elements.
    out : numpy.ndarray
        Writeable host array of the same shape and dtype.
    stream : int
        Handle of the stream for the copy.
    """
    low, high = layout.extent
    if not layout.is_contiguous and high - low <= _MOST_EXTRA * layout.nbytes:
        out[...] = _extent_on_host(meminfo, offset, layout, stream)
        return
    dense = out if out.flags.c_contiguous else np.empty(layout.shape, layout.dtype)
    _transfer(meminfo, offset, layout, dense, stream, _memrt.cuda_read)
    if dense is not out:
        out[...] = dense


def write_elements(
    meminfo: MemInfo, offset: int, layout: Layout, source: np.ndarray, stream: int
) -> None:
    """Copy a host array of the same shape and dtype to the elements.

    Parameters
    ----------
    meminfo, offset, layout, stream
        As for :func:`read_elements`.
    source : numpy.ndarray
        Host array.
    """
    dense = np.ascontiguousarray(source)
    _transfer(meminfo, offset, layout, dense, stream, _memrt.cuda_write)


def _extent_on_host(meminfo: MemInfo, offset: int, layout: Layout, stream: int) -> np.ndarray:
    """Return a view of a host copy of all bytes from the first to the last element.

    A single copy is faster than one copy for each contiguous piece.
    """
    low, high = layout.extent
    lump = np.empty(high - low, np.uint8)
    _memrt.cuda_read(meminfo, offset + low, lump.data, stream)
    return np.ndarray(layout.shape, layout.dtype, lump, -low, layout.strides)


def _transfer(
    meminfo: MemInfo,
    offset: int,
    layout: Layout,
    dense: np.ndarray,
    stream: int,
    copy: Callable[..., None],
) -> None:
    """Copy between the elements and a contiguous host array, one contiguous piece at a time."""
    if layout.size == 0:
        return
    host = dense.reshape(layout.shape)  # ascontiguousarray gives a 0-d array one dimension
    for distance, index in layout.runs():
        place: Any = (*index, ...)
        piece = host[place].reshape(-1).view(np.uint8)
        copy(meminfo, offset + distance, piece.data, stream)
