"""Share the settings of ``run --workers`` with worker processes, and show their statistics."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from memrt._support.units import human_bytes, plural
from memrt._workers.member import lead_program
from memrt._workers.results import WorkersStats, WorkerStats
from memrt._workers.setup import capture
from memrt._workers.sharing import Sharing


class Pools:
    """Worker processes of the program, from start() on."""

    _sharing: Sharing | None = None

    def start(self) -> None:
        """Share the settings in force with workers that start from now on.

        Raises
        ------
        OSError
            The temporary folder of the records cannot be created.
        """
        self._sharing = Sharing(capture(None, None, follows=True))
        lead_program([self._sharing.folder])

    def collect(self) -> WorkersStats:
        """Return the statistics of all workers, and remove the records."""
        sharing, self._sharing = self._sharing, None
        if sharing is None:
            return WorkersStats((), 0)
        lead_program([])
        sharing.stop()
        return sharing.collect()


def worker_rows(found: WorkersStats) -> dict[str, Any]:
    """Return the statistics of workers as JSON values."""
    return {
        "total": found.total.to_dict(),
        "scopes": {path: stats.to_dict() for path, stats in found.scopes.items()},
        "unknown": found.unknown,
        "processes": [_row(worker) for worker in found.workers],
    }


def _row(worker: WorkerStats) -> dict[str, Any]:
    row = asdict(worker)
    row["stats"] = worker.stats.to_dict()
    for name in ("policies", "scopes"):
        row[name] = {key: stats.to_dict() for key, stats in getattr(worker, name).items()}
    return row


def worker_lines(found: WorkersStats, listed: int) -> list[str]:
    """Return a line for all workers, and lines for the `listed` workers with the highest peaks."""
    total = found.total
    killed = sum(worker.state == "killed" for worker in found.workers) + found.unknown
    count = plural(len(found.workers) + found.unknown, "worker")
    head = (
        f"{count}{f', {killed:,} killed' if killed else ''}: sum of peaks "
        f"{human_bytes(total.peak)}, {human_bytes(total.total)} allocated in total"
    )
    if total.failed:
        head += f", {plural(total.failed, 'request')} refused"
    highest = sorted(found.workers, key=lambda worker: -worker.stats.peak)
    return [head, *map(_line, highest[:listed])]


def _line(worker: WorkerStats) -> str:
    stats = worker.stats
    problems = "".join(f"; {problem}" for problem in worker.problems[:1])
    return (
        f"  {worker.pid} {worker.state}: peak {human_bytes(stats.peak)}, "
        f"total {human_bytes(stats.total)}{problems}"
    )
