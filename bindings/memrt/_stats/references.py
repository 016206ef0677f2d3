"""Count reference operations through the function table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from memrt import _memrt
from memrt._support.public import public

if TYPE_CHECKING:
    from memrt._policy.policy import Policy


@public("memrt.types")
class ReferenceCounts(NamedTuple):
    """Reference operations through the function table of memrt, since the start of the process.

    Examples
    --------
    >>> import memrt
    >>> counts = memrt.types.ReferenceCounts(acquired=5, released=3)
    >>> counts.acquired - counts.released
    2
    """

    acquired: int
    """References acquired."""
    released: int
    """References released."""


@public("memrt.debug")
def reference_counts(policy: Policy | None = None) -> ReferenceCounts | None:
    """Return the reference operations through the function table, if the process counts them.

    Parameters
    ----------
    policy : Policy, optional
        Policy with the buffers. None: the whole process.

    Returns
    -------
    memrt.types.ReferenceCounts or None
        Counts since the start of the process. None: the option ``MEMRT_REFERENCES`` is 0.

    Raises
    ------
    TypeError
        `policy` is not a Policy.

    Notes
    -----
    Compiled code that changes reference counts by itself is not counted, for example code of Numba.
    The reference of a new buffer is not counted either, so `released` may exceed `acquired`.

    Threads: operations that other threads make during the call may be missing.

    Examples
    --------
    >>> import memrt
    >>> counts = memrt.debug.reference_counts()
    >>> counts is None or counts.acquired >= 0
    True
    """
    counts = _memrt.reference_counts(policy)
    return None if counts is None else ReferenceCounts(*counts)
