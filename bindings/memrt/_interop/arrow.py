"""Exchange arrays with Arrow libraries: Column exports an array, from_arrow imports an array."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from memrt import _memrt
from memrt._arrays.creation import array as copied
from memrt._policy.policy import Policy
from memrt._support.public import public

_UNITS = ("s", "ms", "us", "ns")

_FORMATS = {
    **dict(zip("i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8".split(), "cCsSiIlLefg", strict=True)),
    "b1": "c",
    **{f"M8[{unit}]": f"ts{unit[0]}:" for unit in _UNITS},
    **{f"m8[{unit}]": f"tD{unit[0]}" for unit in _UNITS},
}
"""Arrow's format of the elements, by the name of a dtype without the byte order."""

_DTYPES = {
    **{format: name for name, format in _FORMATS.items() if name != "b1"},
    "tdm": "M8[ms]",
    "ttu": "m8[us]",
    "ttn": "m8[ns]",
}


def _format_of(dtype: np.dtype) -> str:
    if not dtype.isnative:
        raise BufferError(f"dtype must have the byte order of the machine for Arrow, got {dtype!r}")
    if dtype.kind in "SV" and dtype.names is None and dtype.itemsize > 0:
        return f"w:{dtype.itemsize}"
    format = _FORMATS.get(dtype.str[1:])
    if format is None:
        raise BufferError(f"Arrow has no format for elements of dtype {dtype!r}")
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
        raise BufferError(f"NumPy has no dtype for elements of Arrow's format {format!r}")
    return np.dtype(name)


@public("memrt.types")
class Column:
    """Export of an array in memory of memrt to libraries that support Arrow.

    Pass the Column to a library that accepts objects with ``__arrow_c_array__``, such as
    ``pyarrow.array``, ``nanoarrow.Array`` or ``polars.Series``. :func:`memrt.holders` lists the
    references of the library until the library releases the references. No code may write to the
    array until then. The Column keeps the present layout and mask of the array.

    Parameters
    ----------
    array : numpy.ndarray
        Array of one dimension with contiguous elements. Masked elements of a
        numpy.ma.MaskedArray become nulls.
    name : str, default ''
        Name of the column.

    Raises
    ------
    TypeError
        `array` is not an array.
    ValueError
        memrt does not manage the memory. :func:`memrt.adopt` puts such memory under memrt.
    BufferError
        Arrow does not support the dtype, byte order, shape or strides.
    MemoryError
        The allocation of the bitmap of a masked array failed.

    Examples
    --------
    >>> import memrt
    >>> column = memrt.types.Column(memrt.array([1.5, 2.5]), "price")
    >>> column, len(column), column.name
    (<memrt.types.Column of 2 float64>, 2, 'price')
    >>> memrt.from_arrow(column)
    array([1.5, 2.5])
    """

    __slots__ = ("_array", "_length", "_name", "_view")

    def __init__(self, array: np.ndarray, name: str = "") -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(
                f"Column() argument 'array' must be a numpy.ndarray, got {type(array).__name__}"
            )
        if array.ndim != 1 or not array.flags.c_contiguous:
            raise BufferError("array must have one dimension and contiguous elements for Arrow")
        format, is_bool = _format_of(array.dtype), array.dtype.kind == "b"
        self._array, self._length, self._name = array, len(array), str(name)
        mi = _memrt.meminfo(array)
        offset = _memrt.address(array) - mi.address if array.size else 0
        bitmap, nulls = _nulls_of(array)
        self._view = (mi, offset, format, self._length, is_bool, self._name, bitmap, nulls)

    @property
    def array(self) -> np.ndarray:
        """Exported array."""
        return self._array

    @property
    def name(self) -> str:
        """Name of the column."""
        return self._name

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"<memrt.types.Column of {len(self)} {self._array.dtype.name}>"

    def __arrow_c_schema__(self) -> Any:
        """Return the type of the elements.

        Returns
        -------
        PyCapsule
            Capsule 'arrow_schema'.
        """
        return self._export(False)[0]

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """Return the type and the elements.

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            Without effect: the elements are never converted.

        Returns
        -------
        tuple of PyCapsule
            Capsules 'arrow_schema' and 'arrow_array'.
        """
        return self._export(False)

    def __arrow_c_device_array__(
        self, requested_schema: Any = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        """Return the type and the elements, with the device: the CPU.

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            Without effect: the elements are never converted.
        **kwargs : None
            Further keywords of Arrow's protocol. Only None is supported.

        Returns
        -------
        tuple of PyCapsule
            Capsules 'arrow_schema' and 'arrow_device_array'.

        Raises
        ------
        NotImplementedError
            A keyword is not None, as Arrow's specification requires.
        """
        for name in kwargs:  # kwargs.items() crashes CPython 3.11 when out of memory
            if kwargs[name] is not None:
                raise NotImplementedError(
                    f"__arrow_c_device_array__() does not support the keyword {name!r}"
                )
        return self._export(True)

    def _export(self, device: bool) -> tuple[Any, Any]:
        return _memrt.export_arrow(self._view, device)


def _nulls_of(array: np.ndarray) -> tuple[_memrt.MemInfo | None, int]:
    """Return Arrow's validity bitmap (bit 1: not null) and the number of nulls.

    The bitmap is None if no element is null.
    """
    mask = np.ma.getmask(array)
    nulls = int(np.count_nonzero(mask))
    if nulls == 0:
        return None, 0
    return _memrt.meminfo(copied(np.packbits(~mask, bitorder="little"))), nulls


@public("memrt")
def from_arrow(x: Any, /, *, masked: bool = False, policy: Policy | None = None) -> np.ndarray:
    """Import an Arrow array of another library as a read-only array, without a copy.

    Parameters
    ----------
    x : object
        Arrow array: an object with ``__arrow_c_array__``, ``__arrow_c_device_array__`` or
        ``__arrow_c_stream__``, in memory that the CPU can read and in one chunk.
    masked : bool, default False
        True: return a numpy.ma.MaskedArray, in which nulls are masked.
    policy : Policy, optional
        Policy that accounts for the memory. None: the policy in force in this context, else the
        default policy.

    Returns
    -------
    numpy.ndarray
        Read-only array over the memory of the other library.

    Raises
    ------
    BufferError
        The elements have no dtype, are on another device, in several chunks, or null without
        `masked`; or the array is malformed.
    TypeError
        `x` has none of the three methods.
    ValueError
        A method of `x` does not return Arrow capsules.
    MemoryError
        The allocation of the MemInfo or the array failed.

    Notes
    -----
    Ownership: a MemInfo of kind 'adopted' holds the memory; :func:`memrt.meminfo` returns the
    MemInfo. The last release gives the Arrow array back to the library. After an exception the
    library has the array back, too.

    Threads: the library gets the array at once if the releasing thread holds the GIL, otherwise
    soon, on the main thread. After the end of Python the array is never given back.

    Examples
    --------
    >>> import memrt
    >>> theirs = memrt.types.Column(memrt.array([1, 2, 3]))  # stands for an array of pyarrow
    >>> ours = memrt.from_arrow(theirs)
    >>> ours, ours.flags.writeable
    (array([1, 2, 3]), False)
    """
    schema, exported = _request_capsules(x)
    mi, format, length, is_bool8, nulls, first_bit, bitmap = _memrt.take_arrow(
        schema, exported, policy
    )
    result = _memrt.as_array(mi, length, _dtype_of(format, is_bool8))
    if masked:
        return np.ma.MaskedArray(result, _mask_of(bitmap, first_bit, length), copy=False)
    if nulls:
        raise BufferError(
            f"{nulls} of {length} elements are null: pass masked=True for a masked array"
        )
    return result


def _request_capsules(x: Any) -> tuple[Any, Any]:
    """Return the schema and array capsules that `x` exports."""
    for method in ("__arrow_c_array__", "__arrow_c_device_array__"):
        export = getattr(x, method, None)
        if export is not None:
            capsules = export()
            if not isinstance(capsules, tuple) or len(capsules) != 2:
                raise ValueError(f"{method}() must return two capsules, got {capsules!r}")
            return capsules
    stream = getattr(x, "__arrow_c_stream__", None)
    if stream is not None:
        return _memrt.array_of_stream(stream())
    raise TypeError(f"x must be an Arrow array with __arrow_c_array__, got {type(x).__name__}")


def _mask_of(bitmap: bytes | None, first_bit: int, length: int) -> np.ndarray | np.bool_:
    if bitmap is None:
        return np.ma.nomask
    valid = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    return np.asarray(valid[first_bit : first_bit + length] == 0)
