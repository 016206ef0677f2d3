"""NumPy arrays of the elements of Arrow arrays: without a copy where possible."""

from __future__ import annotations

import decimal
from itertools import pairwise
from typing import Any

import numpy as np

from memrt import _memrt
from memrt._interop.arrow_formats import (
    INLINE_MAX,
    VIEW,
    decimal_type,
    dtype_of,
    widened_dtype,
)
from memrt._interop.arrow_parts import Node
from memrt._policy.policy import Policy

Mask = Any  # a boolean array, or numpy.ma.nomask

_EXACT = decimal.Context(prec=100)
"""Context with more digits than the 77 of Arrow's longest decimals."""


def needs_copy(node: Node) -> bool:
    """Return True if NumPy has no array over the elements without a copy."""
    if node.dictionary is not None:
        return True
    if node.layout.kind == "rows":
        return needs_copy(node.children[0])
    return node.layout.kind != "fixed" or dtype_of(node.format, node.is_bool8) is None


def join(nodes: list[Node], masked: bool, copy: bool | None, policy: Policy | None) -> np.ndarray:
    """Return the elements of one or more chunks."""
    if copy is not None and not copy:
        refuse_copy(nodes[0], len(nodes))
    pairs = list(map(_Values(policy).read, nodes))
    arrays, masks = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    result = arrays[0]
    if len(arrays) > 1 or (copy and not needs_copy(nodes[0])):
        result = _concatenate(arrays, policy)
    return _finish(result, _join_masks(arrays, masks), masked)


def _finish(values: np.ndarray, mask: Mask, masked: bool) -> np.ndarray:
    """Return a masked array, or the values if none is null. BufferError for nulls."""
    if masked:
        return np.ma.MaskedArray(values, mask, copy=False)
    if mask is not np.ma.nomask:
        nulls = np.count_nonzero(_any_field(mask))
        raise BufferError(
            f"{nulls} of {mask.size} elements are null: pass masked=True for a masked array"
        )
    return values


def refuse_copy(node: Node, chunks: int) -> None:
    """Raise BufferError if an array over chunks of the type of `node` needs a copy."""
    if node.layout.kind == "null":
        raise _no_dtype(node)
    if needs_copy(node):
        raise BufferError(
            f"NumPy has no dtype for elements of Arrow's format {describe(node)!r} without a copy: "
            "pass copy=None, or read the parts of memrt.types.Column.chunks(x)"
        )
    if chunks > 1:
        raise BufferError(
            f"elements must be in one chunk for a NumPy array, got {chunks} chunks: pass "
            "copy=None to combine the chunks, or use memrt.types.Column.chunks(x)"
        )


def _no_dtype(node: Node) -> BufferError:
    return BufferError(f"NumPy has no dtype for elements of Arrow's format {node.format!r}")


def describe(node: Node) -> str:
    """Return the format of an array, with the formats of its items and of its dictionary."""
    text = node.format
    if node.dictionary is not None:
        text += f" -> {describe(node.dictionary)}"
    if node.children:
        text += "<" + ", ".join([describe(child) for child in node.children]) + ">"
    return text


def _any_field(mask: np.ndarray) -> np.ndarray:
    """Return True for each element that has a null field."""
    if mask.dtype.names is None:
        return mask
    parts = [_any_field(mask[name]) for name in mask.dtype.names]
    flat = [part.any(axis=tuple(range(mask.ndim, part.ndim))) for part in parts]
    result: np.ndarray = np.logical_or.reduce(flat)
    return result


def _mask_fields(mask: Mask, dtype: np.dtype) -> Mask:
    """Return the mask of elements as a mask of all fields of a structured dtype."""
    if mask is np.ma.nomask or dtype.names is None:
        return mask
    result = np.ma.make_mask_none(mask.shape, dtype)
    result[mask] = np.ones((), result.dtype)
    return result


def _concatenate(arrays: list[np.ndarray], policy: Policy | None) -> np.ndarray:
    shape = (sum([len(array) for array in arrays]), *arrays[0].shape[1:])
    result = _memrt.empty(shape, arrays[0].dtype, policy=policy)
    start = 0
    for array in arrays:
        result[start : start + len(array)] = array
        start += len(array)
    return result


def _join_masks(arrays: list[np.ndarray], masks: list[Mask]) -> Mask:
    if all(mask is np.ma.nomask for mask in masks):
        return np.ma.nomask
    full = [
        np.ma.make_mask_none(array.shape, array.dtype) if mask is np.ma.nomask else mask
        for array, mask in zip(arrays, masks, strict=True)
    ]
    return full[0] if len(full) == 1 else np.concatenate(full)


class _Values:
    """Reader of elements. Copies lie in memory of memrt, of `policy`."""

    def __init__(self, policy: Policy | None) -> None:
        self.policy = policy

    def new(self, shape: Any, dtype: Any) -> np.ndarray:
        return _memrt.empty(shape, dtype, policy=self.policy)

    def read(self, node: Node) -> tuple[np.ndarray, Mask]:
        """Return the elements and their mask."""
        if node.dictionary is not None:
            return self.read_dictionary(node, node.dictionary)
        kind = node.layout.kind
        if kind == "null":
            raise _no_dtype(node)
        mask = node.mask()
        if kind == "rows":
            return self.read_rows(node, mask)
        if kind == "struct":
            return self.read_struct(node, mask)
        if kind == "fixed":
            values = self.read_fixed(node)
            return values, _mask_fields(mask, values.dtype)
        if kind == "bits":
            return self.read_bits(node), mask
        if kind in ("text", "views"):
            return self.read_texts(node, mask), mask
        return self.read_lists(node, mask), mask

    def read_fixed(self, node: Node) -> np.ndarray:
        stored = node.stored()
        widened = widened_dtype(node.format)
        if widened is not None:
            result = self.new(node.length, widened)
            result.view("i8")[...] = stored
            return result
        decimals = decimal_type(node.format)
        if decimals is None:
            return stored
        return self.fill(object, _decimals(_integers(stored).tolist(), decimals.scale))

    def read_bits(self, node: Node) -> np.ndarray:
        result = self.new(node.length, bool)
        first = node.offset % 8
        bits = np.unpackbits(node.bits(1), bitorder="little")
        result[...] = bits[first : first + node.length]
        return result

    def read_texts(self, node: Node, mask: Mask) -> np.ndarray:
        is_text = node.format in ("u", "U", "vu")
        texts: list[Any]
        if node.layout.kind == "views":
            texts = _texts_of_views(node, mask)
        else:
            data, offsets = _text_data(node)
            if is_text and data.isascii():  # twice as fast as to decode each text
                return self.fill(_text_dtype(), _slices(data.decode("ascii"), offsets))
            texts = _slices(data, offsets)
        if mask is not np.ma.nomask:
            texts = [b"" if null else text for text, null in zip(texts, mask, strict=True)]
        return self.fill(_text_dtype(), _decoded(texts)) if is_text else self.fill(object, texts)

    def fill(self, dtype: Any, values: list[Any]) -> np.ndarray:
        result = self.new(len(values), dtype)
        result[:] = values
        return result

    def read_lists(self, node: Node, mask: Mask) -> np.ndarray:
        starts, ends = _list_bounds(node, mask)
        first = int(starts.min()) if len(starts) else 0
        last = int(ends.max(initial=0))
        values, mask = self.read(node.children[0].part(first, last - first))
        if mask is not np.ma.nomask:
            values = np.ma.MaskedArray(values, mask, copy=False)
        result = self.new(node.length, object)
        for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            result[i] = values[start - first : end - first]
        return result

    def read_rows(self, node: Node, mask: Mask) -> tuple[np.ndarray, Mask]:
        count = node.layout.width
        items = node.children[0].part(node.offset * count, node.length * count)
        values, inner = self.read(items)
        shape = (node.length, count, *values.shape[1:])
        values = values.reshape(shape)
        if inner is not np.ma.nomask:
            inner = inner.reshape(shape)
        if mask is not np.ma.nomask:
            outer = np.ma.make_mask_none(shape, values.dtype)
            outer[mask] = np.ones((), outer.dtype)
            inner = outer if inner is np.ma.nomask else np.ma.mask_or(inner, outer)
        return values, inner

    def read_struct(self, node: Node, mask: Mask) -> tuple[np.ndarray, Mask]:
        names = [child.name for child in node.children]
        if not names or len(set(names)) < len(names) or "" in names:
            raise BufferError(
                f"fields of a structured array must have distinct names, got {names!r}: read the "
                "parts of memrt.types.Column.chunks(x)"
            )
        columns = [self.read(child.part(node.offset, node.length)) for child in node.children]
        dtype = np.dtype([
            (name, _field_dtype(values.dtype), values.shape[1:])
            for name, (values, _) in zip(names, columns, strict=True)
        ])  # fmt: skip
        result = self.new(node.length, dtype)
        masks: Any = np.ma.make_mask_none(result.shape, dtype)
        for name, (values, inner) in zip(names, columns, strict=True):
            result[name] = values
            if inner is not np.ma.nomask:
                masks[name] = inner
        if mask is not np.ma.nomask:
            masks[mask] = np.ones((), masks.dtype)
        return result, masks if _any_field(masks).any() else np.ma.nomask

    def read_dictionary(self, node: Node, dictionary: Node) -> tuple[np.ndarray, Mask]:
        mask = node.mask()
        indices = self.read_fixed(node).astype(np.intp)
        if mask is not np.ma.nomask:
            indices[mask] = 0
        values, inner = self.read(dictionary)
        if node.length and not len(values):
            if mask is np.ma.nomask or not mask.all():
                raise BufferError("indices must be below the length of the dictionary, 0")
            return self.new((node.length, *values.shape[1:]), values.dtype), mask
        if node.length and not 0 <= indices.min() <= indices.max() < len(values):
            raise BufferError(
                f"indices must be below the length of the dictionary, {len(values)}, got "
                f"{indices.min()} to {indices.max()}"
            )
        result = self.new((node.length, *values.shape[1:]), values.dtype)
        np.take(values, indices, axis=0, out=result, mode="clip")  # no buffer, unlike "raise"
        if inner is not np.ma.nomask:
            inner = inner[indices]
            mask = np.ma.mask_or(inner, mask) if mask is not np.ma.nomask else inner
        return result, mask


def _text_dtype() -> Any:
    """Return NumPy's dtype for strings of any length: object before NumPy 2."""
    string = getattr(np.dtypes, "StringDType", None)
    return string() if string is not None else np.dtype(object)


def _field_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of a field: NumPy supports no strings of variable width in fields."""
    return np.dtype(object) if dtype.kind == "T" else dtype


def _decimals(integers: list[int], scale: int) -> list[decimal.Decimal]:
    return [_EXACT.scaleb(decimal.Decimal(integer), -scale) for integer in integers]


def _integers(stored: np.ndarray) -> np.ndarray:
    """Return the integers of decimals; objects for more than 64 bits."""
    if stored.ndim == 1:
        return stored
    total = stored[:, -1].view("i8").astype(object)
    for word in reversed(range(stored.shape[1] - 1)):
        total = (total << 64) | stored[:, word].astype(object)
    return total


def _text_data(node: Node) -> tuple[bytes, list[int]]:
    """Return the bytes of all texts, and the offsets of the texts in the bytes."""
    offsets = node.offsets()
    if offsets[0] < 0 or (np.diff(offsets) < 0).any():
        raise BufferError("offsets of texts must ascend from 0")
    first, last = int(offsets[0]), int(offsets[-1])
    data = node.view(2, np.dtype(np.uint8), first, last - first).tobytes()
    return data, (offsets - first).tolist()


def _slices(data: Any, offsets: list[int]) -> list[Any]:
    return [data[start:end] for start, end in pairwise(offsets)]


def _texts_of_views(node: Node, mask: Mask) -> list[bytes]:
    views = node.view(1, VIEW, node.offset, node.length)
    data = [b"" if part is None else part.bytes().tobytes() for part in node.buffers[2:-1]]
    lengths = views["length"] if mask is np.ma.nomask else np.where(mask, 0, views["length"])
    columns = [column.tolist() for column in (lengths, views["buffer"], views["start"])]
    inline = np.ascontiguousarray(views["inline"]).tobytes()
    texts = []
    for i, (length, buffer, start) in enumerate(zip(*columns, strict=True)):
        if 0 <= length <= INLINE_MAX:
            text = inline[i * INLINE_MAX : i * INLINE_MAX + length]
        elif length > 0 and 0 <= buffer < len(data) and start >= 0:
            text = data[buffer][start : start + length]
        else:
            text = b""
        if len(text) != length:
            raise BufferError(f"text must lie inside of its data buffer, got element {i} outside")
        texts.append(text)
    return texts


def _decoded(texts: list[bytes]) -> list[str]:
    try:
        return [text.decode() for text in texts]
    except UnicodeDecodeError as error:
        raise BufferError(f"text must be UTF-8, got {error.object!r}") from None


def _list_bounds(node: Node, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last index of the items of each list."""
    if node.layout.kind == "list views":
        dtype = np.dtype(f"i{node.layout.width}")
        starts = node.view(1, dtype, node.offset, node.length).astype("i8")
        ends = starts + node.view(2, dtype, node.offset, node.length)
        if mask is not np.ma.nomask:
            starts[mask] = ends[mask] = 0
    else:
        offsets = node.offsets().astype("i8")
        starts, ends = offsets[:-1], offsets[1:]
    size = node.children[0].length
    if (starts < 0).any() or (ends < starts).any() or (ends > size).any():
        raise BufferError(f"offsets of lists must ascend from 0 to at most {size} items")
    return starts, ends
