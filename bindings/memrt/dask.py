"""Account for the memory of Dask tasks, with limits for the workers.

Needs dask and distributed, ``pip install 'memrt[dask]'``::

    import memrt.dask

    memrt.dask.install(client, limit="auto")
    ...  # compute
    print(memrt.dask.stats(client))

Workers on the command line: ``dask worker --preload memrt.dask``.

Workers: install, dask_setup.
Statistics: stats, TaskStats.
"""

from __future__ import annotations

import sys
from typing import Any

from memrt._dask.tasks import TaskStats

__all__ = ["TaskStats", "dask_setup", "install", "stats"]


def install(client: Any, limit: int | str | None = "auto") -> None:
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

    Raises
    ------
    ImportError
        dask or distributed is missing.
    RuntimeError
        A worker has a version of distributed that memrt does not know.

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
    plugin = _plugin()
    client.register_plugin(plugin.MemrtPlugin(limit), name=plugin.NAME)


def stats(client: Any) -> dict[str, TaskStats]:
    """Return the memory of all tasks so far, by prefix, highest peak first.

    Parameters
    ----------
    client : distributed.Client
        Client of a cluster with memrt installed.

    Returns
    -------
    dict of str to TaskStats
        Figures by prefix, summed over the workers. Workers that ended are missing.

    Raises
    ------
    ImportError
        dask or distributed is missing.

    Examples
    --------
    >>> import memrt.dask
    >>> memrt.dask.stats(client)["rechunk-merge"].ratio  # doctest: +SKIP
    2.3
    """
    by_process = dict(client.run(_plugin().read_tasks).values())
    found: dict[str, TaskStats] = {}
    for rows in by_process.values():
        for row in rows:
            found.setdefault(row["prefix"], TaskStats(row["prefix"])).add(TaskStats(**row))
    return dict(sorted(found.items(), key=lambda item: -item[1].peak))


async def dask_setup(worker: Any) -> None:
    """Run the tasks of a worker on memrt, for ``dask worker --preload memrt.dask``.

    The limit is "auto", as for :func:`install`. A scheduler or nanny is left alone.

    Parameters
    ----------
    worker : distributed.Worker
        Worker that starts.

    Examples
    --------
    >>> import memrt.dask
    >>> memrt.dask.dask_setup.__name__
    'dask_setup'
    """
    if hasattr(worker, "plugin_add"):
        plugin = _plugin()
        await worker.plugin_add(plugin=plugin.MemrtPlugin("auto"), name=plugin.NAME)


def _plugin() -> Any:
    """Return the module of the plugin, which imports distributed."""
    try:
        from memrt._dask import plugin
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "memrt" or sys.modules.get(missing) is not None:
            raise
        raise ImportError(
            f"memrt.dask needs the missing package {missing}: pip install 'memrt[dask]'",
            name=missing,
        ) from None
    return plugin
