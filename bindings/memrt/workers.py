"""Account for worker processes: multiprocessing, concurrent.futures, joblib, subprocesses.

Workers get the policy, the limits and the scope of their parent. The parent gets the statistics of
the workers, also of killed ones::

    import memrt.workers

    with memrt.workers.share() as workers:
        ...  # start a pool, use it, close it
    print(workers.stats())

Workers: share.
"""

from __future__ import annotations

import functools
import os
from types import TracebackType

from memrt._policy.limit import limit_option_text
from memrt._policy.policy import Policy
from memrt._support.leaving import end_block
from memrt._workers.results import WorkersStats
from memrt._workers.setup import capture
from memrt._workers.sharing import Sharing

__all__ = ["share"]


class share:  # noqa: N801 - a context manager that reads like a function
    """Share policy, limits and scope with workers that start in the block, and count their memory.

    Workers are forked processes, processes of multiprocessing by any start method, of
    ``concurrent.futures`` and of joblib, and Python processes that the program starts. The same
    applies to the workers of workers. In each worker memrt is enabled as by :func:`memrt.enable`,
    with the policy, the options and the limits that are in force here at the start of the block.
    The worker's main thread is in the current scope of the caller.

    Parameters
    ----------
    policy : Policy, optional
        Policy for the workers. None: the enabled policy, or the default policy.
    limit : int or str, optional
        Maximum of live bytes in each worker, as for :func:`memrt.limit`. None: the limit and the
        soft limit of this process.

    Raises
    ------
    RuntimeError
        On entry: another block is active in this process.
    TypeError
        `policy` is neither a Policy nor None, or `limit` is of a bad type.
    ValueError
        `limit` is negative or a text of another form.
    OSError
        On entry: the temporary folder of the records cannot be created.

    Notes
    -----
    Workers that started before the block are not reached. Not reached are also interpreters that
    ignore PYTHONPATH or the site module (``-I``, ``-E``, ``-S``), or start with another PYTHONPATH,
    unless multiprocessing starts them. A Python without memrt runs unchanged.

    Each worker writes its statistics to a page ten times a second, and a record at its end.
    ``Pool.terminate``, which also ends a ``with`` block of a Pool, kills the workers: their last
    tenth of a second may be missing. After ``close()`` and ``join()`` the figures are complete.

    Threads: the block changes the environment and multiprocessing for all threads. A process has
    one active block at a time; each worker may have a block of its own.

    Examples
    --------
    >>> import multiprocessing
    >>> import memrt.workers
    >>> with memrt.workers.share() as workers:
    ...     process = multiprocessing.get_context("fork").Process(
    ...         target=memrt.zeros, args=(100_000,)
    ...     )
    ...     process.start()
    ...     process.join()
    >>> worker = workers.stats().workers[0]
    >>> worker.stats.peak, worker.stats.live, worker.state
    (800000, 0, 'ended')
    """

    _active: share | None = None

    def __init__(self, policy: Policy | None = None, limit: int | str | None = None) -> None:
        if policy is not None and not isinstance(policy, Policy):
            raise TypeError(f"policy must be a memrt.Policy or None, got {type(policy).__name__}")
        self._policy = policy
        self._limit = None if limit is None else limit_option_text(limit)
        self._sharing: Sharing | None = None
        self._result = WorkersStats((), 0)

    def stats(self) -> WorkersStats:
        """Return the statistics of the workers: now, or at the end of the block after the block.

        Returns
        -------
        memrt.types.WorkersStats
            Statistics by worker, and their sums.

        Examples
        --------
        >>> import memrt.workers
        >>> memrt.workers.share().stats().total.live
        0
        """
        return self._result if self._sharing is None else self._sharing.stats()

    def __enter__(self) -> share:
        if share._active is not None:
            raise RuntimeError("memrt.workers.share is already active: leave the other block first")
        self._sharing = Sharing(capture(self._policy, self._limit))
        self._owner = os.getpid()
        share._active = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        sharing, self._sharing = self._sharing, None
        if sharing is not None and os.getpid() == self._owner:  # a forked child has left the block
            share._active = None
            sharing.stop()
            end_block(kind, functools.partial(self._collect, sharing))

    def _collect(self, sharing: Sharing) -> None:
        self._result = sharing.collect()

    def __repr__(self) -> str:
        state = "inactive" if self._sharing is None else "active"
        return f"<memrt.workers.share, {state}: {len(self.stats().workers)} workers>"


def _leave_in_child() -> None:
    """Make the block of the parent inactive in a forked child, so that the child can enter one."""
    active, share._active = share._active, None
    if active is not None:
        active._sharing = None


os.register_at_fork(after_in_child=_leave_in_child)
