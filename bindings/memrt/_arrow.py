"""Columns: arrays as libraries that speak Arrow hand them to each other."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from memrt import _memrt
from memrt._arrays import array as copied
from memrt._policy import Policy

_UNITS = ("s", "ms", "us", "ns")

_FORMATS = {
    **dict(zip("i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8".split(), "cCsSiIlLefg", strict=True)),
    "b1": "c",
    **{f"M8[{unit}]": f"ts{unit[0]}:" for unit in _UNITS},
    **{f"m8[{unit}]": f"tD{unit[0]}" for unit in _UNITS},
}
"""By the name of a dtype, without its byte order, what Arrow calls such elements."""

_DTYPES = {
    **{format: name for name, format in _FORMATS.items() if name != "b1"},
    "tdm": "M8[ms]",
    "ttu": "m8[us]",
    "ttn": "m8[ns]",
}


def _format_of(dtype: np.dtype) -> str:
    if not dtype.isnative:
        raise BufferError(f"Arrow has only the byte order of the machine, not that of {dtype!r}")
    if dtype.kind in "SV" and dtype.names is None and dtype.itemsize > 0:
        return f"w:{dtype.itemsize}"
    format = _FORMATS.get(dtype.str[1:])
    if format is None:
        raise BufferError(f"Arrow has no elements of dtype {dtype!r}")
    return format


@lru_cache(maxsize=64)
def _dtype_of(format: str, is_bool8: bool) -> np.dtype:
    if is_bool8:
        return np.dtype(bool)
    if format.startswith("w:"):
        return np.dtype(f"V{format[2:]}")
    zoneless = format[:4] if format.startswith("ts") else format
    name = _DTYPES.get(zoneless)
    if name is None:
        raise BufferError(f"NumPy has no elements like those of Arrow's format {format!r}")
    return np.dtype(name)


class Column:
    """An array whose memory memrt manages, as libraries that speak Arrow take it.

    Hand the Column to a library that takes objects with ``__arrow_c_array__``: ``pyarrow.array``,
    ``nanoarrow.Array``, ``polars.Series`` and others. What that library then holds is shown by
    :func:`memrt.holders` until it is given back. Nobody may write to the array as long. The Column
    stays as it is when the array is resized or gets another mask.

    Args:
        array: a numpy.ndarray of one dimension whose elements lie without gaps. The masked elements
            of a numpy.ma.MaskedArray are null.
        name: of the column.

    Raises:
        TypeError: when it is no array.
        ValueError: when its memory is not memrt's; adopt() takes such memory over.
        BufferError: for a dtype, byte order, shape or strides that Arrow has not.
    """

    __slots__ = ("_array", "_length", "_name", "_view")

    def __init__(self, array: np.ndarray, name: str = "") -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"Column() takes a numpy.ndarray, got {type(array).__name__}")
        if array.ndim != 1 or not array.flags.c_contiguous:
            raise BufferError("Arrow has arrays of one dimension alone, without gaps")
        format, is_bool = _format_of(array.dtype), array.dtype.kind == "b"
        self._array, self._length, self._name = array, len(array), str(name)
        mi = _memrt.meminfo(array)
        offset = _memrt.address(array) - mi.data if array.size else 0
        bitmap, nulls = _nulls_of(array)
        self._view = (mi, offset, format, self._length, is_bool, self._name, bitmap, nulls)

    @property
    def array(self) -> np.ndarray:
        """The array itself."""
        return self._array

    @property
    def name(self) -> str:
        """Name of the column."""
        return self._name

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"<memrt.Column of {len(self)} {self._array.dtype.name}>"

    def __arrow_c_schema__(self) -> Any:
        """What the elements are: a capsule "arrow_schema"."""
        return self._export(False)[0]

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """The elements: capsules "arrow_schema" and "arrow_array".

        No others are made of them, whatever schema is requested.
        """
        return self._export(False)

    def __arrow_c_device_array__(
        self, requested_schema: Any = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        """The elements, and that they are on the CPU: "arrow_schema" and "arrow_device_array".

        Raises:
            NotImplementedError: for keywords that are not None, as Arrow asks for.
        """
        for name in kwargs:  # items() crashes CPython 3.11 where it has no memory
            if kwargs[name] is not None:
                raise NotImplementedError(
                    f"__arrow_c_device_array__() does not know the keyword {name!r}"
                )
        return self._export(True)

    def _export(self, device: bool) -> tuple[Any, Any]:
        return _memrt.export_arrow(self._view, device)


def _nulls_of(array: np.ndarray) -> tuple[_memrt.MemInfo | None, int]:
    """The bitmap that says of each element whether it is not null, and how many are."""
    mask = np.ma.getmask(array)
    nulls = int(np.count_nonzero(mask))
    if nulls == 0:
        return None, 0
    return _memrt.meminfo(copied(np.packbits(~mask, bitorder="little"))), nulls


def from_arrow(x: Any, /, *, masked: bool = False, policy: Policy | None = None) -> np.ndarray:
    """A read-only array over the memory of another library's Arrow array, on memrt's books.

    The memory is that of the other library, without a copy. A MemInfo of kind 'adopted', which
    :func:`memrt.meminfo` gives, holds it; with the last reference the library gets it back, at once
    where the GIL is held, soon on the main thread otherwise, never after Python has ended.

    Args:
        x: an object with ``__arrow_c_array__``, ``__arrow_c_device_array__`` or
            ``__arrow_c_stream__``, in memory that the CPU reads and in one chunk.
        masked: True for a numpy.ma.MaskedArray, in which nulls are masked.
        policy: whose account it goes on; None as in :func:`memrt.empty`.

    Raises:
        BufferError: when elements have no dtype, are on another device, in several chunks, or null
            without `masked`, and when the array is not sound.
        TypeError: when `x` has none of these methods.
        ValueError: when what it returns are no capsules of Arrow's.
        MemoryError: in all cases the library has got its array back.
    """
    schema, exported = _ask(x)
    mi, format, length, is_bool8, nulls, first_bit, bitmap = _memrt.take_arrow(
        schema, exported, policy
    )
    result = _memrt.as_array(mi, length, _dtype_of(format, is_bool8))
    if masked:
        return np.ma.MaskedArray(result, _mask_of(bitmap, first_bit, length), copy=False)
    if nulls:
        raise BufferError(f"{nulls} of {length} elements are null: masked=True tells which")
    return result


def _ask(x: Any) -> tuple[Any, Any]:
    """The capsules of `x`."""
    for method in ("__arrow_c_array__", "__arrow_c_device_array__"):
        export = getattr(x, method, None)
        if export is not None:
            capsules = export()
            if not isinstance(capsules, tuple) or len(capsules) != 2:
                raise ValueError(f"{method}() has to return two capsules, got {capsules!r}")
            return capsules
    stream = getattr(x, "__arrow_c_stream__", None)
    if stream is not None:
        return _memrt.array_of_stream(stream())
    raise TypeError(f"{type(x).__name__} has no __arrow_c_array__: it is no array of Arrow's")


def _mask_of(bitmap: bytes | None, first_bit: int, length: int) -> np.ndarray | np.bool_:
    if bitmap is None:
        return np.ma.nomask
    valid = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    return np.asarray(valid[first_bit : first_bit + length] == 0)
