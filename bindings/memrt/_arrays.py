"""Create arrays in memory that memrt manages, and adopt the memory of existing arrays."""

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
    alignment: int | None = None,
) -> np.ndarray:
    """Return a new array filled with `fill_value`.

    The array has the dtype of `fill_value` when `dtype` is None. Shape, order, policy and
    alignment are as in :func:`memrt.empty`.
    """
    value = np.asarray(fill_value, dtype=dtype)
    result = _memrt.empty(shape, value.dtype, order, policy=policy, alignment=alignment)
    np.copyto(result, value, casting="unsafe")
    return result


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    order: str = "K",
    *,
    policy: Policy | None = None,
    alignment: int | None = None,
) -> np.ndarray:
    """Return a new array with the contents of `object`: always a copy, always a base-class ndarray.

    Args:
        object: anything that ``numpy.asarray`` takes.
        dtype: None for the dtype that NumPy infers.
        order: "C", "F", or "K" to keep the Fortran order of `object`.
        policy, alignment: as in :func:`memrt.empty`.
    """
    source = np.asarray(object, dtype=dtype)
    if order in ("K", "A"):
        order = "F" if source.flags.fnc else "C"
    result = _memrt.empty(source.shape, source.dtype, order, policy=policy, alignment=alignment)
    result[...] = source
    return result


def adopt(
    array: np.ndarray,
    copy: bool | None = None,
    *,
    policy: Policy | None = None,
) -> np.ndarray:
    """Put the memory of an array under memrt, without a copy where possible.

    - Memory that memrt manages already: the array is returned unchanged.
    - Memory that the array, or the array it is a view of, owns: ownership moves to a MemInfo, which
      becomes the base. The last release frees the data through the handler that allocated it. Data
      without a handler (set up by C code over ``malloc``) goes to the C library's ``free``. The
      same array is returned, and can no longer be resized.
    - Memory borrowed from another object (bytes, mmap, pickles, another library): the result is an
      aligned copy, a base-class ndarray.
    - Dtypes with references, which NumPy itself has to clear: the result is also an aligned copy.

    A read-only array stays read-only.

    Args:
        array: the array.
        copy: None copies only where needed, False never, True always.
        policy: the policy that accounts for the memory and allocates a copy; None as in
            :func:`memrt.empty`.

    Raises:
        TypeError: `array` is not an array, or `copy` is not None, True or False.
        ValueError: a copy is needed and `copy` is False.
        MemoryError: there is not enough memory. The array is unchanged.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"adopt() argument 'array' must be a numpy.ndarray, got {type(array).__name__}"
        )
    if copy is not None and not isinstance(copy, (bool, np.bool_)):
        raise TypeError(f"copy must be None, True or False, got {copy!r}")
    if not copy and _memrt.take_over(array, policy):
        return array
    if copy is not None and not copy:
        raise ValueError(
            "array must be copied, because the memory is borrowed or contains references: "
            "omit copy=False"
        )
    return _copy(array, policy)


def _copy(source: np.ndarray, policy: Policy | None) -> np.ndarray:
    order = "F" if source.flags.fnc else "C"
    result = _memrt.empty(source.shape, source.dtype, order, policy=policy)
    result[...] = source
    result.flags.writeable = source.flags.writeable
    return result
