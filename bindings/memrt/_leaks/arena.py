"""Arenas: policies for many small arrays that are freed together."""

from __future__ import annotations

import gc
from functools import partial
from types import TracebackType
from typing import Any

import numpy

from memrt import _memrt
from memrt._allocators.allocator_source import arena_capsule
from memrt._leaks.leaks import describe, group
from memrt._policy import handlers
from memrt._policy.policy import Policy
from memrt._stats.snapshot import stats as read_stats
from memrt._support.leaving import end_block
from memrt._support.public import public
from memrt._support.units import human_bytes, plural
from memrt._tracking.live import live

_MODES = ("promote", "error")


@public("memrt")
class arena(Policy):  # noqa: N801 (a context manager that reads like a function)
    """Place the arrays of a block one behind the other in chunks; a policy.

    Inside ``with memrt.arena() as a:`` the arrays that NumPy allocates in this context come from
    the arena. A chunk of memory is reused as a whole, when the last of its arrays is freed. An
    array that is still live at the end of the block outlives the arena. Its memory stays valid in
    any case.

    Parameters
    ----------
    name : str, default 'arena'
        Name in reports, at most 63 bytes in UTF-8.
    outliving : {'promote', 'error'}, default 'promote'
        Rule for arrays that are live when the last block of the arena ends. 'promote': the arrays
        stay, and `outlived` counts them. 'error': RuntimeError.
    chunk : int or str, default '1 MiB'
        Bytes of a chunk: a power of two from 64 KiB to 1 GiB, as a number or a text. Arrays above
        an eighth of a chunk come from `allocator` directly.
    alignment : int or None, default 64
        Alignment of every data pointer in bytes, as for :class:`memrt.Policy`.
    allocator : object, optional
        Source of the chunks, in a form that :class:`memrt.Policy` accepts. None: memrt's allocator.
    limit : int or str, optional
        Maximum of live bytes, as for :class:`memrt.Policy`.
    soft : int or str, optional
        Live bytes from which memrt frees memory, as for :class:`memrt.Policy`.

    Raises
    ------
    ValueError
        `outliving` or `chunk` is bad, or as for :class:`memrt.Policy`.
    TypeError
        `chunk` is neither a text nor a whole number, or as for :class:`memrt.Policy`.
    MemoryError
        The allocation of the arena failed.
    RuntimeError
        4095 policies are live. At the end of the last block: arrays outlive an arena with
        ``outliving="error"``. The message has the number of arrays and bytes and, for arrays
        allocated while tracking was on, source lines and holders. The error never replaces a
        pending exception.

    Warns
    -----
    RuntimeWarning
        On leaving, as for :class:`memrt.Policy`.

    Notes
    -----
    Ownership: an array keeps its chunk and the arena's policy alive, after the end of the block and
    of the arena object. An array that outlives the block therefore holds a whole chunk. At the end
    of a block without such arrays, the arena keeps its chunks for the next block.
    ``memrt.release_unused()`` frees these chunks.

    Threads: several threads and tasks may use an arena at once, also repeatedly and nested. The
    block that ends last judges the arrays. Tasks started inside inherit the arena, threads do not.

    Before the error, ``gc.collect()`` frees arrays in reference cycles.

    Examples
    --------
    >>> import memrt
    >>> import numpy as np
    >>> def work(steps):
    ...     parts = [np.full(8, step) for step in range(steps)]
    ...     return np.sum(parts, axis=0)
    >>> with memrt.arena() as small:
    ...     result = small.keep(work(1000))
    >>> int(result[0]), small.stats().live, small.outlived
    (499500, 0, (0, 0))
    """

    __slots__ = ("_capsule", "_entered", "_outlived", "_outliving")

    _capsule: object  # the allocator, which lives as long as the policy
    # An item for each block. Threads may add and pop at once, and pop() needs no memory.
    _entered: set[object]
    _outlived: tuple[int, int]
    _outliving: str

    def __new__(
        cls,
        name: str = "arena",
        *,
        outliving: str = "promote",
        chunk: int | str = "1 MiB",
        alignment: int | None = 64,
        allocator: object = None,
        limit: int | str | None = None,
        soft: int | str | None = None,
    ) -> arena:
        if outliving not in _MODES:
            raise ValueError(f"outliving must be 'promote' or 'error', got {outliving!r}")
        capsule = arena_capsule(allocator, chunk)
        made = super().__new__(cls, alignment, name, allocator=capsule, limit=limit, soft=soft)
        assert isinstance(made, arena)
        made._capsule = capsule
        made._entered = set()
        made._outlived = (0, 0)
        made._outliving = outliving
        return made

    @property
    def outlived(self) -> tuple[int, int]:
        """Arrays, and their bytes, that were live when the last block of the arena ended."""
        return self._outlived

    def keep(self, array: Any) -> numpy.ndarray[Any, Any]:
        """Return a copy of an array that does not belong to the arena.

        Inside of the block, the copy comes from the handler that was in force before the block.
        Outside, the copy comes from the handler in force.

        Parameters
        ----------
        array : array_like
            Array to copy.

        Returns
        -------
        numpy.ndarray
            Copy with memory of its own. An array of a subclass becomes a plain array, because its
            attributes may be arrays of the arena. Elements of object arrays are not copied.

        Raises
        ------
        MemoryError
            The allocation of the copy failed.

        Examples
        --------
        >>> import memrt
        >>> import numpy as np
        >>> with memrt.arena(outliving="error") as small:
        ...     total = small.keep(np.ones(8) + 1)
        >>> float(total[0])
        2.0
        """
        around = handlers.handler_around(self)
        if around is None:
            return numpy.array(array)
        inside = _memrt.set_handler(around)
        try:
            return numpy.array(array)
        finally:
            _memrt.set_handler(inside)

    def __enter__(self) -> arena:
        self._entered.add(object())
        try:
            super().__enter__()
        except BaseException:
            self._entered.pop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        end_block(kind, partial(self._leave_arena, kind is None))

    def _leave_arena(self, judges: bool) -> str | None:
        left = handlers.pop(self)
        if left != handlers.NOT_ENTERED:
            self._entered.pop()
            if not self._entered:
                self._settle(judges and self._outliving == "error")
        return None if left == handlers.RESTORED else handlers.problem_of(left, self._described)

    @property
    def _described(self) -> str:
        return f"arena {self._name!r}"

    def _live(self) -> tuple[int, int]:
        stats = read_stats(self)
        return stats.alloc - stats.free, stats.live

    def _settle(self, judges: bool) -> None:
        """Count the arrays that outlive the last block, and free the chunks without such arrays."""
        try:
            outlived = self._live()
            if judges and outlived[0]:
                gc.collect()
                outlived = self._live()
        except MemoryError:
            return  # the block has ended, so an error of the figures would be wrong
        self._outlived = outlived
        if outlived[0]:
            _memrt.allocator_release_unused(self._capsule)
            if judges:
                raise RuntimeError(self._report())

    def _report(self) -> str:
        count, nbytes = self._outlived
        rule = (
            f"arrays of {self._described} must be freed before the block ends, got "
            f"{plural(count, 'live array')} of {human_bytes(nbytes)}: copy results with keep(), or "
            "create the arena with outliving='promote'"
        )
        listed = group(buffer for buffer in live() if buffer.policy == self._name)
        return "\n".join([rule, *describe(listed)]) if listed else rule
