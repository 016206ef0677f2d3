"""The kinds of CUDA memory, and the account of each."""

from __future__ import annotations

from dataclasses import dataclass

from memrt import _memrt

KINDS = ("device", "managed", "pinned")
"""By the numbers of ``memrt_memory_t``, from 1 on."""

_UNLIMITED = 2**64 - 1


def kind_number(kind: str) -> int:
    """The number of a kind of memory.

    Raises:
        ValueError: there is none by that name.
    """
    if kind not in KINDS:
        raise ValueError(f"a kind of CUDA memory is one of {', '.join(KINDS)}, got {kind!r}")
    return KINDS.index(kind) + 1


@dataclass(frozen=True, slots=True)
class CudaStats:
    """What memrt allocated of one kind of CUDA memory, on all devices; exact.

    What other libraries allocated and memrt only holds is not in it: that is part of ``adopted``
    in :func:`memrt.stats`, as these bytes are, too.
    """

    live: int
    """Bytes in use now."""
    peak: int
    """Most bytes in use at once since the start of the process."""
    limit: int | None
    """Most bytes in use at once that are allowed; None: any number."""
    alloc: int
    """Buffers ever allocated."""
    free: int
    """Buffers ever given back."""
    failed: int
    """Requests that the driver or the limit refused."""
    lost: int
    """Of `free`, those that the driver refused to take back."""


def stats(kind: str = "device") -> CudaStats:
    """The account of a kind of memory: "device", "managed" or "pinned".

    Works without a driver, too. Any thread may ask.

    Raises:
        ValueError: for any other kind.
    """
    live, peak, limit, *counts = _memrt.cuda_stats(kind_number(kind))
    return CudaStats(live, peak, None if limit == _UNLIMITED else limit, *counts)


def set_limit(kind: str, nbytes: int | None) -> None:
    """Allow at most `nbytes` bytes of a kind of memory in use at once, None: any number.

    What is in use already stays. A request beyond it is a MemoryError, in NumPy's pinned arrays,
    too. Of these the headers of blocks count.

    Raises:
        ValueError: for an unknown kind or a negative number.
    """
    _memrt.cuda_set_limit(kind_number(kind), _UNLIMITED if nbytes is None else nbytes)
