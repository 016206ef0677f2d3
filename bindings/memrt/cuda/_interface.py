"""Dictionaries of the CUDA Array Interface, versions 0 to 3, of whoever made them.

What stands here is from the interface's description, at
https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from memrt.cuda._layout import Layout, Numbers, dense_strides
from memrt.cuda._stream import NONE, checked_handle

_TYPE = re.compile(r"[<>|=][tbiufcmMOSUV][0-9]{1,18}(\[[0-9a-zA-Z/]{1,24}\])?")
_TOP = 2**64  # of addresses
_MOST_BYTES = 2**63 - 1
_MOST_DIMENSIONS = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32


class Interface(NamedTuple):
    """What a dictionary says."""

    layout: Layout
    address: int
    """Of the first element; 0 for arrays without any."""
    readonly: bool
    stream: int
    """0: none."""


def read_interface(producer: object) -> Interface:
    """Read and verify an object's ``__cuda_array_interface__``.

    Raises:
        TypeError: it has none, or something in it has the wrong type.
        ValueError: something is missing or makes no sense.
        NotImplementedError: it has a mask.
    """
    try:
        entries = producer.__cuda_array_interface__  # type: ignore[attr-defined]
    except AttributeError:
        kind = type(producer).__name__
        raise TypeError(f"{kind} has no __cuda_array_interface__") from None
    if not isinstance(entries, dict):
        raise TypeError(f"__cuda_array_interface__ is a dict, got {type(entries).__name__}")
    _read_version(_entry(entries, "version"))
    if entries.get("mask") is not None:
        raise NotImplementedError("arrays with a mask cannot be taken over: fill it in first")
    layout = _read_layout(entries)
    address, readonly = _read_data(_entry(entries, "data"), layout)
    stream = entries.get("stream")
    return Interface(layout, address, readonly, NONE if stream is None else checked_handle(stream))


def _entry(entries: dict[Any, Any], key: str) -> Any:
    try:
        return entries[key]
    except KeyError:
        raise ValueError(f"__cuda_array_interface__ has no {key!r}") from None


def _integer(value: object, what: str) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{what} is an integer, got {type(value).__name__}")
    return int(value)


def _integers(value: object, what: str) -> Numbers:
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{what} is a tuple of integers, got {type(value).__name__}")
    if len(value) > _MOST_DIMENSIONS:
        raise ValueError(f"{what} has {len(value)} dimensions, of at most {_MOST_DIMENSIONS}")
    return tuple(_integer(each, f"each entry of {what}") for each in value)


def _read_version(value: object) -> None:
    version = _integer(value, "version")
    if not 0 <= version <= 3:
        raise ValueError(f"version {version} is not known: 0 to 3 are")


def _read_layout(entries: dict[Any, Any]) -> Layout:
    shape = _integers(_entry(entries, "shape"), "shape")
    if any(extent < 0 for extent in shape):
        raise ValueError(f"shape {shape} has a negative extent")
    dtype = _read_dtype(_entry(entries, "typestr"), entries.get("descr"))
    dense = Layout(shape, dense_strides(shape, dtype.itemsize), dtype)
    if any(extent > _MOST_BYTES for extent in shape) or dense.nbytes > _MOST_BYTES:
        raise ValueError(f"shape {shape} has more elements than the address space")
    return _with_strides(dense, entries.get("strides"))


def _with_strides(dense: Layout, value: object) -> Layout:
    """Versions 0 and 1 do not say what to do with strides of dense arrays, and some give them."""
    if value is None:
        return dense
    strides = _integers(value, "strides")
    if len(strides) != len(dense.shape):
        raise ValueError(f"{len(strides)} strides do not fit {len(dense.shape)} dimensions")
    if any(abs(stride) > _MOST_BYTES for stride in strides):
        raise ValueError(f"strides {strides} are beyond the address space")
    layout = Layout(dense.shape, strides, dense.dtype)
    return dense if layout.is_contiguous else layout


def _read_dtype(typestr: object, descr: object) -> np.dtype[Any]:
    if not isinstance(typestr, str):
        raise TypeError(f"typestr is a text, got {type(typestr).__name__}")
    if _TYPE.fullmatch(typestr) is None:
        raise ValueError(f"typestr {typestr!r} is none of NumPy's")
    dtype = _dtype(typestr)
    if dtype.kind == "V" and descr is not None:
        dtype = _structured(descr, dtype)
    if dtype.hasobject or not dtype.isnative:
        raise ValueError(f"elements of {dtype} mean nothing on a device")
    if dtype.itemsize == 0:
        raise ValueError(f"elements of {typestr!r} have no bytes")
    return dtype


def _dtype(what: Any) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(what)
    except Exception as error:  # of many classes, by what is wrong
        raise ValueError(f"{what!r} is no type of NumPy's: {error}") from None
    return dtype


def _structured(descr: object, plain: np.dtype[Any]) -> np.dtype[Any]:
    if not isinstance(descr, list) or not all(isinstance(row, tuple) for row in descr):
        raise TypeError("descr is a list of tuples")
    if len(descr) == 1 and descr[0][:1] == ("",):
        return plain
    dtype = _dtype(descr)
    if dtype.itemsize != plain.itemsize:
        raise ValueError(
            f"descr has elements of {dtype.itemsize} bytes, typestr of {plain.itemsize}"
        )
    return dtype


def _read_data(value: object, layout: Layout) -> tuple[int, bool]:
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"data is a pair of an address and a flag, got {type(value).__name__}")
    if len(value) != 2:
        raise ValueError(f"data is a pair of an address and a flag, got {len(value)} entries")
    address = _integer(value[0], "the address in data")
    if not isinstance(value[1], (bool, np.bool_)):
        raise TypeError(f"the flag in data is a bool, got {type(value[1]).__name__}")
    low, high = layout.extent
    if layout.size == 0:
        return 0, bool(value[1])
    if address + low <= 0 or address + high > _TOP or high - low > _MOST_BYTES:
        raise ValueError(f"elements from {address + low} to {address + high} are no memory")
    return address, bool(value[1])
