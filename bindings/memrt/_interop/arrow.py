"""Import of Arrow arrays of other libraries as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from memrt import _memrt
from memrt._interop.arrow_formats import dtype_of
from memrt._interop.arrow_parts import check_copy, request, take, take_all
from memrt._interop.arrow_values import join, refuse_copy
from memrt._policy.policy import Policy
from memrt._support.public import public


@public("memrt")
def from_arrow(
    x: Any,
    /,
    *,
    masked: bool = False,
    copy: bool | None = False,
    policy: Policy | None = None,
) -> np.ndarray:
    """Import an Arrow array of another library as an array, without a copy by default.

    Parameters
    ----------
    x : object
        Arrow array: an object with ``__arrow_c_array__``, ``__arrow_c_device_array__`` or
        ``__arrow_c_stream__``, in memory that the CPU can read.
    masked : bool, default False
        True: return a numpy.ma.MaskedArray, in which nulls are masked.
    copy : bool or None, default False
        False: refuse elements that NumPy cannot describe in place, such as strings, and several
        chunks. None: copy such elements into memory of memrt. True: always copy.
    policy : Policy, optional
        Policy that accounts for the memory and allocates a copy. None: the policy in force in this
        context, else the default policy.

    Returns
    -------
    numpy.ndarray
        Read-only array over the memory of the other library, or a copy.

    Raises
    ------
    BufferError
        The elements have no dtype, need a copy that `copy` forbids, are on another device, or null
        without `masked`; or the array is malformed.
    TypeError
        `x` has none of the three methods, or `copy` is not None, True or False.
    ValueError
        A method of `x` does not return Arrow capsules.
    MemoryError
        The allocation of the MemInfo or the array failed.

    See Also
    --------
    memrt.types.Column.chunks : Import chunks and parts of any type without a copy.

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
    schema, exported = request(x)
    if len(exported) == 1 and (copy is False or copy is None):
        taken = _memrt.take_arrow(schema, exported[0], policy)
        if taken is not None:
            return _finish(taken, masked)
    check_copy(copy)
    if copy is not None and not copy:  # before any buffer is read
        refuse_copy(take(schema, None, policy), len(exported))
    return join(take_all(schema, exported or [None], policy), masked, copy, policy)


def _finish(
    taken: tuple[_memrt.MemInfo, str, int, bool, int, int, bytes | None], masked: bool
) -> np.ndarray:
    """Return the array over elements that need no copy."""
    mi, format, length, is_bool8, nulls, first_bit, bitmap = taken
    result = _memrt.as_array(mi, length, dtype_of(format, is_bool8))
    if masked:
        return np.ma.MaskedArray(result, _mask_of(bitmap, first_bit, length), copy=False)
    if nulls:
        raise BufferError(
            f"{nulls} of {length} elements are null: pass masked=True for a masked array"
        )
    return result


def _mask_of(bitmap: bytes | None, first_bit: int, length: int) -> np.ndarray | np.bool_:
    if bitmap is None:
        return np.ma.nomask
    valid = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    return np.asarray(valid[first_bit : first_bit + length] == 0)
