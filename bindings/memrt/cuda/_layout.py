"""Compute where the elements of an array lie, from numbers alone, without access to memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

Numbers = tuple[int, ...]


class Layout(NamedTuple):
    """Positions of array elements, relative to the address of the first element."""

    shape: Numbers
    strides: Numbers
    """Bytes from one element to the next, for each dimension."""
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes. Overlapping elements count separately."""
        return self.size * self.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are in C order without gaps.

        The strides of dimensions with extent 1, and of empty arrays, are ignored.
        """
        return self.size == 0 or all(
            extent == 1 or stride == dense
            for extent, stride, dense in zip(
                self.shape,
                self.strides,
                dense_strides(self.shape, self.dtype.itemsize),
                strict=True,
            )
        )

    @property
    def extent(self) -> tuple[int, int]:
        """Byte range of the elements: first byte and byte after the last.

        Both are relative to the address of the first element, and 0 for an empty array.
        """
        if self.size == 0:
            return 0, 0
        reaches = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        low = sum(reach for reach in reaches if reach < 0)
        high = sum(reach for reach in reaches if reach > 0)
        return low, high + self.dtype.itemsize

    def view(self, index: Any) -> tuple[int, Layout]:
        """Return the position and layout of the view ``array[index]``.

        The position is the distance in bytes from the array's to the view's first element. An index
        has integers, slices, ``...``, None, or is the name of a field.

        Raises
        ------
        IndexError
            NumPy would raise IndexError, or the index has any other type.
        """
        base = np.empty(1, self.dtype)
        shadow = np.lib.stride_tricks.as_strided(base, self.shape, self.strides)
        view = shadow[_without_scalars(index)]  # the view is never read
        return view.ctypes.data - base.ctypes.data, Layout(view.shape, view.strides, view.dtype)

    def runs(self) -> Iterator[tuple[int, Numbers]]:
        """Iterate over the contiguous pieces of the array.

        Yields the distance of a piece from the first element in bytes, and the index of the piece
        in the outer dimensions.
        """
        inner = self.dtype.itemsize
        outer = len(self.shape)
        while outer > 0 and (self.shape[outer - 1] == 1 or self.strides[outer - 1] == inner):
            outer -= 1
            inner *= self.shape[outer]
        for index in np.ndindex(self.shape[:outer]):
            distance = sum(i * s for i, s in zip(index, self.strides[:outer], strict=True))
            yield distance, index


def dense_strides(shape: Numbers, itemsize: int) -> Numbers:
    """Return the strides of C order without gaps, in bytes."""
    strides = [itemsize]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * max(extent, 1))
    return tuple(reversed(strides)) if shape else ()


def _without_scalars(index: Any) -> Any:
    """Verify an index and extend it so that NumPy returns a view, never a scalar.

    Raises
    ------
    IndexError
        A part of the index has an unsupported type.
    """
    if isinstance(index, str):
        return index
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        is_number = isinstance(part, (int, np.integer)) and not isinstance(part, bool)
        if not (is_number or part is None or part is Ellipsis or isinstance(part, slice)):
            raise IndexError(
                "index must be a field name, or integers, slices, `...` and None, got "
                f"{type(part).__name__}"
            )
    return parts if any(part is Ellipsis for part in parts) else (*parts, ...)
