"""Scopes: memory knows in which part of a program it was born."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from memrt import _handlers, _memrt
from memrt._stats import Stats
from memrt._units import human_bytes

if TYPE_CHECKING:
    from contextvars import ContextVar

_F = TypeVar("_F", bound=Callable[..., Any])


class Scope:
    """A place in the tree of scopes, and what was born there.

    All figures have those of the scopes inside of it. What is born in a scope is the scope's
    wherever and whenever it is freed, so nothing is ever below zero. They can be read at any time,
    also after the scope was left.
    """

    __slots__ = ("_capsule", "_handlers", "_id", "_name", "_path")

    def __init__(self, capsule: Any, path: tuple[str, ...]) -> None:
        self._capsule = capsule
        self._handlers: dict[int, Any] = {}
        self._id, self._name, _ = _memrt.scope_info(capsule)
        self._path = path

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the outermost scope to this one."""
        return self._path

    @property
    def live(self) -> int:
        """Bytes in use now."""
        return self.stats().live

    @property
    def peak(self) -> int:
        """Most bytes in use at once; ``stats().peak_error`` says by how much it may be off."""
        return self.stats().peak

    @property
    def total(self) -> int:
        """Bytes ever allocated."""
        return self.stats().total

    def stats(self) -> Stats:
        """All its figures. What is kept for reuse is no scope's: `cached` is 0."""
        return Stats(*_memrt.scope_stats(self._capsule))

    def sizes(self) -> dict[int, int]:
        """Births by size: how many of fewer bytes than the key, and no fewer than half of it.

        Empty blocks are under 1, and sizes without births are left out. The last key stands for all
        that is larger, too.
        """
        counts = enumerate(_memrt.scope_sizes(self._capsule))
        return {1 << bits: count for bits, count in counts if count != 0}

    def reset_peak(self) -> None:
        """Let the peak start again from what is live now."""
        _memrt.scope_reset_peak(self._capsule)

    def __eq__(self, other: object) -> bool:
        return self._id == other._id if isinstance(other, Scope) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"<memrt.Scope {' / '.join(self._path)!r}: {_figures(self.stats())}>"


def _figures(stats: Stats) -> str:
    blocks = stats.alloc - stats.free
    return (
        f"{human_bytes(stats.live)} live in {blocks:,} block{'' if blocks == 1 else 's'}, "
        f"peak {human_bytes(stats.peak)}, total {human_bytes(stats.total)}"
    )


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of a scope is a text, got {type(name).__name__}")
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError("the name of a scope is a text that UTF-8 has bytes for") from None
    if not 1 <= length <= 63:
        raise ValueError(f"the name of a scope has 1 to 63 bytes in UTF-8, got {length:,}")
    if "\0" in name:
        raise ValueError(f"the name of a scope has no zero byte, got {name!r}")


class scope:  # noqa: N801 (a context manager that reads like a function)
    """Let what is made inside be born in the scope of that name; a context manager, or a decorator.

    ::

        with memrt.scope("load") as s:
            data = np.load(path)
        print(s.live, s.peak)

        @memrt.scope("step")
        def step(state): ...

    Inside another scope it is a part of that one; in one of the same name it is that one, so that
    a function that calls itself has one scope. Entering a name again goes on with the same scope.
    NumPy's arrays are counted where memrt is in force, by a policy or :func:`memrt.enable`;
    memrt's own calls and the arrays of jitted functions always. Scopes may be left in any order.

    Scope: the current context. Tasks of asyncio and ``asyncio.to_thread`` inherit it. Under
    ``memrt.enable()`` what is submitted to a ``concurrent.futures.ThreadPoolExecutor`` runs in the
    scope of who submits it; :func:`memrt.carry` does that for any other thread. Code that runs
    without the GIL and asks for memory is in no scope of Python's.

    Args:
        name: 1 to 63 bytes in UTF-8, without a zero byte.

    Raises:
        ValueError: for a bad name.
        TypeError: when it is no text.
        RuntimeError: when it is left in a context where it was not entered, or 4096 scopes are held
            or have live blocks.
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
        if not _leave(self):
            raise RuntimeError(
                f"scope {self._name!r} was not entered in this context: leave it in the thread, "
                "task or context where it was entered"
            )

    def __call__(self, function: _F) -> _F:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__name__} is a generator, which runs in the scope of who asks for its "
                "next value: use 'with memrt.scope(...)' inside of it"
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


# Who entered, the scope, and for the extension its capsule and its handlers by index of their
# policy; the last is what this context is in.
_Entry: TypeAlias = tuple[object, Scope, Any, dict[int, Any]]
_entries: ContextVar[tuple[_Entry, ...]] = _memrt.scope_variable


def scope_name(path: tuple[str, ...]) -> str:
    """The names of a path with slashes between them; one in a name has a backslash before it."""
    return "/".join(name.replace("\\", "\\\\").replace("/", "\\/") for name in path)


def current_scope() -> Scope | None:
    """The scope that this context is in, or None."""
    entries = _entries.get()
    return entries[-1][1] if entries else None


def _open(around: Scope | None, name: str) -> Scope:
    """The scope of that name inside `around`."""
    if around is None:
        return Scope(_memrt.scope_open(None, name), (name,))
    return Scope(_memrt.scope_open(around._capsule, name), (*around._path, name))


def _put(entries: tuple[_Entry, ...]) -> None:
    """Make `entries` those of this context, with all that follows from it, or change nothing."""
    before = _entries.get()
    try:
        _entries.set(entries)
        _handlers.follow_scope()
    except BaseException:
        _entries.set(before)  # also where it was set, but not the token that says so
        raise


def _enter(owner: object, entered: Scope) -> None:
    _put((*_entries.get(), (owner, entered, entered._capsule, entered._handlers)))


def _leave(owner: object) -> bool:
    entries = _entries.get()
    for index in range(len(entries) - 1, -1, -1):
        if entries[index][0] is owner:
            _put((*entries[:index], *entries[index + 1 :]))
            return True
    return False


def carry(function: _F) -> _F:
    """`function`, to be called anywhere, in the scope that the caller of carry() is in.

    For threads, executors and callbacks that do not inherit a context.
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


class ScopeTree:
    """All scopes at one moment; iterating gives them, parents before children."""

    __slots__ = ("_children", "_scopes")

    def __init__(self) -> None:
        self._scopes: list[Scope] = []
        self._children: dict[int, list[Scope]] = {}
        paths: dict[int, tuple[str, ...]] = {0: ()}
        for capsule in _memrt.scopes():
            number, name, parent = _memrt.scope_info(capsule)
            paths[number] = (*paths[parent], name)
            found = Scope(capsule, paths[number])
            self._scopes.append(found)
            self._children.setdefault(parent, []).append(found)

    def children(self, scope: Scope | None = None) -> list[Scope]:
        """The scopes directly inside of one; of None, the outermost."""
        return list(self._children.get(0 if scope is None else scope._id, ()))

    def __iter__(self) -> Iterator[Scope]:
        return iter(self._scopes)

    def __len__(self) -> int:
        return len(self._scopes)

    def __getitem__(self, path: str | tuple[str, ...]) -> Scope:
        """The scope of that path; a text with slashes, or the names."""
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
    """The tree of scopes.

    A scope that was left stays in it with its figures. When 4096 are there, the oldest that nobody
    holds and that have no live block make room; the scope around such a one keeps its figures.
    """
    return ScopeTree()
