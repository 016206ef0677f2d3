"""Hooks: functions that are called with allocations, resizes and frees."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Any, NamedTuple

from memrt import _memrt
from memrt._policy.policy import Policy
from memrt._policy.scope_tree import scope_paths
from memrt._support.closable import Closable
from memrt._support.public import public
from memrt._support.units import human_bytes, parse_bytes
from memrt._tracking.sites import Place, Site, place_of, site_of

# Paths of scopes by number, read again when an event has another number.
_paths: dict[int, str | None] = {}


def _path_of(number: int) -> str | None:
    """Return the path of a scope; None for 0, and for a scope that was removed."""
    global _paths
    if number and number not in _paths:
        _paths = {number: None, **scope_paths()}
    return _paths[number] if number else None


@public("memrt.types")
class BlockEvent(NamedTuple):
    """Event of a buffer: an allocation, a resize, a free, or a refused request.

    Examples
    --------
    >>> import memrt
    >>> events = []
    >>> with memrt.debug.hook(events.append, sample=None):
    ...     table = memrt.zeros(1000)
    >>> [(event.type, event.nbytes) for event in events]
    [('allocate', 8000)]
    """

    type: str
    """'allocate', 'resize', 'free', or 'failure' for a refused request."""
    nbytes: int
    """Size of the buffer in bytes, after a resize the new size; of a failure the requested size."""
    weight: float
    """Of an allocation: number of buffers of this size that the event represents, 1 without a
    sample. 0 for other events."""
    policy: str
    """Name of the policy."""
    scope: str | None
    """Path of the scope of the allocation, names joined by slashes; None outside of scopes."""
    address: int
    """Address of the first byte; 0 for a failure."""
    thread: int
    """Operating system's number of the thread that allocated, resized or freed."""
    time: float
    """Time of the event in seconds, on the clock of ``time.monotonic``."""
    site_number: int
    """Of an allocation that is tracked: number of the allocation site; otherwise 0."""
    old_address: int
    """Of a resize: address before; otherwise 0."""
    old_nbytes: int
    """Of a resize: size before; otherwise 0."""

    @property
    def site(self) -> Site | None:
        """Allocation site with its call stack; None if not recorded."""
        return site_of(self.site_number)

    @property
    def place(self) -> Place | None:
        """Source line of the allocation; None if not recorded."""
        return place_of(self.site_number)


@public("memrt.debug")
class hook(Closable):  # noqa: N801 - used like a function
    """Call a function with the allocations of a sample, and with their resizes and frees.

    Parameters
    ----------
    callback : callable
        Function of one argument, a :class:`memrt.types.BlockEvent`. The result is ignored.
    sample : int, str or None, optional
        Average bytes between two allocations of the sample, a number or a text like "64 MiB".
        Allocations are chosen at random, large ones with a higher probability. None: all.
    policy : memrt.Policy, optional
        Only buffers of this policy. None: of all policies.

    Raises
    ------
    TypeError
        The callback is not callable, or the policy is no policy of memrt.
    ValueError
        The sample is no positive number of bytes.
    RuntimeError
        8 hooks are open, of Python and of C code.

    Notes
    -----
    The function is called until :meth:`close`, until the end of a ``with`` block, or until the end
    of the interpreter. Dropping the object changes nothing.

    The sum of ``event.weight * event.nbytes`` over the allocations is an unbiased estimate of all
    allocated bytes. Buffers that were allocated before the hook have no events. Refused requests
    are never sampled. Adopted memory counts as allocated.

    An event is recorded on the thread that allocates or frees, without the GIL. The function runs
    later on the main thread, between two bytecode instructions, never inside an allocation. While
    the main thread runs compiled code or waits, up to 4096 events wait in a queue, and further
    events are dropped: :attr:`dropped` counts them. Beside threads that allocate without a pause,
    the calls take at most about half of the main thread's time. :meth:`deliver` and :meth:`close`
    call the function at once, on the calling thread.

    Allocations of the function itself have no events, nor have these buffers later. Frees of other
    buffers have events. An exception goes to ``sys.unraisablehook``.

    A forked child keeps the hook. Events from before the fork are delivered in the parent only.

    Threads: the function is never called by two threads at once. Other threads may allocate, open
    and close hooks meanwhile.

    While a hook is open, every allocation takes memrt's slow path.

    Examples
    --------
    >>> import memrt
    >>> def log(event):
    ...     print(event.type, event.nbytes)
    >>> with memrt.debug.hook(log, sample=None):
    ...     table = memrt.zeros(1000)
    ...     del table
    allocate 8000
    free 8000
    """

    __slots__ = ("_callback", "_dropped", "_number", "_policy", "_sample")

    def __init__(
        self,
        callback: Callable[[BlockEvent], object],
        *,
        sample: int | str | None = "512 KiB",
        policy: Policy | None = None,
    ) -> None:
        if not callable(callback):
            raise TypeError(f"callback must be callable, got {callback!r}")
        mean = 0 if sample is None else parse_bytes(sample)
        if sample is not None and mean <= 0:
            raise ValueError(f"sample must be a positive number of bytes, got {sample!r}")
        self._callback = callback
        self._sample = mean or None
        self._policy = policy
        self._dropped: int | None = None
        handler = None if policy is None else policy.handler
        atexit.register(self.close)
        try:
            self._number = _memrt.hook_add(self, mean, handler)
        except BaseException:
            self._dropped = 0
            atexit.unregister(self.close)
            raise

    @property
    def callback(self) -> Callable[[BlockEvent], object]:
        """Function that is called."""
        return self._callback

    @property
    def sample(self) -> int | None:
        """Average bytes between two allocations of the sample; None: all allocations."""
        return self._sample

    @property
    def policy(self) -> Policy | None:
        """Policy of the buffers; None: all policies."""
        return self._policy

    @property
    def dropped(self) -> int:
        """Number of events for which the queue had no room."""
        return _memrt.hook_dropped(self._number) if self._dropped is None else self._dropped

    @property
    def is_open(self) -> bool:
        """Whether the function is called with new events."""
        return self._dropped is None

    def deliver(self) -> None:
        """Call the function with the events so far, on the calling thread.

        Waits while another thread runs the function, except for a call inside of a callback.

        Examples
        --------
        >>> import memrt
        >>> with memrt.debug.hook(lambda event: print(event.type), sample=None) as hook:
        ...     mi = memrt.alloc(1000)
        ...     hook.deliver()
        allocate
        """
        if self._dropped is None:
            _memrt.hook_deliver(self._number)

    def close(self) -> None:
        """End the hook after the delivery of the last events. A second call has no effect.

        The function is called on the calling thread. Waits while another thread runs the function,
        except for a call inside of a callback. The caller must not hold a lock that the function
        takes. Inside of the function itself, the remaining events are discarded.

        Examples
        --------
        >>> import memrt
        >>> memrt.debug.hook(print).close()
        """
        if self._dropped is None:
            dropped = _memrt.hook_remove(self._number)
            if dropped is not None or self._dropped is None:  # None: closed by another thread
                self._dropped = dropped or 0
            atexit.unregister(self.close)

    def __call__(
        self, type: str, nbytes: int, weight: float, policy: str, scope: int, *fields: Any
    ) -> None:
        """Call the function with an event. Only memrt does so."""
        self._callback(BlockEvent(type, nbytes, weight, policy, _path_of(scope), *fields))

    def __repr__(self) -> str:
        every = "all" if self._sample is None else f"sample {human_bytes(self._sample)}"
        of = "" if self._policy is None else f", policy {self._policy.name!r}"
        state = "" if self.is_open else ", closed"
        return f"<hook {self._callback!r}, {every}{of}{state}>"
