"""Write protection of arrays: by the pages of their memory where possible, else by their flag."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from threading import RLock
from types import TracebackType
from typing import Any, Literal
from weakref import ref

import numpy as np

import memrt
from memrt import _memrt
from memrt._support.public import public


class _Flag:
    """Flag ``writeable`` of an array before the first freeze, and the number of freezes."""

    __slots__ = ("count", "reference", "writeable")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.writeable = False
        self.count = 0
        self.reference = ref(array, partial(_forget, id(array)))


_lock = RLock()
_flags: dict[int, _Flag] = {}  # by the id of the array


def _forget(key: int, reference: ref[np.ndarray[Any, Any]]) -> None:
    """Remove the entry of an array that ended. Runs in any thread, so takes no lock."""
    entry = _flags.get(key)
    if entry is not None and entry.reference is reference:
        del _flags[key]


def _recover_after_fork() -> None:
    global _lock
    _lock = RLock()


os.register_at_fork(after_in_child=_recover_after_fork)


def _flag_of(array: np.ndarray[Any, Any]) -> _Flag:
    entry = _flags.get(id(array))
    if entry is None or entry.reference() is not array:
        entry = _flags[id(array)] = _Flag(array)
    return entry


def _restore_flag(array: np.ndarray[Any, Any], entry: _Flag) -> None:
    """Make an array writable again, unless it was read-only before, or its base is."""
    if entry.writeable:
        with contextlib.suppress(ValueError):
            array.setflags(write=True)


@public("memrt.types")
class Frozen:
    """Write protection of an array, returned by :func:`memrt.debug.freeze`.

    A ``with`` block ends the protection at its end. Without :meth:`thaw`, the protection lasts as
    long as the memory. The object keeps the array alive until the protection ends.

    Parameters
    ----------
    array : numpy.ndarray
        Array to protect, as the argument of :func:`memrt.debug.freeze`.

    Attributes
    ----------
    protected : int
        Bytes of the array in protected pages; 0: only the flag ``writeable`` is cleared.
    reason : str or None
        The reason why no page is protected; None if pages are.

    Examples
    --------
    >>> import memrt
    >>> weights = memrt.zeros(1_000_000)
    >>> with memrt.debug.freeze(weights) as frozen:
    ...     weights.flags.writeable, frozen.protection
    (False, 'pages')
    >>> weights.flags.writeable
    True
    """

    __slots__ = ("_array", "_mi", "protected", "reason")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        if not isinstance(array, np.ndarray):
            message = f"array must be a numpy.ndarray, got {type(array).__name__}"
            raise TypeError(message)
        self._array: np.ndarray[Any, Any] | None = None
        self._mi = memrt.meminfo(array)
        with _lock:
            key, entry = id(array), _flag_of(array)
            try:
                self._begin(array, entry)
            finally:
                if entry.count == 0:
                    del _flags[key]

    def _begin(self, array: np.ndarray[Any, Any], entry: _Flag) -> None:
        writeable = array.flags.writeable
        found = _memrt.freeze_pages(self._mi, array)
        self.protected = found if isinstance(found, int) else 0
        self.reason = found if isinstance(found, str) else None
        try:
            array.setflags(write=False)
        except MemoryError:
            if self.protected:
                _memrt.thaw_pages(self._mi)
            raise
        if entry.count == 0:
            entry.writeable = writeable
        entry.count += 1
        self._array = array

    @property
    def protection(self) -> Literal["pages", "flag"]:
        """``'pages'``: the system stops each write; ``'flag'``: only NumPy refuses to write."""
        return "pages" if self.protected else "flag"

    def thaw(self) -> None:
        """End the protection. Repeated calls have no effect.

        The pages are writable after the last thaw of the buffer, and the array after the last thaw
        of the array. The flag stays cleared if it was cleared before, or the base of the array is
        read-only.

        Raises
        ------
        MemoryError
            The system refuses to make the pages writable; the array stays frozen.
        """
        with _lock:
            array = self._array
            if array is None:
                return
            key, entry = id(array), _flag_of(array)  # nothing needs memory after the thaw
            if entry.count == 1:
                _restore_flag(array, entry)
            if self.protected:
                self._thaw_pages(array)
            entry.count -= 1
            if entry.count == 0:
                del _flags[key]
            self._array = None
            del self._mi

    def _thaw_pages(self, array: np.ndarray[Any, Any]) -> None:
        try:
            _memrt.thaw_pages(self._mi)
        except MemoryError:
            array.setflags(write=False)
            raise

    def __enter__(self) -> Frozen:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.thaw()

    def __repr__(self) -> str:
        array = self._array
        if array is None:
            return "<memrt.types.Frozen, thawed>"
        how = f"{self.protected:,} bytes in pages" if self.protected else f"flag: {self.reason}"
        return f"<memrt.types.Frozen, {array.nbytes:,} bytes, {how}>"


@public("memrt.debug")
def freeze(array: np.ndarray[Any, Any]) -> Frozen:
    """Protect an array against writes, and name the code that writes to it anyway.

    NumPy refuses to write to the array, as after ``array.setflags(write=False)``. The system
    protects the pages of the memory, so that code of any language that writes there ends the
    process: Numba, Cython and C, also through views that were made before. A report on standard
    error names the array, the offset, the running Python line, and the place of the freeze.

    Parameters
    ----------
    array : numpy.ndarray
        Array in memory of memrt. Borrowed.

    Returns
    -------
    memrt.types.Frozen
        The protection, which tells whether pages are protected. A ``with`` block ends the
        protection at its end, ``thaw()`` at any time. If the object is dropped, the protection
        lasts as long as the memory.

    Raises
    ------
    TypeError
        The argument is no array.
    ValueError
        The memory of the array is not memrt's: take it over with :func:`memrt.adopt`.
    MemoryError
        The system has no memory to protect the pages, as at the limit of mappings
        (``vm.max_map_count``). The array is as before.

    Notes
    -----
    Protected are the pages that belong to the array alone: all but at most one page at each end,
    and from the start on with an alignment of 4,096. Only the flag is cleared for an array without
    such a page, a view of a part of a buffer, and arrays of objects; in adopted or resizable
    memory, and memory of an allocator of the user; and from 4,096 frozen buffers on. Other arrays
    of the same memory keep their flags.

    Each freeze needs a thaw of its own. A forked child has the same protection. The free of the
    memory ends the protection first. ``ndarray.resize`` gives the array other memory, which is
    not protected. The system splits huge pages at the ends of the protected pages.

    Threads: any thread may freeze and thaw.

    Examples
    --------
    >>> import memrt
    >>> frozen_table = memrt.zeros(1_000_000)
    >>> protection = memrt.debug.freeze(frozen_table)
    >>> frozen_table[0] = 1
    Traceback (most recent call last):
        ...
    ValueError: assignment destination is read-only
    >>> protection.thaw()
    >>> frozen_table[0] = 1
    >>> memrt.debug.freeze(memrt.zeros(3)).reason
    'no whole page belongs to the array alone'
    """
    return Frozen(array)
