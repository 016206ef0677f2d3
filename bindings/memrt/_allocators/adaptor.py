"""Adaptors over allocators: their type, their counters and their creation."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Literal, NamedTuple

from memrt import _memrt
from memrt._allocators.allocator_source import allocator_capsule
from memrt._allocators.placement import placed_capsule
from memrt._support.public import public

_COUNTING = 1  # memrt_adaptor_kind_t
_COUNTS = struct.Struct("6N")  # memrt_adaptor_counts_t


@public("memrt.adaptors")
class AdaptorCounts(NamedTuple):
    """Counters of a counting adaptor.

    Examples
    --------
    >>> import memrt
    >>> memrt.adaptors.counting().counts.allocations
    0
    """

    allocations: int
    """Successful allocations."""
    resizes: int
    """Successful resizes."""
    frees: int
    """Freed blocks."""
    refusals: int
    """Refused allocations and resizes."""
    in_use: int
    """Bytes of live blocks, with memrt's headers."""
    peak: int
    """Maximum of `in_use`, in bytes."""


@public("memrt.adaptors")
class Adaptor:
    """Allocator over another allocator; the functions of the module create adaptors.

    Parameters
    ----------
    kind : str
        Name of the function that creates the adaptor.
    capsule : object
        Allocator as a capsule with the name "memrt.allocator".
    counts : bytearray, optional
        Memory of the counters of a counting adaptor.

    Examples
    --------
    >>> import memrt
    >>> memrt.adaptors.limiting(limit="1 MiB")
    <memrt.adaptors.limiting>
    """

    __slots__ = ("_capsule", "_counts", "_kind")

    def __init__(self, kind: str, capsule: object, counts: bytearray | None = None) -> None:
        self._kind = kind
        self._capsule = capsule
        self._counts = counts

    def __memrt_allocator__(self) -> object:
        """Return the allocator as a capsule, for a policy or another adaptor.

        Returns
        -------
        object
            Capsule with the name "memrt.allocator", the same object every time.
        """
        return self._capsule

    @property
    def counts(self) -> AdaptorCounts:
        """Counters of a counting adaptor; AttributeError for another adaptor."""
        if self._counts is None:
            raise AttributeError(f"adaptor with counts must be counting(), got {self._kind}()")
        return AdaptorCounts(*_COUNTS.unpack(self._counts))

    def __repr__(self) -> str:
        return f"<memrt.adaptors.{self._kind}>"


def adapt(
    name: str,
    kind: int,
    upstream: object,
    *,
    amount: int = 0,
    counts: bytearray | None = None,
    failed: Callable[[int, int], object] | None = None,
    file: int = -1,
) -> Adaptor:
    """Return an adaptor of a kind, a memrt_adaptor_kind_t, over an allocator of any form."""
    source = None if upstream is None else allocator_capsule(upstream)
    capsule = _memrt.allocator_adaptor(source, kind, amount, counts, failed, file)
    return Adaptor(name, capsule, counts)


@public("memrt.adaptors")
def counting(upstream: object = None) -> Adaptor:
    """Return an adaptor that counts calls and bytes.

    Parameters
    ----------
    upstream : object, optional
        Allocator, in a form that :class:`memrt.Policy` accepts. None: memrt's allocator.

    Returns
    -------
    Adaptor
        Adaptor with the property `counts`.

    Raises
    ------
    TypeError
        The upstream has no known form.
    ValueError
        The upstream belongs to another adaptor or policy, or its table is bad.
    MemoryError
        The allocation of the adaptor failed.

    Examples
    --------
    >>> import memrt
    >>> import numpy as np
    >>> calls = memrt.adaptors.counting()
    >>> with memrt.Policy(allocator=calls):
    ...     block = np.empty(1000)
    >>> calls.counts.allocations, calls.counts.in_use >= 8000
    (1, True)
    """
    return adapt("counting", _COUNTING, upstream, counts=bytearray(_COUNTS.size))


@public("memrt.adaptors")
def placed(
    *,
    pages: str | None = None,
    node: int | str | None = None,
    lock: Literal["try"] | bool = False,
    prefault: bool | int = False,
) -> Adaptor:
    """Return an allocator whose blocks lie on chosen pages, for example below an arena.

    ``memrt.Policy(pages=, node=, lock=, prefault=)`` is a policy over this allocator. Each block
    takes whole pages, at least two.

    Parameters
    ----------
    pages : str, optional
        Pages, as for :class:`memrt.Policy`.
    node : int or str, optional
        NUMA nodes, as for :class:`memrt.Policy`.
    lock : bool or 'try', default False
        Lock in memory, as for :class:`memrt.Policy`.
    prefault : bool or int, default False
        Memory from the start, as for :class:`memrt.Policy`.

    Returns
    -------
    Adaptor
        Allocator without an upstream.

    Raises
    ------
    ValueError
        A setting is bad, or the system does not have the node.
    TypeError
        A setting has a bad type.
    MemoryError
        The allocation of the allocator failed.

    Examples
    --------
    >>> import memrt
    >>> local = memrt.adaptors.placed(node="local")
    >>> with memrt.Policy(allocator=memrt.adaptors.arena(local, chunk="2 MiB")):
    ...     rows = [memrt.zeros(100) for _ in range(1000)]
    >>> memrt.debug.placement(rows[0]).asked.node
    'local'
    """
    return Adaptor("placed", placed_capsule(pages, node, lock, prefault))
