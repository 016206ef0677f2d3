"""Add properties to allocators: each adaptor wraps an allocator, the upstream.

Adaptors are allocators for ``memrt.Policy(allocator=...)``, and can be stacked. The upstream is any
allocator that a policy accepts, or memrt's own allocator.

Ownership: an adaptor takes over its upstream, and a policy takes over the adaptor. So an adaptor
serves a single policy.

Threads: adaptors take no locks, so several threads call the upstream at once, except of
:func:`thread_safe`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from memrt import _memrt
from memrt._allocators.adaptor import Adaptor, AdaptorCounts, adapt, counting, placed
from memrt._allocators.allocator_source import allocator_capsule, arena_capsule
from memrt._policy.limit_amount import parse_amount
from memrt._support.public import public

__all__ = [
    "Adaptor",
    "AdaptorCounts",
    "aligning",
    "arena",
    "counting",
    "guard",
    "limiting",
    "logging",
    "placed",
    "prefetching",
    "retrying",
    "thread_safe",
]

# memrt_adaptor_kind_t, after COUNTING
_LIMITING, _ALIGNING, _RETRYING, _LOGGING, _THREAD_SAFE, _PREFETCHING = range(2, 8)


class _File(Protocol):
    def fileno(self) -> int: ...


@public("memrt.adaptors")
def limiting(upstream: object = None, *, limit: int | str) -> Adaptor:
    """Return an adaptor that refuses requests above a number of bytes in use.

    The bytes include memrt's headers. See ``memrt.Policy(limit=...)`` for a limit of array data.

    Parameters
    ----------
    upstream : object, optional
        Allocator, as for :func:`counting`.
    limit : int or str
        Bytes: a whole number, or a text like "2 GiB".

    Returns
    -------
    Adaptor
        Adaptor with the limit.

    Raises
    ------
    TypeError
        The upstream has no known form, or the limit is neither a text nor a whole number.
    ValueError
        The limit is bad, or as for :func:`counting`.
    MemoryError
        The allocation of the adaptor failed.

    Examples
    --------
    >>> import memrt
    >>> with memrt.Policy(allocator=memrt.adaptors.limiting(limit="1 MiB")):
    ...     try:
    ...         memrt.empty(10**6)
    ...     except MemoryError:
    ...         print("refused")
    refused
    """
    return adapt("limiting", _LIMITING, upstream, amount=parse_amount(limit))


@public("memrt.adaptors")
def aligning(upstream: object = None, *, honoured: int = 16) -> Adaptor:
    """Return an adaptor that serves each alignment over an upstream with small alignments.

    Parameters
    ----------
    upstream : object, optional
        Allocator, as for :func:`counting`.
    honoured : int, default 16
        Largest alignment that the upstream honours, in bytes: a power of two from 8 to 2**30. A
        larger alignment costs the alignment and 8 bytes per block.

    Returns
    -------
    Adaptor
        Adaptor that requests at most the alignment `honoured`.

    Raises
    ------
    TypeError
        The upstream has no known form.
    ValueError
        `honoured` is bad, or as for :func:`counting`.
    MemoryError
        The allocation of the adaptor failed.

    Examples
    --------
    >>> import memrt
    >>> def allocate_bytes(nbytes, alignment):
    ...     return bytearray(nbytes)
    >>> with memrt.Policy(4096, allocator=memrt.adaptors.aligning(allocate_bytes)):
    ...     memrt.empty(10).ctypes.data % 4096
    0
    """
    return adapt("aligning", _ALIGNING, upstream, amount=honoured)


@public("memrt.adaptors")
def retrying(upstream: object = None, *, function: Callable[[int, int], object]) -> Adaptor:
    """Return an adaptor that calls a function when the upstream refuses, and may repeat.

    Parameters
    ----------
    upstream : object, optional
        Allocator, as for :func:`counting`.
    function : callable
        Called with the size in bytes and the alignment of the refused request, on the allocating
        thread with the GIL. A true result repeats the request. Exceptions go to
        ``sys.unraisablehook`` and refuse the request.

    Returns
    -------
    Adaptor
        Adaptor that holds the function.

    Raises
    ------
    TypeError
        The upstream has no known form, or the function is not callable.
    ValueError
        As for :func:`counting`.
    MemoryError
        The allocation of the adaptor failed.

    Examples
    --------
    >>> import memrt
    >>> refused = []
    >>> limited = memrt.adaptors.limiting(limit=1000)
    >>> def note(size, alignment):
    ...     refused.append(size)
    >>> with memrt.Policy(allocator=memrt.adaptors.retrying(limited, function=note)):
    ...     try:
    ...         memrt.empty(1000)
    ...     except MemoryError:
    ...         print(refused[0] >= 8000)
    True
    """
    if not callable(function):
        raise TypeError(f"function must be callable, got {type(function).__name__}")
    return adapt("retrying", _RETRYING, upstream, failed=function)


@public("memrt.adaptors")
def logging(upstream: object = None, *, file: int | _File = 2) -> Adaptor:
    """Return an adaptor that writes a line for each call to a file.

    A line has 6 fields with commas between: "alloc", "realloc" or "free", the system's id of the
    thread, the address, the size in bytes, the alignment, and the old address of a resize, else 0.
    The address of a refusal is 0. Each line is one system call, without the GIL.

    Parameters
    ----------
    upstream : object, optional
        Allocator, as for :func:`counting`.
    file : int or file object, default 2
        File descriptor, or object with ``fileno()``. The file must stay open until the last block
        of the policy is freed.

    Returns
    -------
    Adaptor
        Adaptor with the descriptor of the file.

    Raises
    ------
    TypeError
        The upstream has no known form.
    ValueError
        The descriptor is negative, or as for :func:`counting`.
    MemoryError
        The allocation of the adaptor failed.

    Examples
    --------
    >>> import memrt
    >>> import tempfile
    >>> with tempfile.TemporaryFile() as log:
    ...     with memrt.Policy(allocator=memrt.adaptors.logging(file=log)):
    ...         logged = memrt.empty(1000)
    ...     position = log.seek(0)
    ...     log.readline().decode().split(",")[0]
    'alloc'
    """
    descriptor = file if isinstance(file, int) else file.fileno()
    return adapt("logging", _LOGGING, upstream, file=descriptor)


@public("memrt.adaptors")
def thread_safe(upstream: object = None) -> Adaptor:
    """Return an adaptor that calls the upstream on one thread at a time.

    All thread-safe adaptors share one lock, so two policies over the same C functions also exclude
    each other. A fork waits until no thread is in an upstream.

    Parameters
    ----------
    upstream : object, optional
        Allocator in C, as for :func:`counting`. Python functions are refused, also below other
        adaptors: a thread would wait for the GIL under the lock. Such functions take a
        ``threading.RLock`` of their own.

    Returns
    -------
    Adaptor
        Adaptor with the lock.

    Raises
    ------
    TypeError
        The upstream has no known form, or runs Python functions.
    ValueError
        As for :func:`counting`.
    MemoryError
        The allocation of the adaptor failed.

    Examples
    --------
    >>> import memrt
    >>> stack = memrt.adaptors.thread_safe(memrt.adaptors.limiting(limit="1 GiB"))
    >>> with memrt.Policy(allocator=stack):
    ...     serialized = memrt.empty(1000)
    >>> serialized.nbytes
    8000
    """
    return adapt("thread_safe", _THREAD_SAFE, upstream)


@public("memrt.adaptors")
def prefetching(upstream: object = None, *, threshold: int | str = "1 MiB") -> Adaptor:
    """Return an adaptor that maps the pages of new blocks, so that first writes do not fault.

    The allocating thread waits for the pages. The system may have no memory for all pages; the
    block is usable all the same.

    Parameters
    ----------
    upstream : object, optional
        Allocator, as for :func:`counting`. Its blocks must be in writable memory.
    threshold : int or str, default '1 MiB'
        Minimum bytes of a block: a whole number, or a text like "64 KiB". memrt's header counts.

    Returns
    -------
    Adaptor
        Adaptor with the threshold.

    Raises
    ------
    TypeError
        The upstream has no known form, or the threshold is neither a text nor a whole number.
    ValueError
        The threshold is bad, or as for :func:`counting`.
    MemoryError
        The allocation of the adaptor failed.

    Examples
    --------
    >>> import memrt
    >>> with memrt.Policy(allocator=memrt.adaptors.prefetching()):
    ...     mapped = memrt.empty(10**6)
    >>> mapped.nbytes
    8000000
    """
    amount = parse_amount(threshold, "threshold")
    return adapt("prefetching", _PREFETCHING, upstream, amount=amount)


@public("memrt.adaptors")
def guard(upstream: object = None) -> Adaptor:
    """Return an adaptor with redzones, which ends the process at a write past a block.

    The guard finds a write past either end, a second free, and a write to a freed block, when the
    block is freed, resized or reused. The message names the block and the call stacks.

    Parameters
    ----------
    upstream : object, optional
        Allocator, as for :func:`counting`.

    Returns
    -------
    Adaptor
        Guard over the allocator.

    Raises
    ------
    TypeError
        The upstream has no known form.
    ValueError
        As for :func:`counting`.
    MemoryError
        The allocation of the guard failed.

    Examples
    --------
    >>> import memrt
    >>> stack = memrt.adaptors.counting(memrt.adaptors.guard())
    >>> with memrt.Policy(allocator=stack):
    ...     checked = memrt.zeros(1000)
    >>> stack.counts.in_use >= 8000
    True
    """
    source = None if upstream is None else allocator_capsule(upstream)
    return Adaptor("guard", _memrt.allocator_guard(source))


@public("memrt.adaptors")
def arena(upstream: object = None, *, chunk: int | str = "1 MiB") -> Adaptor:
    """Return an adaptor that places small blocks one behind the other in chunks.

    :class:`memrt.arena` is a policy over this adaptor. A chunk is reused when the last of its
    blocks is freed. Threads share the chunk of the next block, without a lock.

    Parameters
    ----------
    upstream : object, optional
        Allocator, as for :func:`counting`.
    chunk : int or str, default '1 MiB'
        Bytes of a chunk: a power of two from 64 KiB to 1 GiB, as a number or a text. The upstream
        must align chunks to their size. Blocks above an eighth of a chunk, in size or alignment,
        come from the upstream.

    Returns
    -------
    Adaptor
        Adaptor over the allocator.

    Raises
    ------
    TypeError
        The upstream has no known form, or `chunk` is neither a text nor a whole number.
    ValueError
        `chunk` is bad, or as for :func:`counting`.
    MemoryError
        The allocation of the adaptor failed.

    Examples
    --------
    >>> import memrt
    >>> calls = memrt.adaptors.counting()
    >>> with memrt.Policy(allocator=memrt.adaptors.arena(calls)):
    ...     blocks = [memrt.empty(100) for _ in range(1000)]
    >>> calls.counts.allocations
    1
    """
    return Adaptor("arena", arena_capsule(upstream, chunk))


def __dir__() -> list[str]:
    return list(__all__)
