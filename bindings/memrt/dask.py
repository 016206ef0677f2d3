"""Account for the memory of Dask tasks, with limits for the workers.

Needs dask and distributed, ``pip install 'memrt[dask]'``::

    import memrt.dask

    memrt.dask.install(client, limit="auto")
    ...  # compute
    print(memrt.dask.stats(client))

Workers on the command line: ``dask worker --preload memrt.dask``.

Workers: install, dask_setup.
Statistics: performance_report, report, stats, TaskStats.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from memrt._dask.tasks import TaskStats

__all__ = ["TaskStats", "dask_setup", "install", "performance_report", "report", "stats"]


def install(
    client: Any,
    limit: int | str | None = "auto",
    *,
    record: bool = False,
    by_key: str | Iterable[str] = (),
) -> Any:
    """Run the tasks of all workers on memrt: present ones, restarted ones, and ones that join.

    A second call replaces the settings of the first call.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    limit : int, str or None, default "auto"
        Maximum of live bytes in each worker process, as for :func:`memrt.limit`. "auto": 90 % of
        the memory limit of the worker, less resident memory that is not memrt's; without a memory
        limit as for ``memrt.limit("auto")``. None: no new limit.
    record : bool, default False
        Whether workers record their memory for :func:`report`: a timeline, and the allocation sites
        of about one allocation per 512 KiB.
    by_key : str or iterable of str, default ()
        Prefixes of the tasks that count by key, too, for ``stats(client, by_key=True)``: texts with
        ``*`` and ``?`` as in file names. "*": all tasks. Each worker process keeps the 1,000 keys
        with the highest peaks.

    Returns
    -------
    None or Future
        Nothing; a future to await for a client with ``asynchronous=True``.

    Raises
    ------
    ImportError
        dask or distributed is missing.
    TypeError
        `by_key` is neither a text nor several texts.
    RuntimeError
        A worker has no memrt or another version of memrt, or a version of distributed that memrt
        does not know.

    Notes
    -----
    Each task runs on the policy of :func:`memrt.enabled`, in a scope with the name of its prefix.
    The figures of a task are the allocations of its thread. Tasks that are coroutines, and methods
    of actors, run as before. Threads that a task starts are on memrt, outside of the scope.

    Examples
    --------
    >>> import memrt.dask
    >>> from distributed import Client  # doctest: +SKIP
    >>> memrt.dask.install(Client(), limit="auto")  # doctest: +SKIP
    """
    cluster = _private("cluster")
    return client.sync(cluster.install, client, limit, record, by_key)


def stats(client: Any, *, by_key: bool = False) -> Any:
    """Return the memory of all tasks so far, by prefix or by key, highest peak first.

    Parameters
    ----------
    client : distributed.Client
        Client of a cluster with memrt installed.
    by_key : bool, default False
        Whether to return figures by key, for the tasks that :func:`install` chose. Keys that are no
        texts have the form of ``str(key)``.

    Returns
    -------
    dict of str to TaskStats
        Figures by prefix or key, summed over the workers. Workers that ended are missing. A future
        of the dict for a client with ``asynchronous=True``.

    Raises
    ------
    ImportError
        dask or distributed is missing.
    RuntimeError
        A worker has no memrt, or another version of memrt.

    Examples
    --------
    >>> import memrt.dask
    >>> memrt.dask.stats(client)["rechunk-merge"].ratio  # doctest: +SKIP
    2.3
    """
    cluster = _private("cluster")
    return client.sync(cluster.read_stats, client, by_key)


def report(client: Any, path: str | os.PathLike[str], *, force: bool = False) -> Any:
    """Write an HTML page on the memory of all workers, after or during a computation.

    Parameters
    ----------
    client : distributed.Client
        Client of a cluster with memrt installed. With ``install(client, record=True)`` the page has
        the timeline since then and allocation sites; otherwise the state now.
    path : str or os.PathLike
        File to write.
    force : bool, default False
        Whether an existing file is replaced.

    Returns
    -------
    None or Future
        Nothing; a future to await for a client with ``asynchronous=True``.

    Raises
    ------
    ImportError
        dask, distributed, or a package for pages is missing.
    FileExistsError
        The file exists, and `force` is False.
    OSError
        The file cannot be written.
    RuntimeError
        A worker has no memrt or another version of memrt, or the cluster has no workers.

    Notes
    -----
    Each worker searches the holders of its largest buffers for up to two seconds, beside its tasks.
    Workers that ended are missing.

    Examples
    --------
    >>> import memrt.dask
    >>> from distributed import Client  # doctest: +SKIP
    >>> client = Client()  # doctest: +SKIP
    >>> memrt.dask.install(client, record=True)  # doctest: +SKIP
    >>> memrt.dask.report(client, "page.html")  # doctest: +SKIP
    """
    cluster = _private("cluster")
    return client.sync(cluster.write_report, client, path, force)


@contextlib.contextmanager
def performance_report(filename: str = "dask-report.html", **options: Any) -> Iterator[None]:
    """Write the performance report of Dask for a block, and the page of :func:`report` beside it.

    The page is named after the report: "dask-report.html" and "dask-report-memrt.html". Existing
    files are replaced, as Dask does.

    Parameters
    ----------
    filename : str, default "dask-report.html"
        File for the report of Dask.
    **options
        Further options of ``distributed.performance_report``.

    Yields
    ------
    None

    Raises
    ------
    ImportError
        dask, distributed, or a package for pages is missing.
    OSError, RuntimeError
        As for :func:`report`.

    Examples
    --------
    >>> import memrt.dask
    >>> with memrt.dask.performance_report("report.html"):  # doctest: +SKIP
    ...     table.compute()
    """
    cluster = _private("cluster")
    options.setdefault("stacklevel", 3)  # the caller, outside of contextlib
    with cluster.dask_report(filename, **options):
        yield
    stem, suffix = os.path.splitext(filename)
    report(cluster.current_client(), f"{stem}-memrt{suffix}", force=True)


async def dask_setup(worker: Any) -> None:
    """Run the tasks of a worker on memrt, for ``dask worker --preload memrt.dask``.

    The configuration of Dask has the options of :func:`install`, as ``memrt.limit``,
    ``memrt.record`` and ``memrt.by-key``, for example ``DASK_MEMRT__BY_KEY="rechunk-*"`` in the
    environment. A scheduler or nanny is left alone.

    Parameters
    ----------
    worker : distributed.Worker
        Worker that starts.

    Raises
    ------
    TypeError
        ``memrt.by-key`` is neither a text nor several texts.
    RuntimeError
        memrt does not know the version of distributed.

    Examples
    --------
    >>> import memrt.dask
    >>> memrt.dask.dask_setup.__name__
    'dask_setup'
    """
    if hasattr(worker, "plugin_add"):
        plugin = _private("plugin")
        await worker.plugin_add(plugin=plugin.configured_plugin(), name=plugin.NAME)


def _private(name: str) -> Any:
    """Return a module that imports distributed."""
    try:
        return importlib.import_module(f"memrt._dask.{name}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "memrt" or sys.modules.get(missing) is not None:
            raise
        raise ImportError(
            f"memrt.dask needs the missing package {missing}: pip install 'memrt[dask]'",
            name=missing,
        ) from None
