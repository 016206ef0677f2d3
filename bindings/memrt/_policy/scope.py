"""Statistics of a scope: a named part of the program, a node in the tree of scopes.

An allocation counts for the current scope and the scopes around the current scope. The free of a
block counts for the scope of the allocation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, TypeAlias

from memrt import _memrt
from memrt._policy.limit_amount import (
    limit_text,
    read_limit,
    read_soft_limit,
    set_limit,
    set_soft_limit,
)
from memrt._stats.sizes import by_upper_bound
from memrt._stats.snapshot import FIELDS, Stats, main_figures
from memrt._support.html_table import html_table
from memrt._support.process_object import ProcessObject
from memrt._support.public import public
from memrt._support.units import human_bytes

_Reader: TypeAlias = Callable[[tuple[int, ...]], int]

_live: _Reader
_peak: _Reader
_total: _Reader
_live, _peak, _total = (itemgetter(FIELDS.index(name)) for name in ("live", "peak", "total"))


@public("memrt.types")
class Scope(ProcessObject):
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

    _kind = "scope"
    _pickle_advice = "send the figures of stats() to the other process"

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
    def limit(self) -> int | None:
        """Maximum of live bytes, or None without a limit; settable, also to a text."""
        return read_limit(self._capsule)

    @limit.setter
    def limit(self, amount: int | str | None) -> None:
        set_limit(self._capsule, amount)

    @property
    def soft_limit(self) -> int | None:
        """Live bytes from which memrt frees memory, or None; settable, also to a text."""
        return read_soft_limit(self._capsule)

    @soft_limit.setter
    def soft_limit(self, amount: int | str | None) -> None:
        set_soft_limit(self._capsule, amount)

    @property
    def live(self) -> int:
        """Bytes in use now."""
        return _live(_memrt.scope_stats(self._capsule))

    @property
    def peak(self) -> int:
        """Most bytes in use at once; ``stats().peak_error`` is the error bound."""
        return _peak(_memrt.scope_stats(self._capsule))

    @property
    def total(self) -> int:
        """Bytes allocated so far."""
        return _total(_memrt.scope_stats(self._capsule))

    def stats(self) -> Stats:
        """Return the statistics of the scope.

        Returns
        -------
        memrt.types.Stats
            Snapshot of the account. `cached` is 0: cached memory belongs to no scope.
        """
        return Stats(*_memrt.scope_stats(self._capsule))

    def sizes(self, *, live: bool = False) -> dict[int, int]:
        """Return the number of blocks by size, as :func:`memrt.debug.sizes` does for a policy.

        Parameters
        ----------
        live : bool, optional
            Count the blocks that are not freed, in place of all blocks allocated so far.

        Returns
        -------
        dict of int to int
            Counts by upper bound: key k counts blocks of at least k/2 and fewer than k bytes.

        Examples
        --------
        >>> import memrt
        >>> with memrt.scope("sizes") as scope:
        ...     buffers = [memrt.alloc(size) for size in (0, 100, 120)]
        >>> del buffers[1]
        >>> scope.sizes(), scope.sizes(live=True)
        ({1: 1, 128: 2}, {1: 1, 128: 1})
        """
        return by_upper_bound(_memrt.scope_sizes(self._capsule), live=live)

    def reset_peak(self) -> None:
        """Restart the peak at the bytes live now."""
        _memrt.scope_reset_peak(self._capsule)

    def __eq__(self, other: object) -> bool:
        return self._id == other._id if isinstance(other, Scope) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        figures = figures_text(self.stats()) + limit_text(self._capsule)
        return f"<memrt.types.Scope {' / '.join(self._path)!r}: {figures}>"

    def _repr_html_(self) -> str:
        """Return limit and main figures as an HTML table, for notebooks."""
        limit = self.limit
        rows = [*main_figures(self.stats()).items()]
        rows += [] if limit is None else [("limit", human_bytes(limit))]
        return html_table(f"memrt.types.Scope {' / '.join(self._path)!r}", rows, align="right")

    def __rich_repr__(self) -> Iterator[tuple[str, object] | object]:
        """Yield the fields of the representation in rich and Textual."""
        yield "/".join(self._path)
        yield from main_figures(self.stats()).items()


def open_scope(around: Scope | None, name: str) -> Scope:
    """Return the scope `name` directly inside the scope `around`; None: at the top of the tree."""
    if around is None:
        return Scope(_memrt.scope_open(None, name), (name,))
    return Scope(_memrt.scope_open(around._capsule, name), (*around._path, name))


def figures_text(stats: Stats) -> str:
    """Return the main figures of a scope as text."""
    blocks = stats.alloc - stats.free
    return (
        f"{human_bytes(stats.live)} live in {blocks:,} block{'' if blocks == 1 else 's'}, "
        f"peak {human_bytes(stats.peak)}, total {human_bytes(stats.total)}"
    )
