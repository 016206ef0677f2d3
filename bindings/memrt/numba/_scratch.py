"""Scratch memory for the arrays that jitted functions make and free."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy

from memrt import _memrt, is_managed
from memrt._leaks.arena import arena
from memrt._policy import handlers

_F = TypeVar("_F", bound=Callable[..., Any])
_EVENT = "numba:compiler_lock"  # from the begin of a compilation to its end, nested


class _Compilation(threading.local):
    """State of a thread that keeps arrays of the compiler out of scratch memory.

    The compiler caches some of its arrays. A thread compiles in the context of the call.
    """

    depth = 0
    inside: Any = None  # handler of the scratch memory, while the thread compiles


_compilation = _Compilation()


def _begin_compilation(listener: object, event: object) -> None:
    _compilation.depth += 1
    if _compilation.depth == 1:
        below = handlers.handler_below(scratch)
        _compilation.inside = None if below is None else _memrt.set_handler(below)


def _end_compilation(listener: object, event: object) -> None:
    _compilation.depth -= 1
    if _compilation.depth == 0 and _compilation.inside is not None:
        _memrt.set_handler(_compilation.inside)
        _compilation.inside = None


@functools.cache
def _listen(events: Any) -> None:
    """Register a listener with the event module of Numba. A second listener does no harm."""
    importlib.import_module("numpy.ma")  # Numba imports it at the first call; it keeps arrays
    members = {"on_start": _begin_compilation, "on_end": _end_compilation}
    events.register(_EVENT, type("Compilations", (events.Listener,), members)())


class _CompiledBlock:
    """Read-only descriptor of the function that Numba calls for a block in a jitted function."""

    def __get__(self, instance: scratch | None, owner: type[scratch]) -> Callable[..., Any]:
        if "numba.core" not in sys.modules:
            raise AttributeError("mutate_with_body needs an imported Numba")
        blocks = importlib.import_module("memrt.numba._blocks")
        return functools.partial(blocks.lift_block, instance, owner)

    def __set__(self, instance: scratch, value: object) -> None:
        raise AttributeError("mutate_with_body is read-only")


class scratch(arena):  # noqa: N801 (a context manager that reads like a function)
    """Place the arrays of jitted functions one behind the other; an arena and a decorator.

    Inside ``with memrt.numba.scratch():`` all arrays that jitted functions make come from an arena,
    also without the GIL and in parallel loops. So do the arrays of NumPy in this context. As a
    decorator, scratch() runs each call of a function in the arena. The arrays of the result are
    copied out, so only temporary arrays are in scratch memory. A block may also stand inside of a
    jitted function.

    Parameters
    ----------
    name : str, default 'scratch'
        Name in reports, at most 63 bytes in UTF-8.
    outliving : {'error', 'promote'}, default 'error'
        Rule for arrays that are live when the last block of the arena ends: RuntimeError, or the
        arrays stay valid and are counted, as for :class:`memrt.arena`.
    **options
        `chunk`, `alignment`, `allocator`, `limit` and `soft`, as for :class:`memrt.arena`.

    Raises
    ------
    RuntimeError
        At the end of the block or call: arrays outlive the arena, for example in a typed list of
        the result. Their memory stays valid.
    ValueError, TypeError, MemoryError
        As for :class:`memrt.arena`.

    Notes
    -----
    Jitted functions allocate from memrt only after :func:`install`. Without `install`, scratch()
    holds the arrays of NumPy alone.

    As a decorator: results that are arrays, or tuples, lists and dicts with arrays, are copied,
    each array and each view alone. The decorated function is a Python function: jitted functions
    cannot call it, but call its ``__wrapped__``. While Numba compiles a function, NumPy allocates
    from the code around the block, because the compiler keeps some of its arrays.

    As a block inside of a jitted function: ``with memrt.numba.scratch():`` with constant arguments
    has one arena for the source line, and a global or nonlocal scratch() is an arena for all its
    blocks. Arrays that outlive the block are an error and are freed, or are counted. Exceptions of
    called functions end the block. The compiler refuses `break`, `continue`, `raise`, `try` and
    `yield` that belong to the block, and a `return` before its end.

    Ownership and threads: as for :class:`memrt.arena`. All calls share the arena of the decorator.
    Compiled code keeps the arena of a block for the life of the process.

    Examples
    --------
    >>> import memrt.numba
    >>> import numpy as np
    >>> temporary = memrt.numba.scratch()
    >>> @temporary
    ... def smooth(image):  # a jitted function, after install()
    ...     return (image[1:] + image[:-1]) / 2
    >>> result = smooth(np.ones(1001))
    >>> len(result), temporary.stats().live, temporary.stats().total > 0
    (1000, 0, True)
    """

    __slots__ = ("_record",)

    _record: Any  # memrt.numba._blocks.Record; None: no compiled block has the arena

    mutate_with_body = _CompiledBlock()

    def __new__(cls, name: str = "scratch", *, outliving: str = "error", **options: Any) -> scratch:
        made = super().__new__(cls, name, outliving=outliving, **options)
        assert isinstance(made, scratch)
        made._record = None
        return made

    @property
    def outlived(self) -> tuple[int, int]:
        """Arrays, and their bytes, that were live when the last block of the arena ended."""
        record = self._record
        return self._outlived if record is None else (record.outlived, record.outlived_bytes)

    def _compiled_record(self) -> Any:
        """Return the record of the arena for compiled blocks. Compiled code keeps its address."""
        if self._record is None:
            make = importlib.import_module("memrt.numba._blocks").Record
            policy = sys.modules["numba.core.runtime._nrt_python"].scratch_policy(self.handler)
            self._record = make(policy, id(self._entered), 0, *self._outlived, self._outlived[0])
        return self._record

    def _settle(self, judges: bool) -> None:
        record = self._record
        if record is None:
            super()._settle(judges)
        elif not record.is_open:  # otherwise the end of a compiled block settles
            try:
                super()._settle(judges)
            finally:
                record.outlived, record.outlived_bytes = self._outlived
                record.known = self._outlived[0]

    def __enter__(self) -> scratch:
        events = sys.modules.get("numba.core.event")
        if events is not None:
            _listen(events)
        super().__enter__()
        return self

    def __call__(self, function: _F) -> _F:
        """Return a function that runs `function` in the arena, and copies the result out."""

        @functools.wraps(function, updated=())
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return self._copied_out(function(*args, **kwargs))

        return run  # type: ignore[return-value]

    def _copied_out(self, result: Any) -> Any:
        """Return a result with copies of the arrays that lie in the arena."""
        if isinstance(result, numpy.ndarray):
            return self.keep(result) if self._has(result) else result
        if isinstance(result, tuple):
            items = [self._copied_out(item) for item in result]
            return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
        if type(result) is list:
            return [self._copied_out(item) for item in result]
        if type(result) is dict:
            return {key: self._copied_out(value) for key, value in result.items()}
        return result

    def _has(self, array: numpy.ndarray[Any, Any]) -> bool:
        return is_managed(array) and _memrt.meminfo(array).policy == self._name


scratch.__module__ = "memrt.numba"
