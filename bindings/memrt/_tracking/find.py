"""Find the buffer around an address."""

from __future__ import annotations

from typing import NamedTuple

from memrt import _memrt
from memrt._policy.scope_tree import scope_paths
from memrt._support.public import public


@public("memrt.types")
class Location(NamedTuple):
    """Place of an address in a live buffer, found by :func:`memrt.debug.find`.

    Examples
    --------
    >>> import memrt
    >>> mi = memrt.alloc(1000)
    >>> place = memrt.debug.find(mi.address + 10)
    >>> place.address == mi.address, place.nbytes, place.offset
    (True, 1000, 10)
    """

    address: int
    """Address of the first byte of the buffer."""
    nbytes: int
    """Size of the buffer in bytes."""
    offset: int
    """Bytes from the start of the buffer to the address."""
    id: int | None
    """Serial number of the buffer in the live list; None if the live list does not have it."""
    policy: str
    """Name of the policy; empty if the policy no longer exists."""
    scope: str | None
    """Path of the scope of the allocation, names joined by slashes; None outside of scopes."""


@public("memrt.debug")
def find(address: int) -> Location | None:
    """Find the live buffer whose data contains an address, for example of a debugger.

    Parameters
    ----------
    address : int
        Any address, also inside of a buffer, or of other memory.

    Returns
    -------
    memrt.types.Location or None
        Place in the buffer. None: no such buffer is known.

    Raises
    ------
    TypeError
        The address is no integer.
    ValueError
        The address is negative or has more than 64 bits.

    Notes
    -----
    The search covers all blocks of the default allocator, without tracking. From other sources, it
    covers the buffers that are tracked or have a name. The result holds no reference. Another
    thread may free the buffer during the call: then the result may be out of date.

    Examples
    --------
    >>> import memrt
    >>> with memrt.scope("load found"):
    ...     table = memrt.zeros(1000)
    >>> place = memrt.debug.find(table.ctypes.data + 80)
    >>> place.offset, place.nbytes, place.policy, place.scope
    (80, 8000, 'default', 'load found')
    >>> memrt.debug.find(0) is None
    True
    """
    found = _memrt.locate(address)
    if found is None:
        return None
    start, nbytes, number, policy, scope = found
    path = scope_paths().get(scope) if scope else None
    return Location(start, nbytes, address - start, number or None, policy, path)
