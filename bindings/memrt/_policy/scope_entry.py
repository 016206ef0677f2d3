"""Enter scopes, for a block, for the calls of a function, or for calls from other threads."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from memrt._policy import handlers
from memrt._policy.current_scope import current_scope, enter_scope, leave_scope
from memrt._policy.limit_amount import check_limits, parse_amount
from memrt._policy.scope import Scope, open_scope
from memrt._support.leaving import end_block
from memrt._support.public import public

_F = TypeVar("_F", bound=Callable[..., Any])


@public("memrt")
class scope:  # noqa: N801 (a context manager that reads like a function)
    """Count the allocations of a block or function for a scope; a context manager or a decorator.

    A scope entered inside another scope is nested in the outer scope. Entering the name of the
    current scope stays in the current scope, so a recursive function has one scope. Entering the
    same name at the same level of the tree again continues the earlier scope. Scopes may be left in
    any order.

    Parameters
    ----------
    name : str
        Name of the scope, 1 to 63 bytes in UTF-8, without a zero byte.
    limit : int or str, optional
        Maximum of live bytes in the scope and all scopes inside of it: a whole number, or a text
        like "2 GiB" or "512M". A larger total is refused with MemoryError, see :func:`memrt.limit`.
        The limit is set on entry, and lasts until another limit is set, or until no
        :class:`memrt.types.Scope` of the scope and its inner scopes is left. None: leave the limit
        as it is.
    soft : int or str, optional
        Live bytes from which memrt frees memory without refusals: a number or text like `limit`, at
        most the limit. None: leave the soft limit as it is.

    Raises
    ------
    ValueError
        The name or the limit is bad.
    TypeError
        The name is not a text, or the limit is neither a text nor a whole number.
    RuntimeError
        On entry: 4096 scopes are held or have live blocks.

    Warns
    -----
    RuntimeWarning
        The scope was left in a context where the scope was not entered, which changes nothing. The
        warning never replaces a pending exception.

    Notes
    -----
    Arrays of NumPy count while memrt is NumPy's allocator, by a policy or :func:`memrt.enable`.
    Allocations by memrt's own functions and by jitted functions always count.

    Threads: a scope belongs to the current context. Tasks of asyncio and ``asyncio.to_thread``
    inherit the scope. Under ``memrt.enable()``, calls submitted to a
    ``concurrent.futures.ThreadPoolExecutor`` run in the scope of the submitter.
    :func:`memrt.bind_scope` carries the scope to other threads. Allocations by code that runs
    without the GIL are in no Python scope.

    Examples
    --------
    >>> import memrt
    >>> with memrt.scope("load") as load:
    ...     table = memrt.zeros(1000)
    >>> @memrt.scope("step")
    ... def step():
    ...     return memrt.current_scope().name
    >>> load.live, step()
    (8000, 'step')
    """

    __slots__ = ("_limit", "_name", "_soft")

    def __init__(
        self, name: str, *, limit: int | str | None = None, soft: int | str | None = None
    ) -> None:
        _check_name(name)
        self._name = name
        self._limit = None if limit is None else parse_amount(limit)
        self._soft = None if soft is None else parse_amount(soft, "soft limit")
        check_limits(self._limit, self._soft)

    def __enter__(self) -> Scope:
        entered = current_scope()
        if entered is None or entered._name != self._name:
            entered = open_scope(entered, self._name)
        if self._limit is not None:
            entered.limit = self._limit
        if self._soft is not None:
            entered.soft_limit = self._soft
        enter_scope(self, entered)
        return entered

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        end_block(kind, self._end)

    def _end(self) -> str | None:
        if leave_scope(self):
            return None
        return handlers.problem_of(handlers.NOT_ENTERED, f"scope {self._name!r}")

    def __call__(self, function: _F) -> _F:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__name__} is a generator, and runs in the scope of the caller of "
                "next(): use 'with memrt.scope(...)' inside the generator"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_later(*args: Any, **kwargs: Any) -> Any:
                with scope(self._name, limit=self._limit, soft=self._soft):
                    return await function(*args, **kwargs)

            return run_later  # type: ignore[return-value]

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with scope(self._name, limit=self._limit, soft=self._soft):
                return function(*args, **kwargs)

        return run  # type: ignore[return-value]

    def __repr__(self) -> str:
        bound = "" if self._limit is None else f", limit={self._limit}"
        soft = "" if self._soft is None else f", soft={self._soft}"
        return f"memrt.scope({self._name!r}{bound}{soft})"


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"name of a scope must be a text, got {type(name).__name__}")
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError("name of a scope must be encodable in UTF-8") from None
    if not 1 <= length <= 63:
        raise ValueError(f"name of a scope must have 1 to 63 bytes in UTF-8, got {length:,}")
    if "\0" in name:
        raise ValueError(f"name of a scope must have no zero byte, got {name!r}")


@public("memrt")
def bind_scope(function: _F) -> _F:
    """Bind a function to the current scope of the caller of bind_scope().

    Use bind_scope for threads, executors and callbacks that do not inherit a context.

    Parameters
    ----------
    function : callable
        Function to bind.

    Returns
    -------
    callable
        Function that runs in the scope; `function` itself without a current scope.

    Notes
    -----
    Threads: any thread and context may call the result.

    Examples
    --------
    >>> import memrt, threading
    >>> made = []
    >>> with memrt.scope("work") as work:
    ...     job = memrt.bind_scope(lambda: made.append(memrt.alloc(1000)))
    >>> thread = threading.Thread(target=job)
    >>> thread.start()
    >>> thread.join()
    >>> work.live
    1000
    """
    carried = current_scope()
    if carried is None:
        return function

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        owner = object()
        enter_scope(owner, carried)
        try:
            return function(*args, **kwargs)
        finally:
            leave_scope(owner)

    return run  # type: ignore[return-value]
