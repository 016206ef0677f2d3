"""Figures of a worker process for the heartbeats to the scheduler."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from time import monotonic, thread_time
from typing import Any

from memrt import _memrt
from memrt._dask.task_keys import highest_keys
from memrt._dask.tasks import PROCESS, prefix_rows
from memrt._dask.worker_memory import bytes_of_others
from memrt._policy.limit_amount import read_limit
from memrt._stats.snapshot import stats
from memrt._tracking.live import sites

MOST_PREFIXES = 16
MOST_KEYS = 8
MOST_SITES = 5
REST = 50
"""Minimum pause between two readings, as a multiple of the CPU time of a reading."""


class Heartbeat:
    """Figures of one worker process, for the metrics of its workers.

    Threads: runs on the event loop of the workers.
    """

    def __init__(self) -> None:
        self._figures: dict[str, Any] = {}
        self._next = 0.0

    def read(self, workers: Iterable[Any]) -> dict[str, Any]:
        """Return the figures, of an earlier heartbeat if a reading takes long."""
        if monotonic() >= self._next:
            begin = thread_time()
            self._figures = _figures(workers)
            self._next = monotonic() + REST * (thread_time() - begin)
        return self._figures


def _figures(workers: Iterable[Any]) -> dict[str, Any]:
    now, held = stats(), _held_results(workers)
    rows: list[list[Any]] = []
    for name, tasks, live, peak, needed in sorted(prefix_rows(), key=lambda row: -row[2]):
        outlived = 0 if needed else max(live - held[name], 0)
        rows.append([name, tasks, live, peak, outlived])
    return {
        "process": PROCESS,
        "live": now.live,
        "cached": now.cached,
        "other": bytes_of_others(),
        "limit": read_limit(None),
        "prefixes": rows[:MOST_PREFIXES],
        "keys": highest_keys(MOST_KEYS),
        "sites": _top_sites(),
    }


def _held_results(workers: Iterable[Any]) -> defaultdict[str, int]:
    """Return the sizes of the results in memory by prefix, as Dask estimates them."""
    from dask.utils import key_split

    held: defaultdict[str, int] = defaultdict(int)
    for worker in workers:
        tasks = worker.state.tasks
        for key in list(getattr(worker.data, "fast", worker.data)):
            if key in tasks:
                held[key_split(key)] += tasks[key].nbytes or 0
    return held


def _top_sites() -> list[list[Any]]:
    if not _memrt.tracking_enabled():
        return []
    found = [[str(each.place), round(each.bytes)] for each in sites()[: MOST_SITES + 1]]
    return [row for row in found if row[0] != "None"][:MOST_SITES]
