"""Kinds of CUDA memory, with statistics and a limit for each kind."""

from __future__ import annotations

from dataclasses import dataclass

from memrt import _memrt
from memrt._support.public import public

KINDS = ("device", "managed", "pinned")
"""Names of the kinds, in the order of the numbers of ``memrt_memory_t``, starting at 1."""

_UNLIMITED = 2**64 - 1


def kind_number(kind: str) -> int:
    """Return the ``memrt_memory_t`` number of a kind of memory.

    Raises
    ------
    ValueError
        The kind does not exist.
    """
    if kind not in KINDS:
        raise ValueError(f"kind of CUDA memory must be one of {', '.join(KINDS)}, got {kind!r}")
    return KINDS.index(kind) + 1


@public("memrt.cuda")
@dataclass(frozen=True, slots=True)
class CudaStats:
    """Exact statistics of the memory that memrt allocated of one CUDA kind, on all devices.

    Memory that other libraries allocated and memrt only holds is not included. Both such memory and
    the bytes counted here are part of ``adopted`` in :func:`memrt.stats`.

    Examples
    --------
    >>> import memrt
    >>> array = memrt.cuda.empty(1000, "f4")
    >>> memrt.cuda.stats().live
    4000
    """

    live: int
    """Bytes in use now."""
    peak: int
    """Maximum of bytes in use since the start of the process."""
    limit: int | None
    """Maximum of bytes allowed in use; None: no limit."""
    alloc: int
    """Number of buffers ever allocated."""
    free: int
    """Number of buffers ever freed."""
    failed: int
    """Number of requests refused by the driver or the limit."""
    lost: int
    """Number of buffers in `free` whose memory the driver refused to free."""
    cached: int
    """Bytes of freed pinned memory, kept for later requests; 0 for the other kinds."""


@public("memrt.cuda")
def stats(kind: str = "device") -> CudaStats:
    """Return the statistics of a kind of CUDA memory. Works without a driver.

    Parameters
    ----------
    kind : {'device', 'managed', 'pinned'}, default 'device'
        Kind of memory.

    Returns
    -------
    CudaStats
        Snapshot of the account.

    Raises
    ------
    ValueError
        `kind` is any other text.

    Examples
    --------
    >>> import memrt
    >>> memrt.cuda.stats("managed").live
    0
    """
    live, peak, limit, *counts = _memrt.cuda_stats(kind_number(kind))
    return CudaStats(live, peak, None if limit == _UNLIMITED else limit, *counts)


@public("memrt.cuda")
def set_limit(kind: str, nbytes: int | None) -> None:
    """Limit the memory of a kind in use.

    Memory already in use stays allocated. A request beyond the limit raises MemoryError, also for
    NumPy's pinned arrays, where the block headers count too.

    Parameters
    ----------
    kind : {'device', 'managed', 'pinned'}
        Kind of memory.
    nbytes : int or None
        Maximum of bytes in use, on all devices. None: no limit.

    Raises
    ------
    ValueError
        The kind is unknown or `nbytes` is negative.

    Examples
    --------
    >>> import memrt
    >>> memrt.cuda.set_limit("device", 2**30)
    >>> memrt.cuda.stats().limit
    1073741824
    >>> memrt.cuda.set_limit("device", None)
    """
    _memrt.cuda_set_limit(kind_number(kind), _UNLIMITED if nbytes is None else nbytes)
