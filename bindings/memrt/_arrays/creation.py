"""Create arrays in memory that memrt manages, and adopt the memory of existing arrays."""

from __future__ import annotations

from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from memrt import _memrt
from memrt._policy.policy import Policy
from memrt._support.public import public

Shape = int | tuple[int, ...]


@public("memrt")
def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    policy: Policy | None = None,
    alignment: int | None = None,
    align_offset: int = 0,
) -> np.ndarray:
    """Create an array filled with a value, in memory of memrt.

    Parameters
    ----------
    shape : int or tuple of int
        Elements along each axis.
    fill_value : array_like
        Value of the elements, broadcast to `shape`.
    dtype : dtype_like, optional
        Data type of the elements. None: the dtype of `fill_value`.
    order : {'C', 'F'}, default 'C'
        Order of the elements in memory: row-major or column-major.
    policy : Policy, optional
        Policy that allocates and accounts for the memory. None: the policy in force in this
        context, else the default policy.
    alignment : int, optional
        Bytes: a power of two up to 2**30. The address is a multiple of `alignment` and of the
        alignment of the policy. None: the alignment of the policy alone.
    align_offset : int, default 0
        Byte of the data whose address has the alignment, instead of the first byte: a multiple of
        8. The alignment must then be at most 32768.

    Returns
    -------
    numpy.ndarray
        New array. The base of the array is the MemInfo.

    Raises
    ------
    ValueError
        A shape, order or alignment is out of range.
    OutOfMemoryError
        Memory or a limit is exhausted.

    Examples
    --------
    >>> import memrt
    >>> memrt.full(3, 7)
    array([7, 7, 7])
    """
    value = np.asarray(fill_value, dtype=dtype)
    result = _memrt.empty(
        shape, value.dtype, order, policy=policy, alignment=alignment, align_offset=align_offset
    )
    np.copyto(result, value, casting="unsafe")
    return result


@public("memrt")
def array(
    object: Any,
    dtype: DTypeLike | None = None,
    order: str = "K",
    *,
    policy: Policy | None = None,
    alignment: int | None = None,
    align_offset: int = 0,
) -> np.ndarray:
    """Create an array in memory of memrt with the contents of an object: always a copy.

    Parameters
    ----------
    object : array_like
        Anything that ``numpy.asarray`` takes.
    dtype : dtype_like, optional
        Data type of the elements. None: the dtype that NumPy infers.
    order : {'K', 'A', 'C', 'F'}, default 'K'
        Order of the elements in memory. 'K' and 'A' keep the Fortran order of `object`.
    policy : Policy, optional
        Policy that allocates and accounts for the memory. None: the policy in force in this
        context, else the default policy.
    alignment : int, optional
        Bytes: a power of two up to 2**30. The address is a multiple of `alignment` and of the
        alignment of the policy. None: the alignment of the policy alone.
    align_offset : int, default 0
        Byte of the data whose address has the alignment, instead of the first byte: a multiple of
        8. The alignment must then be at most 32768.

    Returns
    -------
    numpy.ndarray
        New array of the base class. The base of the array is the MemInfo.

    Raises
    ------
    ValueError
        An order or alignment is out of range.
    OutOfMemoryError
        Memory or a limit is exhausted.

    Examples
    --------
    >>> import memrt
    >>> a = memrt.array([1.0, 2.0], alignment=4096)
    >>> a, a.ctypes.data % 4096
    (array([1., 2.]), 0)
    """
    source = np.asarray(object, dtype=dtype)
    if order in ("K", "A"):
        order = "F" if source.flags.fnc else "C"
    result = _memrt.empty(
        source.shape,
        source.dtype,
        order,
        policy=policy,
        alignment=alignment,
        align_offset=align_offset,
    )
    result[...] = source
    return result


@public("memrt")
def adopt(
    array: np.ndarray,
    copy: bool | None = None,
    *,
    policy: Policy | None = None,
) -> np.ndarray:
    """Put the memory of an array under memrt, without a copy where possible.

    - Memory that memrt manages already: the array is returned unchanged.
    - Memory that the array, or the base of the view, owns: ownership moves to a MemInfo, which
      becomes the base. The same array is returned, and can no longer be resized.
    - Memory of a mapped file (`numpy.memmap`, `mmap`), contiguous: the result is another array over
      the same memory, a base-class ndarray, which keeps the file mapped.
    - Memory borrowed from another object (bytes, pickles, another library): the result is an
      aligned copy, a base-class ndarray.
    - Dtypes with references, which NumPy itself has to clear: the result is also an aligned copy.

    Parameters
    ----------
    array : numpy.ndarray
        Array to adopt. A read-only array stays read-only.
    copy : bool, optional
        None: copy only where needed. False: never copy. True: always copy.
    policy : Policy, optional
        Policy that accounts for the memory and allocates a copy. None: the policy in force in this
        context, else the default policy.

    Returns
    -------
    numpy.ndarray
        `array`, the array over the mapped file, or the copy.

    Raises
    ------
    TypeError
        `array` is not an array, or `copy` is not None, True or False.
    ValueError
        A copy is needed and `copy` is False.
    MemoryError
        There is not enough memory. The array is unchanged.

    Notes
    -----
    Ownership: the last release frees adopted data through the handler that allocated the data. Data
    without a handler (set up by C code over ``malloc``) goes to the C library's ``free``.

    A file stays mapped until the last release. ``flush()`` of a `numpy.memmap` writes the changes
    of both arrays.

    Examples
    --------
    >>> import memrt
    >>> import numpy as np
    >>> a = np.ones(1000)
    >>> memrt.adopt(a) is a, memrt.meminfo(a).nbytes
    (True, 8000)
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"adopt() argument 'array' must be a numpy.ndarray, got {type(array).__name__}"
        )
    if copy is not None and not isinstance(copy, (bool, np.bool_)):
        raise TypeError(f"copy must be None, True or False, got {copy!r}")
    if not copy and _memrt.take_over(array, policy):
        return array
    if not copy and (mapped := _adopt_mapped(array, policy)) is not None:
        return mapped
    if copy is not None and not copy:
        raise ValueError(
            "array must be copied, because the memory is borrowed or contains references: "
            "omit copy=False"
        )
    return _copy(array, policy)


def _adopt_mapped(array: np.ndarray, policy: Policy | None) -> np.ndarray | None:
    """Return an array over the same memory if it is of a mapped file, otherwise None."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if not isinstance(base, mmap) or not array.flags.forc or array.nbytes == 0:
        return None
    readonly = not array.flags.writeable
    mi = _memrt.wrap(
        _memrt.address(array), array.nbytes, owner=array, readonly=readonly, policy=policy
    )
    return np.ndarray(array.shape, array.dtype, memoryview(mi), strides=array.strides)


def _copy(source: np.ndarray, policy: Policy | None) -> np.ndarray:
    order = "F" if source.flags.fnc else "C"
    result = _memrt.empty(source.shape, source.dtype, order, policy=policy)
    result[...] = source
    result.flags.writeable = source.flags.writeable
    return result
