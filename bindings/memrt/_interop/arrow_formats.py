"""Arrow's formats: the dtypes of elements, and the buffers of arrays."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

_UNITS = ("s", "ms", "us", "ns")

_FORMATS = {
    **dict(zip("i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8".split(), "cCsSiIlLefg", strict=True)),
    "b1": "c",
    **{f"M8[{unit}]": f"ts{unit[0]}:" for unit in _UNITS},
    **{f"m8[{unit}]": f"tD{unit[0]}" for unit in _UNITS},
}
"""Arrow's format of the elements, by the name of a dtype without the byte order."""

_DTYPES: dict[str, object] = {
    **{format: name for name, format in _FORMATS.items() if name != "b1"},
    "tdm": "M8[ms]",
    "ttu": "m8[us]",
    "ttn": "m8[ns]",
    "tiD": [("days", "i4"), ("milliseconds", "i4")],
    "tin": [("months", "i4"), ("days", "i4"), ("nanoseconds", "i8")],
}
"""Dtype of the elements without a copy, by Arrow's format."""

_WIDENED = {"tdD": "M8[D]", "tts": "m8[s]", "ttm": "m8[ms]", "tiM": "m8[M]"}
"""Dtype of a copy of elements that are 32-bit numbers in Arrow, by Arrow's format."""

DAYS = np.dtype("M8[D]")

VIEW = np.dtype({
    "names": ["length", "inline", "buffer", "start"],
    "formats": ["i4", "V12", "i4", "i4"],
    "offsets": [0, 4, 8, 12],
    "itemsize": 16,
})  # fmt: skip
"""Element of a text view: the text is inline up to 12 bytes, else lies in a data buffer."""

INLINE_MAX = 12
"""Bytes of the longest text that lies inside of a text view."""


class Layout(NamedTuple):
    """Buffers of the arrays of a format."""

    kind: str
    """'fixed', 'bits', 'text', 'views', 'list', 'list views', 'rows', 'struct' or 'null'."""
    buffers: int
    """Number of buffers. Arrays of views may have more."""
    width: int = 0
    """Bytes of an element or of an offset, or the number of items of each row."""
    children: int | None = 0
    """Number of children. None: any number."""


_LAYOUTS = {
    "n": Layout("null", 0),
    "b": Layout("bits", 2),
    "u": Layout("text", 3, 4),
    "z": Layout("text", 3, 4),
    "U": Layout("text", 3, 8),
    "Z": Layout("text", 3, 8),
    "vu": Layout("views", 3, 16),
    "vz": Layout("views", 3, 16),
    "+l": Layout("list", 2, 4, 1),
    "+m": Layout("list", 2, 4, 1),
    "+L": Layout("list", 2, 8, 1),
    "+vl": Layout("list views", 3, 4, 1),
    "+vL": Layout("list views", 3, 8, 1),
    "+s": Layout("struct", 1, 0, None),
}


@lru_cache(maxsize=256)
def layout_of(format: str) -> Layout:
    """Return the layout of the arrays of a format. BufferError for an unsupported format."""
    layout = _LAYOUTS.get(format)
    if layout is not None:
        return layout
    if format.startswith("+w:") and format[3:].isdecimal():
        return Layout("rows", 1, int(format[3:]), 1)
    width = stored_dtype(format, False)
    if width is None:
        raise BufferError(
            f"Arrow format must be a known format without unions and run ends, got {format!r}"
        )
    return Layout("fixed", 2, width.itemsize)


def format_of(dtype: np.dtype) -> str:
    """Return the format of arrays of a dtype. BufferError for a dtype that needs a copy."""
    if not dtype.isnative:
        raise BufferError(f"dtype must have the byte order of the machine for Arrow, got {dtype!r}")
    if dtype.kind in "SV" and dtype.names is None and dtype.itemsize > 0:
        return f"w:{dtype.itemsize}"
    format = _FORMATS.get(dtype.str[1:])
    if format is None:
        raise BufferError(f"Arrow has no format for elements of dtype {dtype!r}")
    return format


def plain_format(array: np.ndarray) -> str | None:
    """Return the format of an array that Arrow describes as one buffer; None for other arrays."""
    dtype = array.dtype
    if array.ndim != 1 or not array.flags.c_contiguous or not dtype.isnative:
        return None
    format = _FORMATS.get(dtype.str[1:])
    if format is None and dtype.kind in "SV" and dtype.names is None and dtype.itemsize > 0:
        format = f"w:{dtype.itemsize}"
    return format


@lru_cache(maxsize=256)
def dtype_of(format: str, is_bool8: bool) -> np.dtype | None:
    """Return the dtype of the elements without a copy, or None if elements need a copy."""
    if is_bool8:
        return np.dtype(bool)
    if format.startswith("w:"):
        return np.dtype(f"V{format[2:]}") if format[2:].isdecimal() and int(format[2:]) else None
    known = _DTYPES.get(format[:4] if format.startswith("ts") else format)
    return np.dtype(known) if known is not None else None  # type: ignore[call-overload]


def widened_dtype(format: str) -> np.dtype | None:
    """Return the dtype of a copy of 32-bit dates, times or months; None for other formats."""
    name = _WIDENED.get(format)
    return np.dtype(name) if name is not None else None


class DecimalType(NamedTuple):
    """Parameters of decimals: the number is an integer times ten to the power of ``-scale``."""

    precision: int
    scale: int
    bits: int


@lru_cache(maxsize=64)
def decimal_type(format: str) -> DecimalType | None:
    """Return the parameters of a decimal format; None for other formats."""
    texts = format[2:].split(",") if format.startswith("d:") else []
    if not 2 <= len(texts) <= 3 or not all(text.lstrip("-").isdecimal() for text in texts):
        return None
    found = DecimalType(*(int(text) for text in [*texts, "128"][:3]))
    return found if found.bits in (32, 64, 128, 256) and found.precision > 0 else None


@lru_cache(maxsize=256)
def stored_dtype(format: str, is_bool8: bool) -> np.dtype | None:
    """Return the dtype of the numbers that an array of a fixed-width format stores, without a copy.

    Decimals of 128 and 256 bits are words of 64 bits, lowest first. None: not a fixed-width format.
    """
    decimals = decimal_type(format)
    if decimals is not None:
        words = decimals.bits // 64
        return np.dtype(("u8", (words,))) if words > 1 else np.dtype(f"i{decimals.bits // 8}")
    return np.dtype("i4") if format in _WIDENED else dtype_of(format, is_bool8)
