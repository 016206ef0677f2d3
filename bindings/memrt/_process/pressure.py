"""Memory pressure: the nearest limit of the process, and callbacks when the limit comes near."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, overload

from memrt import _memrt
from memrt._support.closable import Closable
from memrt._support.public import public

_LEVELS = {"low": 1, "medium": 2, "critical": 3}
_MAXIMUM = 32
_NO_LIMIT = 2**64 - 1

# Callbacks by token. The compiled part looks up the token of each due call.
_callbacks: dict[int, PressureCallback] = {}


@public("memrt.types")
class Pressure(NamedTuple):
    """Memory pressure: the limit of the process with the largest part in use.

    Examples
    --------
    >>> import memrt
    >>> memrt.limit("64 MiB")
    67108864
    >>> table = memrt.zeros(60 << 20, "u1")
    >>> pressure = memrt.debug.pressure()
    >>> pressure.level, pressure.of
    ('medium', 'of the process')
    >>> memrt.limit(None)
    """

    level: str
    """Level: "none", "low" (from 80 % of the limit), "medium" (90 %) or "critical" (95 %)."""
    source: str
    """Signal of the system that raises the level, too: "stalls", "events" or "notices"; "headroom":
    none."""
    limit: int | None
    """Nearest limit in bytes; None: no limit is known."""
    used: int
    """Bytes in use under this limit."""
    headroom: int | None
    """Bytes below this limit; None: no limit is known."""
    of: str
    """Owner of this limit, such as "of the process" or "for the control group"."""
    above_soft: int
    """Number of soft limits that are exceeded. One raises the level to "medium"."""


@public("memrt.debug")
def pressure() -> Pressure:
    """Return the memory pressure now.

    Returns
    -------
    memrt.types.Pressure
        Nearest limit of the process, and the level of memory pressure.

    Examples
    --------
    >>> import memrt
    >>> memrt.debug.pressure().used > 0
    True
    """
    level, source, limit, used, headroom, of, above_soft = _memrt.pressure_read()
    if limit == _NO_LIMIT:
        return Pressure(level, source, None, used, None, of, above_soft)
    return Pressure(level, source, limit, used, headroom, of, above_soft)


@public("memrt.types")
class PressureCallback(Closable):
    """Registered callback for memory pressure: the result of :func:`memrt.on_pressure`.

    The registration lasts until :meth:`close`, also without references to this object. As a context
    manager, the object ends the registration with the block. A call of the object calls the
    callback.

    Parameters
    ----------
    callback : callable
        Function that is called with the level.
    level : str
        Lowest level of a call.

    Examples
    --------
    >>> import memrt
    >>> with memrt.on_pressure(print, level="low") as registration:
    ...     registration.level
    'low'
    >>> registration.is_open
    False
    """

    __slots__ = ("_id", "_token", "callback", "level")

    def __init__(self, callback: Callable[[str], Any], level: str) -> None:
        self.callback = callback
        self.level = level
        self._token = self._take_token()
        try:
            self._id = _memrt.pressure_add(self._token, _LEVELS[level])
        except BaseException:
            del _callbacks[self._token]
            raise

    def _take_token(self) -> int:
        for token in range(_MAXIMUM):
            if _callbacks.setdefault(token, self) is self:
                return token
        message = f"at most {_MAXIMUM} callbacks for memory pressure can be registered: close one"
        raise RuntimeError(message)

    @property
    def is_open(self) -> bool:
        """Whether the callback is registered."""
        return _callbacks.get(self._token) is self

    def close(self) -> None:
        """End the registration. A call that has begun is not awaited. Repeated calls are allowed.

        Examples
        --------
        >>> import memrt
        >>> memrt.on_pressure(print).close()
        """
        if _memrt.pressure_remove(self._token, self._id):
            del _callbacks[self._token]

    def __call__(self, level: str) -> Any:
        return self.callback(level)

    def __repr__(self) -> str:
        state = "open" if self.is_open else "closed"
        return f"<memrt.on_pressure {self.callback!r} from {self.level!r}, {state}>"


@overload
def on_pressure(callback: Callable[[str], Any], level: str = "medium") -> PressureCallback: ...
@overload
def on_pressure(
    callback: None = None, level: str = "medium"
) -> Callable[[Callable[[str], Any]], PressureCallback]: ...


@public("memrt")
def on_pressure(callback: Callable[[str], Any] | None = None, level: str = "medium") -> Any:
    """Call a function when the process comes near a memory limit.

    The function is called with the level, when the level rises to `level` or above, and at each
    further rise. If the level is reached already, the first call follows at once. A level begins at
    80 % (low), 90 % (medium) and 95 % (critical) of the nearest limit, and ends 5 percentage points
    below. Stalls and events of the system that reclaims memory raise the level, too. A rise above a
    soft limit (:func:`memrt.limit`) raises the level to medium, and calls the function in any case.

    Parameters
    ----------
    callback : callable, optional
        Function of one argument, "low", "medium" or "critical". Without the function, on_pressure
        returns a decorator.
    level : str, optional
        Lowest level of a call: "low", "medium" or "critical".

    Returns
    -------
    memrt.types.PressureCallback
        Registration, which ends with its method ``close`` or as a context manager.

    Raises
    ------
    ValueError
        The level is unknown.
    TypeError
        The callback cannot be called.
    RuntimeError
        32 callbacks are registered.
    MemoryError
        The system refuses a thread.

    Notes
    -----
    The function runs on the main thread, between two bytecode instructions, never inside an
    allocation. While the main thread runs compiled code for long, the call waits. Rises meanwhile
    become one call with the last level. Exceptions go to :func:`sys.unraisablehook`. At the end of
    the interpreter, no call is made. A forked child keeps the registrations.

    A thread of the C library reads the limits each 500 ms, and each 100 ms from 70 % of the nearest
    limit on. The thread exists only while callbacks are registered, a soft limit exists, or the
    limit of the process is "auto" or a percentage. When the level rises to medium or above, memrt
    first releases cached memory.

    Examples
    --------
    >>> import memrt
    >>> cache = {"large": memrt.zeros(1000)}
    >>> @memrt.on_pressure
    ... def drop_cache(level):
    ...     cache.clear()
    >>> drop_cache.close()
    """
    if level not in _LEVELS:
        raise ValueError(f'level must be "low", "medium" or "critical", got {level!r}')
    if callback is None:
        return partial(on_pressure, level=level)
    if not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}")
    _memrt.pressure_setup(_callbacks)
    return PressureCallback(callback, level)
