"""Read, verify and write dictionaries of the CUDA Array Interface.

The functions read versions 0 to 3 of any producer, and write version 3.

The rules follow the description of the interface at
https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from memrt.cuda._layout import Layout, Numbers, dense_strides
from memrt.cuda._stream import NONE, checked_handle

_TYPE = re.compile(r"[<>|=][tbiufcmMOSUV][0-9]{1,18}(\[[0-9a-zA-Z/]{1,24}\])?")
_TOP = 2**64  # addresses are below this number
_MOST_BYTES = 2**63 - 1
_MOST_DIMENSIONS = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32


class Interface(NamedTuple):
    """Verified contents of a dictionary."""

    layout: Layout
    address: int
    """Address of the first element; 0 for arrays without elements."""
    readonly: bool
    stream: int
    """Handle of the stream; 0: no stream."""


def interface_of(
    layout: Layout, address: int, readonly: bool, stream: int | None
) -> dict[str, Any]:
    """Return a dictionary of version 3; without a stream if `stream` is None."""
    entries: dict[str, Any] = {
        "shape": layout.shape,
        "typestr": layout.dtype.str,
        "data": (address, readonly),
        "version": 3,
        "strides": None if layout.is_contiguous else layout.strides,
    }
    if layout.dtype.names is not None:
        entries["descr"] = layout.dtype.descr
    if stream is not None:
        entries["stream"] = stream
    return entries


def read_interface(producer: object) -> Interface:
    """Read and verify an object's ``__cuda_array_interface__``.

    Raises
    ------
    TypeError
        The attribute is missing, or an entry has the wrong type.
    ValueError
        An entry is missing or invalid.
    NotImplementedError
        The producer has a mask.
    """
    try:
        entries = producer.__cuda_array_interface__  # type: ignore[attr-defined]
    except AttributeError:
        kind = type(producer).__name__
        raise TypeError(f"{kind} has no __cuda_array_interface__") from None
    if not isinstance(entries, dict):
        raise TypeError(f"__cuda_array_interface__ must be a dict, got {type(entries).__name__}")
    _read_version(_entry(entries, "version"))
    if entries.get("mask") is not None:
        raise NotImplementedError("mask must be None: fill the masked elements before the import")
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
        raise TypeError(f"{what} must be an integer, got {type(value).__name__}")
    return int(value)


def _integers(value: object, what: str) -> Numbers:
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{what} must be a tuple of integers, got {type(value).__name__}")
    if len(value) > _MOST_DIMENSIONS:
        raise ValueError(
            f"{what} must have at most {_MOST_DIMENSIONS} dimensions, got {len(value)}"
        )
    return tuple(_integer(each, f"each entry of {what}") for each in value)


def _read_version(value: object) -> None:
    version = _integer(value, "version")
    if not 0 <= version <= 3:
        raise ValueError(f"version must be from 0 to 3, got {version}")


def _read_layout(entries: dict[Any, Any]) -> Layout:
    shape = _integers(_entry(entries, "shape"), "shape")
    if any(extent < 0 for extent in shape):
        raise ValueError(f"shape must have no negative extent, got {shape}")
    dtype = _read_dtype(_entry(entries, "typestr"), entries.get("descr"))
    dense = Layout(shape, dense_strides(shape, dtype.itemsize), dtype)
    if any(extent > _MOST_BYTES for extent in shape) or dense.nbytes > _MOST_BYTES:
        raise ValueError(f"shape must fit in the address space, got {shape}")
    return _with_strides(dense, entries.get("strides"))


def _with_strides(dense: Layout, value: object) -> Layout:
    """Return the layout with the given strides, or `dense` if the strides mean the same layout.

    Versions 0 and 1 leave open whether contiguous arrays have strides; some producers give strides.
    """
    if value is None:
        return dense
    strides = _integers(value, "strides")
    if len(strides) != len(dense.shape):
        raise ValueError(
            f"strides must have {len(dense.shape)} entries, as many as shape, got {len(strides)}"
        )
    if any(abs(stride) > _MOST_BYTES for stride in strides):
        raise ValueError(f"strides must fit in the address space, got {strides}")
    layout = Layout(dense.shape, strides, dense.dtype)
    return dense if layout.is_contiguous else layout


def _read_dtype(typestr: object, descr: object) -> np.dtype[Any]:
    if not isinstance(typestr, str):
        raise TypeError(f"typestr must be a text, got {type(typestr).__name__}")
    if _TYPE.fullmatch(typestr) is None:
        raise ValueError(f"typestr must be a type string of NumPy, got {typestr!r}")
    dtype = _dtype(typestr)
    if dtype.kind == "V" and descr is not None:
        dtype = _structured(descr, dtype)
    if dtype.hasobject or not dtype.isnative:
        raise ValueError(f"dtype must have native byte order and no Python objects, got {dtype}")
    if dtype.itemsize == 0:
        raise ValueError(f"typestr must have elements of 1 byte or more, got {typestr!r}")
    return dtype


def _dtype(what: Any) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(what)
    except Exception as error:  # NumPy raises different classes for different errors
        raise ValueError(f"{what!r} is not a dtype of NumPy: {error}") from None
    return dtype


def _structured(descr: object, plain: np.dtype[Any]) -> np.dtype[Any]:
    if not isinstance(descr, list) or not all(isinstance(row, tuple) for row in descr):
        raise TypeError("descr must be a list of tuples")
    if len(descr) == 1 and descr[0][:1] == ("",):
        return plain
    dtype = _dtype(descr)
    if dtype.itemsize != plain.itemsize:
        raise ValueError(
            f"descr must have {plain.itemsize} bytes per element, as typestr, got {dtype.itemsize}"
        )
    return dtype


def _read_data(value: object, layout: Layout) -> tuple[int, bool]:
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"data must be a pair of an address and a flag, got {type(value).__name__}")
    if len(value) != 2:
        raise ValueError(f"data must be a pair of an address and a flag, got {len(value)} entries")
    address = _integer(value[0], "address in data")
    if not isinstance(value[1], (bool, np.bool_)):
        raise TypeError(f"flag in data must be a bool, got {type(value[1]).__name__}")
    low, high = layout.extent
    if layout.size == 0:
        return 0, bool(value[1])
    if address + low <= 0 or address + high > _TOP or high - low > _MOST_BYTES:
        raise ValueError(
            f"elements must be in the address space, got {address + low} to {address + high}"
        )
    return address, bool(value[1])
