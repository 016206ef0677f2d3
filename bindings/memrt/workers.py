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

import contextlib
import functools
import json
import multiprocessing.process
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any

from memrt._policy.limit import limit_option_text
from memrt._policy.policy import Policy
from memrt._support.child_site import add_site, remove_site
from memrt._support.leaving import end_block
from memrt._support.process_folder import make_folder, remove_folder
from memrt._workers import member, setup
from memrt._workers.results import WorkersStats, collect, load_record

__all__ = ["share"]

_TICKET = "_memrt_workers"


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
        self._folder: str | None = None
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
        if self._folder is None:
            return self._result
        return collect(self._records(Path(self._folder)).values())

    def __enter__(self) -> share:
        if share._active is not None:
            raise RuntimeError("memrt.workers.share is already active: leave the other block first")
        settings = setup.capture(self._policy, self._limit)
        folder = make_folder()
        self._outer = member.outer_folders()
        settings["folders"] = [folder, *self._outer]
        self._owner = os.getpid()
        self._before = os.environ.get(member.VARIABLE)
        self._ticket = _configuration().get(_TICKET)
        self._added = False
        self._settings = member.lead(settings)
        try:
            self._added = add_site()
            text = os.environ[member.VARIABLE] = json.dumps(settings)
            _configuration()[_TICKET] = member.Ticket(text)
        except BaseException:
            self._stop_sharing()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._folder, share._active = folder, self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        folder, self._folder = self._folder, None
        if folder is not None and os.getpid() == self._owner:  # a forked child has left the block
            share._active = None
            self._stop_sharing()
            end_block(kind, functools.partial(self._collect, folder))

    def _collect(self, folder: str) -> None:
        ended = remove_folder(folder)
        try:
            records = self._records(ended)
            self._result = collect(records.values())
            self._pass_on(records)
        finally:
            shutil.rmtree(ended, ignore_errors=True)

    def _stop_sharing(self) -> None:
        """Restore the settings for children, the environment and multiprocessing."""
        member.lead(self._settings)
        if self._added:
            remove_site()
        if self._before is None:
            os.environ.pop(member.VARIABLE, None)
        else:
            os.environ[member.VARIABLE] = self._before
        if self._ticket is None:
            _configuration().pop(_TICKET, None)
        else:
            _configuration()[_TICKET] = self._ticket

    def _records(self, folder: Path) -> dict[str, dict[str, Any]]:
        try:
            names = [name for name in os.listdir(folder) if not name.startswith(".")]
        except FileNotFoundError:
            return {}
        found = {name: load_record(folder / name) for name in names}
        return {name: record for name, record in found.items() if record is not None}

    def _pass_on(self, records: dict[str, dict[str, Any]]) -> None:
        """Remove the pages of ended workers. Blocks around this worker get the killed workers."""
        for name, record in records.items():
            path = record.pop("page").path
            if record["state"] == "running":
                continue
            if record["state"] == "killed":
                for folder in self._outer:
                    member.write_record(folder, name, record)
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def __repr__(self) -> str:
        state = "inactive" if self._folder is None else "active"
        return f"<memrt.workers.share, {state}: {len(self.stats().workers)} workers>"


def _configuration() -> dict[str, Any]:
    """Return the configuration that multiprocessing copies to its child processes."""
    found: dict[str, Any] = multiprocessing.process.current_process()._config  # type: ignore[attr-defined]
    return found


def _leave_in_child() -> None:
    """Make the block of the parent inactive in a forked child, so that the child can enter one."""
    active, share._active = share._active, None
    if active is not None:
        active._folder = None


os.register_at_fork(after_in_child=_leave_in_child)
