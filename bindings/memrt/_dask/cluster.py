"""Calls of a client to all workers of a cluster. Each function runs on the client's event loop."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from distributed import get_client as current_client
from distributed import performance_report as dask_report

import memrt
from memrt._dask import dashboard, plugin
from memrt._dask.recording import read_recording
from memrt._dask.task_keys import read_patterns
from memrt._dask.tasks import TaskStats
from memrt._profile import page
from memrt._profile.recording import Document, loads

__all__ = ["current_client", "dask_report", "install", "read_stats", "write_report"]


async def install(
    client: Any, limit: int | str | None, record: bool, by_key: str | Iterable[str]
) -> None:
    """Register the plugin, after a check of the workers' versions of memrt."""
    made = plugin.MemrtPlugin(limit, record, read_patterns(by_key))
    await expect_memrt(client)
    try:
        await client.register_plugin(made, name=plugin.NAME)
    except BaseException:
        # The scheduler keeps a plugin that workers refused, for workers that join later.
        with contextlib.suppress(Exception):
            await client.unregister_worker_plugin(plugin.NAME)
        raise
    try:
        version = await client.run_on_scheduler(importlib.metadata.version, "memrt")
    except importlib.metadata.PackageNotFoundError:
        version = "none"
    if version == memrt.__version__:
        await client.register_plugin(dashboard.DashboardPlugin(), name=dashboard.NAME)
    else:
        warnings.warn(
            f"the scheduler must have memrt {memrt.__version__} like the client, got {version}: "
            "the dashboard has no page on memrt",
            RuntimeWarning,
            stacklevel=2,
        )


async def expect_memrt(client: Any) -> None:
    """Raise RuntimeError if a worker has no memrt, or another version than the client."""
    found = await client.run(importlib.metadata.version, "memrt", on_error="return")
    for address, version in found.items():
        if version != memrt.__version__:
            got = "none" if isinstance(version, Exception) else version
            raise RuntimeError(
                f"workers must have memrt {memrt.__version__} like the client, got {got} on "
                f"{address}: pip install 'memrt[dask]=={memrt.__version__}' there"
            )


async def read_stats(client: Any, by_key: bool) -> dict[str, TaskStats]:
    """Return the figures by prefix or by key, highest peak first."""
    found: dict[str, TaskStats] = {}
    for rows in await _read_processes(client, plugin.read_keys if by_key else plugin.read_tasks):
        for row in rows:
            each = TaskStats(**row)
            name = each.key or each.prefix
            found.setdefault(name, TaskStats(each.prefix, key=each.key)).add(each)
    return dict(sorted(found.items(), key=lambda item: -item[1].peak))


async def write_report(client: Any, path: str | os.PathLike[str], force: bool) -> None:
    """Write a page on all workers."""
    page.expect_packages()
    if not force and os.path.lexists(path):
        raise FileExistsError(f"path must be a new file, got {os.fspath(path)!r}: use force=True")
    documents: list[Document] = []
    for data in await _read_processes(client, read_recording):
        documents += loads(data)
    if not documents:
        raise RuntimeError("a cluster must have workers for a report, got none")
    documents.sort(key=lambda document: float(document["started"]))
    data = page.render(documents)
    _write(os.path.realpath(os.fsdecode(path)) if force else os.fsdecode(path), data, force)


def _write(path: str, data: bytes, force: bool) -> None:
    """Write a file that is new, or replaces a file. On failure the path is unchanged."""
    folder = os.path.dirname(path)
    place = os.path.join(folder, f".memrt-{os.urandom(8).hex()}") if force else path
    with open(place, "xb") as file:
        try:
            file.write(data)
            file.flush()
            if force:
                os.replace(place, path)
        except BaseException:
            os.unlink(place)
            raise


async def _read_processes(client: Any, function: Callable[..., Any]) -> list[Any]:
    """Return the results of a function for all worker processes, without their names."""
    found = await client.run(function, on_error="return")
    for result in found.values():
        if isinstance(result, Exception):
            await expect_memrt(client)  # a clear message for another version
            raise result
    return list(dict(found.values()).values())
