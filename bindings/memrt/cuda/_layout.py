"""Where the elements of an array lie, by numbers alone: nothing here touches memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

Numbers = tuple[int, ...]


class Layout(NamedTuple):
    """An array's elements: the first at some address, the others by strides from it."""

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
        """Bytes of all elements; those that lie upon each other count each."""
        return self.size * self.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether they lie in C order without a gap; extents of 0 and 1 have any stride."""
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
        """The bytes that they lie in, from the first element's address: first, and after the last.

        Both are 0 where there are none.
        """
        if self.size == 0:
            return 0, 0
        reaches = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        low = sum(reach for reach in reaches if reach < 0)
        high = sum(reach for reach in reaches if reach > 0)
        return low, high + self.dtype.itemsize

    def view(self, index: Any) -> tuple[int, Layout]:
        """What ``array[index]`` is for integers, slices, ``...``, None and names of fields: bytes
        from the first element to that of the view, and its layout.

        Raises:
            IndexError: as NumPy does, and for any other index.
        """
        base = np.empty(1, self.dtype)
        shadow = np.lib.stride_tricks.as_strided(base, self.shape, self.strides)
        view = shadow[_without_scalars(index)]  # which is never read
        return view.ctypes.data - base.ctypes.data, Layout(view.shape, view.strides, view.dtype)

    def runs(self) -> Iterator[tuple[int, Numbers]]:
        """The bytes in pieces without a gap: each one's distance from the first element, and its
        index in the first dimensions."""
        inner = self.dtype.itemsize
        outer = len(self.shape)
        while outer > 0 and (self.shape[outer - 1] == 1 or self.strides[outer - 1] == inner):
            outer -= 1
            inner *= self.shape[outer]
        for index in np.ndindex(self.shape[:outer]):
            distance = sum(i * s for i, s in zip(index, self.strides[:outer], strict=True))
            yield distance, index


def dense_strides(shape: Numbers, itemsize: int) -> Numbers:
    """Strides of C order without a gap, in bytes."""
    strides = [itemsize]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * max(extent, 1))
    return tuple(reversed(strides)) if shape else ()


def _without_scalars(index: Any) -> Any:
    """An index that gives a view for sure."""
    if isinstance(index, str):
        return index
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        is_number = isinstance(part, (int, np.integer)) and not isinstance(part, bool)
        if not (is_number or part is None or part is Ellipsis or isinstance(part, slice)):
            raise IndexError(
                "an array of CUDA takes integers, slices, `...`, None and names of fields, got "
                f"{type(part).__name__}"
            )
    return parts if any(part is Ellipsis for part in parts) else (*parts, ...)
