"""Account memory by scope: a named part of the program, entered by ``with memrt.scope(name)``.

Scopes form a tree. An allocation counts for the current scope and the scopes around the current
scope. The free of a block counts for the scope of the allocation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

from memrt import _memrt
from memrt._policy import handlers
from memrt._stats.snapshot import Stats
from memrt._support.leaving import end_block
from memrt._support.units import human_bytes

if TYPE_CHECKING:
    from contextvars import ContextVar

_F = TypeVar("_F", bound=Callable[..., Any])


class Scope:
    """Node in the tree of scopes, with the statistics of the allocations made in the scope.

    All figures include the nested scopes. A free counts for the scope of the allocation, wherever
    and whenever the free happens, so no figure falls below zero. The figures are current at each
    reading, also after the scope was left.

    Examples
    --------
    >>> import memrt
    >>> with memrt.scope("load") as load:
    ...     table = memrt.zeros(1000)
    >>> load.path, load.live
    (('load',), 8000)
    """

    __slots__ = ("_capsule", "_handlers", "_id", "_name", "_path")

    def __init__(self, capsule: Any, path: tuple[str, ...]) -> None:
        self._capsule = capsule
        self._handlers: dict[int, Any] = {}
        self._id, self._name, _ = _memrt.scope_info(capsule)
        self._path = path

    @property
    def name(self) -> str:
        """Name of the scope."""
        return self._name

    @property
    def path(self) -> tuple[str, ...]:
        """Names from the outermost scope to this scope."""
        return self._path

    @property
    def live(self) -> int:
        """Bytes in use now."""
        return self.stats().live

    @property
    def peak(self) -> int:
        """Most bytes in use at once; ``stats().peak_error`` is the error bound."""
        return self.stats().peak

    @property
    def total(self) -> int:
        """Bytes allocated so far."""
        return self.stats().total

    def stats(self) -> Stats:
        """Return the statistics of the scope.

        Returns
        -------
        memrt.types.Stats
            Snapshot of the account. `cached` is 0: cached memory belongs to no scope.
        """
        return Stats(*_memrt.scope_stats(self._capsule))

    def sizes(self) -> dict[int, int]:
        """Return a histogram of allocation sizes.

        Returns
        -------
        dict of int to int
            Counts by upper bound. The value of key k counts allocations of at least k/2 and fewer
            than k bytes. Key 1 counts empty blocks. Ranges without allocations are left out. The
            last possible key, 1 << 47, also counts all larger allocations.

        Examples
        --------
        >>> import memrt
        >>> with memrt.scope("sizes") as scope:
        ...     buffers = [memrt.alloc(size) for size in (0, 100, 120)]
        >>> scope.sizes()
        {1: 1, 128: 2}
        """
        counts = enumerate(_memrt.scope_sizes(self._capsule))
        return {1 << bits: count for bits, count in counts if count != 0}

    def reset_peak(self) -> None:
        """Restart the peak at the bytes live now."""
        _memrt.scope_reset_peak(self._capsule)

    def __eq__(self, other: object) -> bool:
        return self._id == other._id if isinstance(other, Scope) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._id)

    def __copy__(self) -> Scope:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Scope:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"cannot pickle scope {self._name!r}: a scope belongs to one process, so send the "
            "figures of stats() to the other process"
        )

    def __repr__(self) -> str:
        return f"<memrt.types.Scope {' / '.join(self._path)!r}: {_figures(self.stats())}>"


def _figures(stats: Stats) -> str:
    blocks = stats.alloc - stats.free
    return (
        f"{human_bytes(stats.live)} live in {blocks:,} block{'' if blocks == 1 else 's'}, "
        f"peak {human_bytes(stats.peak)}, total {human_bytes(stats.total)}"
    )


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

    Raises
    ------
    ValueError
        The name is bad.
    TypeError
        The name is not a text.
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

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        _check_name(name)
        self._name = name

    def __enter__(self) -> Scope:
        entered = current_scope()
        if entered is None or entered._name != self._name:
            entered = _open(entered, self._name)
        _enter(self, entered)
        return entered

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        end_block(kind, self._end)

    def _end(self) -> str | None:
        if _leave(self):
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
                with scope(self._name):
                    return await function(*args, **kwargs)

            return run_later  # type: ignore[return-value]

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with scope(self._name):
                return function(*args, **kwargs)

        return run  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"memrt.scope({self._name!r})"


# Entry of an entered scope: owner, scope, capsule, handlers. The owner is the object that entered
# the scope, compared by identity on leaving. The extension reads the capsule, and caches NumPy
# handlers for the scope in the dict, by policy index. The last entry of a context has the current
# scope.
_Entry: TypeAlias = tuple[object, Scope, Any, dict[int, Any]]
_entries: ContextVar[tuple[_Entry, ...]] = _memrt.scope_variable


def scope_name(path: tuple[str, ...]) -> str:
    """Join the names of a path with slashes. A slash or backslash in a name gets a backslash."""
    return "/".join(name.replace("\\", "\\\\").replace("/", "\\/") for name in path)


def current_scope() -> Scope | None:
    """Return the current scope of this context.

    Returns
    -------
    memrt.types.Scope or None
        Scope that allocations count for; None outside of scopes.

    Examples
    --------
    >>> import memrt
    >>> with memrt.scope("load"):
    ...     memrt.current_scope().name
    'load'
    >>> memrt.current_scope() is None
    True
    """
    entries = _entries.get()
    return entries[-1][1] if entries else None


def _open(around: Scope | None, name: str) -> Scope:
    """Return the scope `name` directly inside the scope `around`; None: at the top of the tree."""
    if around is None:
        return Scope(_memrt.scope_open(None, name), (name,))
    return Scope(_memrt.scope_open(around._capsule, name), (*around._path, name))


def _set_entries(entries: tuple[_Entry, ...]) -> None:
    """Set the scope entries of this context and the handler for the new scope, or change nothing.

    On failure the old entries are restored and the exception propagates.
    """
    before = _entries.get()
    try:
        _entries.set(entries)
        handlers.follow_scope()
    except BaseException:
        # set() may raise MemoryError for its token after the variable has changed.
        _entries.set(before)
        raise


def _enter(owner: object, entered: Scope) -> None:
    _set_entries((*_entries.get(), (owner, entered, entered._capsule, entered._handlers)))


def _leave(owner: object) -> bool:
    """Remove the last entry of `owner` from this context. Return whether there was an entry."""
    entries = _entries.get()
    for index in range(len(entries) - 1, -1, -1):
        if entries[index][0] is owner:
            _set_entries((*entries[:index], *entries[index + 1 :]))
            return True
    return False


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
        _enter(owner, carried)
        try:
            return function(*args, **kwargs)
        finally:
            _leave(owner)

    return run  # type: ignore[return-value]


def scope_paths() -> dict[int, str]:
    """Return the path of each scope by the scope's number, with '' for number 0: outside of scopes.

    Slashes join the names. Slashes in names are not escaped, unlike in scope_name().
    """
    paths = {0: ""}
    for capsule in _memrt.scopes():  # parents before children
        number, name, parent = _memrt.scope_info(capsule)
        paths[number] = f"{paths[parent]}/{name}" if parent else name
    return paths


class ScopeTree:
    """Tree of the scopes that exist at construction, for iteration and lookup by path.

    Iteration yields all scopes, parents before children. Scopes opened later are missing. The
    figures of each scope are current at each reading.

    Examples
    --------
    >>> import memrt
    >>> with memrt.scope("outer"), memrt.scope("inner"):
    ...     table = memrt.zeros(1000)
    >>> tree = memrt.scopes()
    >>> tree["outer/inner"].live, [scope.name for scope in tree.children(tree["outer"])]
    (8000, ['inner'])
    """

    __slots__ = ("_children", "_scopes")

    def __init__(self) -> None:
        self._scopes: list[Scope] = []
        self._children: dict[int, list[Scope]] = {}
        paths: dict[int, tuple[str, ...]] = {0: ()}
        for capsule in _memrt.scopes():  # parents before children
            number, name, parent = _memrt.scope_info(capsule)
            paths[number] = (*paths[parent], name)
            found = Scope(capsule, paths[number])
            self._scopes.append(found)
            self._children.setdefault(parent, []).append(found)

    def children(self, scope: Scope | None = None) -> list[Scope]:
        """Return the scopes directly inside a scope.

        Parameters
        ----------
        scope : Scope, optional
            Scope of the tree. None: return the outermost scopes.

        Returns
        -------
        list of Scope
            Scopes nested one level deep.
        """
        return list(self._children.get(0 if scope is None else scope._id, ()))

    def __iter__(self) -> Iterator[Scope]:
        return iter(self._scopes)

    def __len__(self) -> int:
        return len(self._scopes)

    def __getitem__(self, path: str | tuple[str, ...]) -> Scope:
        """Return the scope of a path.

        Parameters
        ----------
        path : str or tuple of str
            Names joined by slashes, or a tuple of names. A name with a slash needs the tuple.

        Returns
        -------
        Scope
            Scope of the path.

        Raises
        ------
        KeyError
            The tree has no such scope.
        """
        names = tuple(path.split("/")) if isinstance(path, str) else path
        for found in self._scopes:
            if found.path == names:
                return found
        raise KeyError(path)

    def _lines(self, scope: Scope | None, indent: str) -> Iterator[str]:
        for child in self.children(scope):
            yield f"{indent}{child.name}: {_figures(child.stats())}"
            yield from self._lines(child, indent + "  ")

    def __repr__(self) -> str:
        return "\n".join(["memrt.scopes:", *(self._lines(None, "  "))])


def scopes() -> ScopeTree:
    """Return the tree of scopes.

    Returns
    -------
    memrt.types.ScopeTree
        Tree of the scopes that exist now.

    Notes
    -----
    A scope stays in the tree with its figures after the scope was left. At the limit of 4096
    scopes, the oldest scopes without references and live blocks are removed. The figures of a
    removed scope stay in the figures of the enclosing scope.

    Examples
    --------
    >>> import memrt
    >>> with memrt.scope("load"):
    ...     table = memrt.zeros(1000)
    >>> memrt.scopes()["load"].live
    8000
    """
    return ScopeTree()
