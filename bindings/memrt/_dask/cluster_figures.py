"""Sum of the figures that workers send in their heartbeats: on the scheduler, and in `memrt top`.

Imports neither distributed nor the accounts of tasks.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

NAME = "memrt"
"""Key of the figures among the metrics of a worker."""
PREFIX_COLUMNS = ("prefix", "tasks", "live", "peak", "outlived")
"""Columns of `Cluster.prefixes`."""
KEY_COLUMNS = ("key", "tasks", "live", "peak", "result")
"""Columns of `Cluster.keys`."""
WORKER_SIZES = ("live", "cached", "other", "limit")
"""Bytes among the figures of a worker; `limit` may be None."""


@dataclass
class Cluster:
    """Figures of all workers with memrt."""

    workers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Figures by address, most live bytes first. Workers of one process have the same figures."""
    prefixes: list[list[Any]] = field(default_factory=list)
    """Rows of prefix, tasks, live bytes, peak of a task, and bytes that outlived their task, most
    live bytes first."""
    keys: list[list[Any]] = field(default_factory=list)
    """Rows of key, tasks, live bytes, peak of a task, and size of its result, for the highest peaks
    of tasks that count by key, highest first."""
    sites: list[list[Any]] = field(default_factory=list)
    """Rows of place and live bytes, largest first."""
    without: int = 0
    """Number of workers without memrt."""


def sum_up(metrics: dict[str, dict[str, Any]]) -> Cluster:
    """Return the figures of a cluster from the metrics of its workers by address."""
    found = Cluster()
    processes: dict[str, dict[str, Any]] = {}
    for address, each in metrics.items():
        figures = each.get(NAME)
        if not figures:
            found.without += 1
            continue
        found.workers[address] = figures
        processes[figures["process"]] = figures
    places: defaultdict[str, int] = defaultdict(int)
    rows: dict[str, list[Any]] = {}
    keys: dict[str, list[Any]] = {}
    for figures in processes.values():
        for name, tasks, live, peak, outlived in figures["prefixes"]:
            row = rows.setdefault(name, [name, 0, 0, 0, 0])
            row[1:] = row[1] + tasks, row[2] + live, max(row[3], peak), row[4] + outlived
        for name, tasks, live, peak, result in figures["keys"]:
            row = keys.setdefault(name, [name, 0, 0, 0, 0])
            highest = max((row[3], row[4]), (peak, result))
            row[1:] = row[1] + tasks, row[2] + live, *highest
        for place, size in figures["sites"]:
            places[place] += size
    workers = sorted(found.workers.items(), key=lambda item: -item[1]["live"])
    found.workers = dict(workers)
    found.prefixes = sorted(rows.values(), key=lambda row: -int(row[2]))
    found.keys = sorted(keys.values(), key=lambda row: -int(row[3]))
    found.sites = [[*item] for item in sorted(places.items(), key=lambda item: -item[1])]
    return found
