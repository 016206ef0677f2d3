"""Kinds of CUDA memory, with statistics and a limit for each kind."""

from __future__ import annotations

from dataclasses import dataclass

from memrt import _memrt

KINDS = ("device", "managed", "pinned")
"""Names of the kinds, in the order of the numbers of ``memrt_memory_t``, starting at 1."""

_UNLIMITED = 2**64 - 1


def kind_number(kind: str) -> int:
    """Return the ``memrt_memory_t`` number of a kind of memory.

    Raises:
        ValueError: the kind does not exist.
    """
    if kind not in KINDS:
        raise ValueError(f"kind of CUDA memory must be one of {', '.join(KINDS)}, got {kind!r}")
    return KINDS.index(kind) + 1


@dataclass(frozen=True, slots=True)
class CudaStats:
    """Exact statistics of the memory that memrt allocated of one CUDA kind, on all devices.

    Memory that other libraries allocated and memrt only holds is not included. Both such memory
    and the bytes counted here are part of ``adopted`` in :func:`memrt.stats`.
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


def stats(kind: str = "device") -> CudaStats:
    """Return the statistics of a kind of memory: "device", "managed" or "pinned".

    Works without a driver.

    Threads: any thread may call this function.

    Raises:
        ValueError: `kind` is any other text.
    """
    live, peak, limit, *counts = _memrt.cuda_stats(kind_number(kind))
    return CudaStats(live, peak, None if limit == _UNLIMITED else limit, *counts)


def set_limit(kind: str, nbytes: int | None) -> None:
    """Limit the memory of a kind in use to `nbytes` bytes; None removes the limit.

    Memory already in use stays allocated. A request beyond the limit raises MemoryError, also for
    NumPy's pinned arrays. For NumPy's pinned arrays the block headers count too.

    Raises:
        ValueError: the kind is unknown or `nbytes` is negative.
    """
    _memrt.cuda_set_limit(kind_number(kind), _UNLIMITED if nbytes is None else nbytes)
