"""Callbacks that free memory before memrt refuses an allocation."""

from __future__ import annotations

import gc
from collections.abc import Callable

from memrt import _memrt
from memrt._support.closable import Closable
from memrt._support.public import public

LAST = 2**31 - 1  # priority: after all functions that may free memory


@public("memrt.debug")
class on_refusal(Closable):  # noqa: N801 - used like a function
    """Call a function before an allocation is refused, so that the function can free memory.

    memrt refuses an allocation because of a limit, or because the system has no memory. Before,
    memrt calls the registered functions one after the other, and repeats the allocation after each
    call. The allocation succeeds as soon as there is room. A MemoryError follows otherwise.

    Parameters
    ----------
    callback : callable
        Function of one argument, the number of bytes that are wanted. The result is ignored.
        ``gc.collect`` is called without an argument, and frees arrays in reference cycles.
    priority : int, optional
        Order of the calls: lower numbers first. Functions of equal priority are called in the
        order of registration.

    Raises
    ------
    TypeError
        The callback is not callable, or the priority is not an int.
    RuntimeError
        64 callbacks are registered, by Python and by C code.

    Notes
    -----
    The function is called until :meth:`close`, or until the end of a ``with`` block. Dropping the
    object changes nothing.

    The function runs inside of the allocation, for example inside of ``numpy.empty``. It may
    allocate, but an allocation that is refused inside of the function fails at once. It must not
    use an array that ``ndarray.resize`` is resizing. An exception goes to ``sys.unraisablehook``.

    memrt leaves out the call on a thread without the GIL, for example in parallel code of Numba,
    while an exception is pending, and while the interpreter shuts down.

    Threads: several threads may call the function at once.

    Examples
    --------
    >>> import memrt
    >>> cache = {n: memrt.zeros(1 << 20, "u1") for n in range(4)}
    >>> def drop(wanted):
    ...     print("wanted:", wanted)
    ...     cache.clear()
    >>> policy = memrt.Policy(name="small", limit="1 MiB")
    >>> table = memrt.zeros(1 << 20, "u1", policy=policy)
    >>> with memrt.debug.on_refusal(drop):
    ...     memrt.zeros(1000, "u1", policy=policy)
    Traceback (most recent call last):
    ...
    memrt.OutOfMemoryError: no memory for 1000 bytes of policy 'small'
    ...
    >>> cache
    {}
    """

    __slots__ = ("_callback", "_closed", "_priority")

    def __init__(self, callback: Callable[[int], object], priority: int = 0) -> None:
        if not callable(callback):
            raise TypeError(f"callback must be callable, got {callback!r}")
        self._callback = callback
        self._priority = priority
        self._closed = False
        _memrt.reclaim_add(self, priority)

    @property
    def callback(self) -> Callable[[int], object]:
        """Function that is called."""
        return self._callback

    @property
    def priority(self) -> int:
        """Order of the calls: lower numbers first."""
        return self._priority

    def close(self) -> None:
        """End the calls. A second call has no effect.

        Waits until no other thread runs the function, except for a call inside of a callback. The
        caller must not hold a lock that the function takes.
        """
        self._closed = True
        _memrt.reclaim_remove(self)

    def __call__(self, wanted: int) -> None:
        """Call the function. Only memrt does so."""
        try:
            if self._closed:
                pass
            elif self._callback is gc.collect:
                gc.collect()
            else:
                self._callback(wanted)
        finally:
            if self._closed:  # inside of a callback, while another thread was in this function
                _memrt.reclaim_remove(self)

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<on_refusal {self._callback!r}, priority {self._priority}{state}>"
