"""Arrays whose content may be dropped under memory pressure, and is made again on use."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from threading import RLock
from types import TracebackType

import numpy as np
from numpy.typing import DTypeLike

from memrt import _memrt
from memrt._arrays.creation import Shape
from memrt._support.public import public
from memrt._support.units import human_bytes


@public("memrt")
class volatile:  # noqa: N801 (a context manager that reads like a function)
    """Array whose content may be dropped when memory is short, and is made again on use.

    The content is pinned while an array of :meth:`use` or a view of such an array exists. A content
    that is not pinned may be dropped: by memrt before an allocation is refused, or when a soft
    limit is exceeded; by the kernel when the system is short of memory. Contents that were not used
    for the longest time are dropped first. The next use makes the content again.

    Parameters
    ----------
    make : callable
        Function that fills an array: called with an uninitialized array of the shape and dtype. The
        result is ignored. The function must give the same content each time, and must not keep the
        array.
    shape : int or tuple of int
        Elements along each axis.
    dtype : dtype_like, default float64
        Data type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the elements in memory.

    Raises
    ------
    TypeError
        `make` cannot be called, or the dtype holds Python objects.
    ValueError
        A length or the order is bad.
    RuntimeError
        64 callbacks are registered by ``reclaim_add`` and :class:`memrt.debug.on_refusal`. The
        first volatile array registers two more.

    Notes
    -----
    The memory counts as live until the content is dropped, with whole pages of the system. The
    memory comes from the policy and scope in force at the use that makes the content.

    In a ``with`` block the content stays pinned to the end of the block, and longer while the array
    or a view exists. A name in a function keeps the array until the function ends: ``del`` the
    name, or use the name for another array.

    The kernel can drop single pages (MADV_FREE, Linux 4.5). memrt detects each dropped page, and
    then makes the whole content again. Before Linux 4.12, a system without swap drops the pages at
    once. Memory that is locked (mlock) is dropped by memrt only.

    Threads: several threads may use the array at once. One thread makes the content, and the other
    threads wait. `make` must not use the same volatile array. A forked child has a copy.

    Examples
    --------
    >>> import memrt
    >>> squares = memrt.volatile(lambda out: out.__setitem__(..., range(5)), 5)
    >>> with squares as array:
    ...     array.sum()
    np.float64(10.0)
    >>> del array
    >>> squares
    <memrt.volatile float64 (5,), 40 B, kept, made 1 time>
    >>> squares.drop(), squares.state
    (True, 'empty')
    >>> squares.use().sum(), squares.makes
    (np.float64(10.0), 2)
    """

    __slots__ = (
        "__weakref__",
        "_content",
        "_dtype",
        "_entered",
        "_lock",
        "_make",
        "_makes",
        "_making",
        "_order",
        "_shape",
    )

    def __init__(
        self,
        make: Callable[[np.ndarray], object],
        shape: Shape,
        dtype: DTypeLike = float,
        order: str = "C",
    ) -> None:
        if not callable(make):
            raise TypeError(f"make must be callable, got {make!r}")
        self._make = make
        self._shape = _lengths(shape)
        self._dtype = np.dtype(dtype)
        if self._dtype.hasobject:
            raise TypeError(f"dtype must hold no Python objects, got {self._dtype}")
        if order not in ("C", "F"):
            raise ValueError(f"order must be 'C' or 'F', got {order!r}")
        self._order = order
        self._content = _memrt.volatile_new(self.nbytes)
        self._lock = _new_lock()
        self._making = False
        self._makes = 0
        self._entered: list[np.ndarray] = []

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return self._shape

    @property
    def dtype(self) -> np.dtype:
        """Data type of the elements."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the content."""
        return math.prod(self._shape) * self._dtype.itemsize

    @property
    def makes(self) -> int:
        """How often the content was made."""
        return self._makes

    @property
    def state(self) -> str:
        """State of the content.

        "empty": no memory; "pinned": in use; "kept": in memory, and may be dropped. Whether the
        kernel has dropped pages is found at the next use.
        """
        _, nbytes, pins = _memrt.volatile_read(self._content)
        if pins:
            return "pinned"
        return "kept" if nbytes else "empty"

    def use(self) -> np.ndarray:
        """Return the content, made again if the content was dropped.

        Returns
        -------
        numpy.ndarray
            Read-only array over the content. The array and its views keep the content pinned.

        Raises
        ------
        OutOfMemoryError
            Memory or a limit is exhausted.
        RuntimeError
            `make` uses the array that it makes.

        Notes
        -----
        An exception of `make` leaves the array empty, and the next use calls `make` again.

        Examples
        --------
        >>> import memrt
        >>> zeros = memrt.volatile(lambda out: out.fill(0), (2, 2), "i4")
        >>> zeros.use()
        array([[0, 0],
               [0, 0]], dtype=int32)
        """
        with self._lock:
            if self._making:
                raise RuntimeError("make must not use the volatile array that it makes")
            pin, made = _memrt.volatile_pin(self._content)
            try:
                if not made:
                    self._fill(pin)
                return self._array_over(pin, writeable=False)
            finally:
                del pin  # a traceback does not keep the pin

    def _fill(self, pin: _memrt.MemInfo) -> None:
        self._making = True
        try:
            self._make(self._array_over(pin, writeable=True))
        finally:
            self._making = False
            del pin
        _memrt.volatile_made(self._content)
        self._makes += 1

    def _array_over(self, pin: _memrt.MemInfo, *, writeable: bool) -> np.ndarray:
        return _memrt.as_array(
            pin, self._shape, self._dtype, order=self._order, writeable=writeable
        )

    def drop(self) -> bool:
        """Drop the content now, unless the content is pinned.

        Returns
        -------
        bool
            Whether memory was freed.

        Examples
        --------
        >>> import memrt
        >>> zeros = memrt.volatile(lambda out: out.fill(0), 5)
        >>> array = zeros.use()
        >>> zeros.drop()
        False
        """
        return _memrt.volatile_drop(self._content)

    def __enter__(self) -> np.ndarray:
        array = self.use()
        self._entered.append(array)
        return array

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._entered.pop()

    def __repr__(self) -> str:
        times = f"{self._makes:,} time{'' if self._makes == 1 else 's'}"
        size = human_bytes(self.nbytes)
        return f"<memrt.volatile {self._dtype} {self._shape}, {size}, {self.state}, made {times}>"


def _new_lock() -> RLock:
    try:
        return RLock()
    except RuntimeError:  # "can't allocate lock"
        raise MemoryError("no memory for the lock of a volatile array") from None


def _lengths(shape: Shape) -> tuple[int, ...]:
    """Return a shape as a tuple of lengths."""
    try:
        lengths = tuple(map(operator.index, shape)) if isinstance(shape, tuple | list) else None
        found = (operator.index(shape),) if lengths is None else lengths  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"shape must be an int or a tuple of int, got {shape!r}") from None
    if any(length < 0 for length in found):
        raise ValueError(f"shape must have no negative length, got {shape!r}")
    return found
