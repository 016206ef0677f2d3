"""Arrow arrays over NumPy arrays: without a copy where possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from memrt import _memrt
from memrt._arrays.creation import array as copied
from memrt._interop.arrow_formats import DAYS, format_of
from memrt._interop.arrow_parts import Node, Part

NULLABLE = 2
"""Bit in the flags of a schema: elements may be null."""

_LARGEST_OFFSET = 2**31 - 1


def encode(array: np.ndarray, name: str, copy: bool | None) -> Node:
    """Return an Arrow array with the elements of a NumPy array.

    `copy`: False to refuse a copy, None to copy where needed, True to copy always.
    """
    if array.ndim == 0:
        raise BufferError("array must have at least one dimension for Arrow, got a scalar")
    kind = array.dtype.kind
    if array.dtype.names is not None:
        return _encode_struct(array, name, copy)
    if array.ndim > 1:
        return _encode_rows(array, name, copy)
    if array.dtype == DAYS:
        return _encode_dates(_to_copy(array, copy), name)
    if kind in "UTO":
        return _encode_objects(_to_copy(array, copy), name)
    return _encode_fixed(array, name, copy)


def struct_of(columns: list[Node], name: str) -> Node:
    """Return an Arrow struct with the given columns."""
    lengths = {node.length for node in columns}
    if len(lengths) > 1:
        raise ValueError(f"columns must have the same length, got {sorted(lengths)}")
    return _node("+s", name, lengths.pop() if lengths else 0, (None,), tuple(columns))


def bitmap_of(mask: Any) -> tuple[_memrt.MemInfo | None, int]:
    """Return Arrow's validity bitmap (bit 1: not null) and the number of nulls.

    The bitmap is None if no element is null.
    """
    nulls = int(np.count_nonzero(mask))
    if nulls == 0:
        return None, 0
    return _memrt.meminfo(copied(np.packbits(~mask, bitorder="little"))), nulls


def part_of(array: np.ndarray) -> Part:
    """Return the memory of a contiguous array."""
    mi = _memrt.meminfo(array)
    return Part(mi, _memrt.address(array) - mi.address if array.size else 0)


def _node(
    format: str,
    name: str,
    length: int,
    buffers: tuple[Part | None, ...],
    children: tuple[Node, ...] = (),
    nulls: int = 0,
    is_bool8: bool = False,
) -> Node:
    flags = NULLABLE if nulls else 0
    return Node(format, name, is_bool8, flags, length, nulls, 0, buffers, children, None)


def _to_copy(array: np.ndarray, copy: bool | None) -> np.ndarray:
    """Return the array, if a copy is allowed."""
    if copy is not None and not copy:
        raise BufferError(
            f"Arrow has no format for elements of dtype {array.dtype!r} without a copy: pass "
            "copy=None to Column()"
        )
    return array


def _encode_fixed(array: np.ndarray, name: str, copy: bool | None) -> Node:
    data = np.ma.getdata(array)
    if copy is None:
        is_ready = data.flags.c_contiguous and data.dtype.isnative and _memrt.is_managed(data)
        copy = not is_ready
    if copy:
        data = copied(data, data.dtype.newbyteorder("="), "C")
    elif not array.flags.c_contiguous:
        raise BufferError("array must have contiguous elements for Arrow: pass copy=None to copy")
    format = format_of(data.dtype)  # first: no MemInfo for memory that Arrow cannot describe
    bitmap, nulls = bitmap_of(np.ma.getmask(array))
    validity = Part(bitmap, 0) if bitmap is not None else None
    buffers = (validity, part_of(data))
    return _node(format, name, len(array), buffers, (), nulls, data.dtype.kind == "b")


def _encode_rows(array: np.ndarray, name: str, copy: bool | None) -> Node:
    if not array.flags.c_contiguous:
        if copy is not None and not copy:
            raise BufferError(
                "array must have contiguous elements for Arrow: pass copy=None to copy"
            )
        array = np.ma.array(array, copy=True, order="C") if _is_masked(array) else array.copy("C")
    node = encode(array.reshape(-1), "item", copy)
    for length, count in zip(
        np.cumprod(array.shape[:-1])[::-1].tolist(), array.shape[:0:-1], strict=True
    ):
        node = _node(f"+w:{count}", "item", length, (None,), (node,))
    return replace(node, name=name)


def _is_masked(array: np.ndarray) -> bool:
    return isinstance(array, np.ma.MaskedArray)


def _encode_struct(array: np.ndarray, name: str, copy: bool | None) -> Node:
    _to_copy(array, copy)
    names = array.dtype.names or ()
    if array.ndim != 1:
        raise BufferError(
            f"array of a structured dtype must have one dimension for Arrow, got {array.ndim}"
        )
    columns = {field: encode(array[field], field, True) for field in names}
    return _node("+s", name, len(array), (None,), tuple(columns.values()))


def _encode_dates(array: np.ndarray, name: str) -> Node:
    days = np.ma.getdata(array).view("i8")
    nat = np.isnat(np.ma.getdata(array))
    mask = np.ma.getmaskarray(array) | nat
    days = np.where(mask, 0, days)
    if len(days) and not -(2**31) <= days.min() <= days.max() < 2**31:
        raise BufferError("dates must be 32-bit numbers of days from 1970 on for Arrow")
    bitmap, nulls = bitmap_of(mask)
    validity = Part(bitmap, 0) if bitmap is not None else None
    return _node("tdD", name, len(days), (validity, part_of(copied(days, "i4"))), (), nulls)


def _encode_objects(array: np.ndarray, name: str) -> Node:
    """Return an array of texts or bytes. None, and a missing value of the dtype, are nulls."""
    values = np.ma.getdata(array).tolist()
    mask = np.ma.getmaskarray(array).tolist()
    missing = getattr(array.dtype, "na_object", None)
    for i, value in enumerate(values):
        if mask[i] or value is None or value is missing:
            mask[i], values[i] = True, None
    kinds = {type(value) for value in values if value is not None} or {str}
    if kinds <= {str, np.str_}:
        return _encode_texts(values, mask, name, "uU", str.encode)
    if kinds <= {bytes, np.bytes_}:
        return _encode_texts(values, mask, name, "zZ", bytes)
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise BufferError(f"objects must all be str, or all be bytes for Arrow, got {found}")


def _encode_texts(
    values: list[Any], mask: list[bool], name: str, formats: str, to_bytes: Callable[[Any], bytes]
) -> Node:
    texts = [b"" if value is None else to_bytes(value) for value in values]
    offsets = np.zeros(len(texts) + 1, "i8")
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    is_large = bool(offsets[-1] > _LARGEST_OFFSET)
    stored = copied(offsets, "i8" if is_large else "i4")
    data = copied(np.frombuffer(b"".join(texts), np.uint8))
    bitmap, nulls = bitmap_of(np.array(mask, bool))
    validity = Part(bitmap, 0) if bitmap is not None else None
    buffers = (validity, part_of(stored), part_of(data))
    return _node(formats[is_large], name, len(texts), buffers, (), nulls)


def with_dictionary(indices: Node, dictionary: Node) -> Node:
    """Return an Arrow dictionary array: each index selects a value of the dictionary."""
    if indices.format not in tuple("cCsSiIlL") or indices.is_bool8:
        raise BufferError(f"indices must be integers, got Arrow's format {indices.format!r}")
    numbers = indices.stored()
    mask = indices.mask()
    valid = numbers if mask is np.ma.nomask else numbers[~mask]
    if len(valid) and not 0 <= valid.min() <= valid.max() < dictionary.length:
        raise BufferError(
            f"indices must be from 0 to below {dictionary.length}, the length of the dictionary, "
            f"got {valid.min()} to {valid.max()}"
        )
    return replace(indices, dictionary=dictionary)


def lists_of(items: Node, offsets: np.ndarray, name: str) -> Node:
    """Return an Arrow list array: ``offsets[i]`` is the first item of list i."""
    formats = {"i4": "+l", "i8": "+L"}
    format = formats.get(offsets.dtype.str[1:]) if offsets.dtype.isnative else None
    if format is None or offsets.ndim != 1 or not offsets.flags.c_contiguous or not len(offsets):
        raise BufferError(
            "offsets must be a contiguous array of one dimension and dtype int32 or int64, with "
            f"at least one element, got {offsets.dtype!r} of shape {offsets.shape}"
        )
    if offsets[0] < 0 or (np.diff(offsets) < 0).any() or offsets[-1] > items.length:
        raise BufferError(f"offsets must ascend from 0 to at most {items.length} items")
    buffers = (None, part_of(offsets))
    return _node(format, name, len(offsets) - 1, buffers, (replace(items, name="item"),))


class ChunkStream:
    """Arrays of the same type that are exported as one stream."""

    __slots__ = ("_chunks",)

    def __init__(self, nodes: list[Node]) -> None:
        if not nodes:
            raise ValueError("columns must not be empty, because a stream has a type")
        self._chunks = tuple([node.exported() for node in nodes])
        types = [_type_of(chunk) for chunk in self._chunks]
        if types.count(types[0]) < len(types):
            raise ValueError(
                f"columns must have the same Arrow type, got {sorted({each[0] for each in types})}"
            )

    def __arrow_c_schema__(self) -> Any:
        return _memrt.export_arrow_parts(self._chunks[0], False)[0]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return _memrt.export_arrow_stream(self._chunks)


def _type_of(exported: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the type of an exported array: format, truth values, fields and dictionary."""
    format, _, is_bool8, *_, children, dictionary = exported
    return (
        format,
        is_bool8,
        tuple([(child[1], _type_of(child)) for child in children]),
        None if dictionary is None else _type_of(dictionary),
    )
