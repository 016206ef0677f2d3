"""Making arrays in memory that memrt manages, and taking over those of others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from memrt import _memrt
from memrt._policy import Policy

Shape = int | tuple[int, ...]


def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    policy: Policy | None = None,
    align: int | None = None,
) -> np.ndarray:
    """New array filled with `fill_value`, whose dtype it takes when `dtype` is None.

    For the rest like :func:`memrt.empty`.
    """
    value = np.asarray(fill_value, dtype=dtype)
    result = _memrt.empty(shape, value.dtype, order, policy=policy, align=align)
    np.copyto(result, value, casting="unsafe")
    return result


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    order: str = "K",
    *,
    policy: Policy | None = None,
    align: int | None = None,
) -> np.ndarray:
    """New array with the contents of `object`; always a copy, always a plain ndarray.

    Args:
        object: anything that ``numpy.asarray`` takes.
        dtype: None for the one that NumPy finds.
        order: "C", "F", or "K" to keep a Fortran order that is there.
        policy, align: as in :func:`memrt.empty`.
    """
    source = np.asarray(object, dtype=dtype)
    if order in ("K", "A"):
        order = "F" if source.flags.fnc else "C"
    result = _memrt.empty(source.shape, source.dtype, order, policy=policy, align=align)
    result[...] = source
    return result


def adopt(
    array: np.ndarray,
    copy: bool | None = None,
    *,
    policy: Policy | None = None,
) -> np.ndarray:
    """Put the memory of an array under memrt, without a copy where that can be.

    - Managed already: returned as it is.
    - It, or the array it is a view of, owns its data: ownership moves to a MemInfo, which becomes
      the base. Data without a handler (set up by C code over ``malloc``) goes back through the C
      library's ``free``, other data through the handler that made it. The same array is returned;
      it can no longer be resized.
    - Memory that is borrowed from something else (bytes, mmap, pickles, another library), and
      dtypes with references, which NumPy itself has to clear: an aligned copy, a plain ndarray.

    A read-only array stays read-only.

    Args:
        array: the array.
        copy: None: where needed. False: never. True: always.
        policy: whose account it goes on, and whose memory a copy takes; None as in
            :func:`memrt.empty`.

    Raises:
        TypeError: when it is no array.
        ValueError: when a copy is needed and `copy` is False.
        MemoryError: then the array is as it was.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"adopt() takes a numpy.ndarray, got {type(array).__name__}")
    if not copy and _memrt.take_over(array, policy):
        return array
    if copy is False:
        raise ValueError(
            "this array borrows its memory or holds references, so that it can only be copied: "
            "leave copy=False away"
        )
    return _copy(array, policy)


def _copy(source: np.ndarray, policy: Policy | None) -> np.ndarray:
    order = "F" if source.flags.fnc else "C"
    result = _memrt.empty(source.shape, source.dtype, order, policy=policy)
    result[...] = source
    result.flags.writeable = source.flags.writeable
    return result
