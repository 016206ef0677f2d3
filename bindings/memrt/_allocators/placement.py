"""Place memory on NUMA nodes and huge pages, lock it in memory, and find the place of arrays."""

from __future__ import annotations

from errno import errorcode
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from memrt import _memrt
from memrt._support.public import public
from memrt._support.units import human_bytes

_LOCKS: dict[object, int] = {False: 0, "try": 1, True: 2}
_Asked: TypeAlias = tuple[str | None, str | None, int, int, int, int, int, int, int, int]
_THREADS_MAX = 64
_REFUSALS = ("1G", "2M", "thp", "node", "home", "lock")
_LOCK_NAMES: tuple[bool | str, ...] = (False, "try", True)


@public("memrt.types")
class PlacementAsked(NamedTuple):
    """Placement that a policy asks for, and refusals of the system.

    Examples
    --------
    >>> import memrt
    >>> with memrt.Policy(pages="4K", lock="try"):
    ...     array = memrt.zeros(1000)
    >>> asked = memrt.debug.placement(array).asked
    >>> asked.pages, asked.node, asked.lock
    ('4K', None, 'try')
    """

    pages: str | None
    """Pages, as given to the policy; None: as the process."""
    node: str | None
    """NUMA nodes, as a text; None: as the system decides."""
    lock: bool | str
    """Lock in memory, as given to the policy."""
    prefault: bool | int
    """Whether all pages have memory from the start, or the threads that give the memory."""
    refused: dict[str, str]
    """Last error of the system for "1G", "2M", "thp", "node", "home" and "lock"."""


@public("memrt.types")
class Placement(NamedTuple):
    """Place of the pages of an array, in bytes, by :func:`memrt.debug.placement`.

    Examples
    --------
    >>> import memrt
    >>> array = memrt.zeros((1000, 1000))
    >>> array[:] = 1
    >>> memrt.debug.placement(array).resident >= array.nbytes
    True
    """

    nbytes: int
    """Whole pages that contain the array."""
    resident: int
    """Pages in memory. Pages that were never written do not count."""
    huge: int | None
    """Part of `resident` in huge pages; None on Linux before 6.7."""
    locked: int
    """Pages that the system never moves to swap space."""
    swapped: int
    """Pages in swap space."""
    nodes: dict[int, int] | None
    """Resident bytes by NUMA node; None if the system knows no nodes."""
    asked: PlacementAsked | None
    """Requests of the array's policy; None for a policy without placement, and where memrt does not
    find the policy."""

    def __str__(self) -> str:
        huge = "unknown" if self.huge is None else human_bytes(self.huge)
        text = (
            f"{human_bytes(self.nbytes)}: {human_bytes(self.resident)} resident, {huge} in huge "
            f"pages, {human_bytes(self.locked)} locked, {human_bytes(self.swapped)} swapped"
        )
        if self.nodes:
            parts = (f"{human_bytes(size)} on node {node}" for node, size in self.nodes.items())
            text += "; " + ", ".join(parts)
        if self.asked is not None and self.asked.refused:
            parts = (f"{part} refused ({why})" for part, why in self.asked.refused.items())
            text += "; " + ", ".join(parts)
        return text


def _read_asked(fields: _Asked | None) -> PlacementAsked | None:
    if fields is None:
        return None
    pages, node, lock, prefault, *errors = fields
    refused = {
        part: errorcode.get(error, str(error))
        for part, error in zip(_REFUSALS, errors, strict=True)
        if error
    }
    threads = prefault if prefault > 1 else bool(prefault)
    return PlacementAsked(pages, node, _LOCK_NAMES[lock], threads, refused)


@public("memrt.debug")
def placement(array: np.ndarray[Any, Any] | memoryview) -> Placement:
    """Return the place of an array's memory: nodes, huge pages, locks, swap space.

    Parameters
    ----------
    array : numpy.ndarray or memoryview
        Any array, also of another allocator. For a view, the pages from its first to its last byte.

    Returns
    -------
    memrt.types.Placement
        Figures of the system at this moment, and the requests of the policy. ``str()`` of the
        result is a sentence.

    Raises
    ------
    TypeError
        The argument is neither an array of NumPy nor a memoryview.
    OSError
        The system does not let the process read /proc/self/pagemap.

    Notes
    -----
    Costs about 20 ns for each page of the array, and a reading of ``/proc/self/smaps``, without the
    GIL. Other threads may touch pages meanwhile.

    Examples
    --------
    >>> import memrt
    >>> with memrt.Policy(node=0, prefault=True):
    ...     array = memrt.empty((1000, 1000))
    >>> placement = memrt.debug.placement(array)
    >>> placement.resident == placement.nbytes, placement.asked.node
    (True, '0')
    """
    nbytes, resident, huge, locked, swapped, nodes, asked = _memrt.placement_read(array)
    by_node = None if nodes is None else dict(nodes)
    return Placement(nbytes, resident, huge, locked, swapped, by_node, _read_asked(asked))


def placed_capsule(
    pages: str | None, node: int | str | None, lock: object, prefault: bool | int
) -> object:
    """Return a capsule with a placed allocator.

    Raises
    ------
    ValueError
        A setting is bad, or the system does not have the node.
    TypeError
        A setting has a bad type.
    MemoryError
        The allocation of the allocator failed.
    """
    if not isinstance(lock, (bool, str)) or lock not in _LOCKS:
        raise ValueError(f"lock must be True, False or 'try', got {lock!r}")
    if isinstance(node, bool) or not isinstance(node, (int, str, type(None))):
        raise TypeError(f"node must be a whole number, a text or None, got {type(node).__name__}")
    if not isinstance(prefault, int):
        raise TypeError(f"prefault must be True, False or a number, got {type(prefault).__name__}")
    if not 0 <= prefault <= _THREADS_MAX:
        raise ValueError(f"prefault must be from 0 to {_THREADS_MAX} threads, got {prefault}")
    text = node if node is None else str(node)
    return _memrt.allocator_placed(pages, text, _LOCKS[lock], prefault)
