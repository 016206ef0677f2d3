"""Statistics of worker processes, read from their records and statistics pages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memrt._policy.scope_tree import scope_name
from memrt._stats.snapshot import FIELDS, Stats
from memrt._support.process_folder import start_time
from memrt._support.public import public
from memrt._support.units import human_bytes, plural
from memrt._telemetry.stats_pages import Page, PageError, own_folder, read

_ABSENT = dict.fromkeys(FIELDS, 0)


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class WorkerStats:
    """Statistics of one worker process.

    A forked worker starts with the memory of its parent. The figures do not count this memory.

    Examples
    --------
    >>> import memrt.workers
    >>> with memrt.workers.share() as workers:
    ...     found = workers.stats().workers
    >>> [worker.state for worker in found]
    []
    """

    pid: int
    """Process id."""
    parent: int
    """Process id of the parent at the start of the worker."""
    state: str
    """"running", "ended", or "killed": also a process that called ``os._exit``."""
    command: str
    """Command line, cut to 200 characters."""
    stats: Stats
    """Statistics of the process. For a killed worker, up to a tenth of a second may be missing."""
    policies: dict[str, Stats]
    """Statistics by name of the policy."""
    scopes: dict[str, Stats]
    """Statistics by path of the scope, with slashes between names."""
    problems: tuple[str, ...]
    """Settings that the worker could not put in force, one sentence each."""


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class WorkersStats:
    """Statistics of all workers of a block, with their sums.

    Examples
    --------
    >>> import memrt.workers
    >>> with memrt.workers.share() as workers:
    ...     pass
    >>> workers.stats()
    memrt.types.WorkersStats: 0 workers, 0 B live, 0 B in total
    """

    workers: tuple[WorkerStats, ...]
    """Workers that allocated from memrt or were killed, in the order of their start."""
    unknown: int
    """Number of processes that were killed before their first figures, a tenth of a second."""

    @property
    def total(self) -> Stats:
        """Sum of the statistics of all workers. `peak` is the sum of the peaks of the workers."""
        return _sum(worker.stats for worker in self.workers)

    @property
    def scopes(self) -> dict[str, Stats]:
        """Sum of the statistics by path of the scope."""
        sums: dict[str, Stats] = {}
        for worker in self.workers:
            for path in worker.scopes:  # items() of CPython 3.11 crashes without memory
                stats = worker.scopes[path]
                sums[path] = _sum([sums[path], stats]) if path in sums else stats
        return sums

    def __repr__(self) -> str:
        total = self.total
        head = (
            f"memrt.types.WorkersStats: {plural(len(self.workers), 'worker')}, "
            f"{human_bytes(total.live)} live, {human_bytes(total.total)} in total"
        )
        lines = [f"  {worker.pid} {worker.state}: {_figures(worker)}" for worker in self.workers]
        if self.unknown:
            lines.append(f"  {self.unknown:,} killed before their first figures")
        return "\n".join([head, *lines])


def _figures(worker: WorkerStats) -> str:
    stats = worker.stats
    problems = "".join(f"; {problem}" for problem in worker.problems)
    refused = f", {plural(stats.failed, 'refused request')}" if stats.failed else ""
    return (
        f"{human_bytes(stats.live)} live, peak {human_bytes(stats.peak)}, "
        f"total {human_bytes(stats.total)}{refused}{problems}"
    )


def _sum(each: Iterable[Stats]) -> Stats:
    rows = [stats.to_dict().values() for stats in each]
    return Stats(*map(sum, zip(*rows, strict=True))) if rows else Stats(**_ABSENT)


# --- Records. ---


def own_figures(after: dict[str, int], base: dict[str, int] | None) -> Stats:
    """Return the figures of a worker from its own work, without the memory of its parent."""
    before = _ABSENT if base is None else base
    own = {name: max(after[name] - before[name], 0) for name in FIELDS}
    own["live"] = after["live"] - after["inherited"]
    own["peak"] = max(own["peak"], own["live"])
    # A free of an inherited block is a free of the parent's memory.
    own["free"] -= before["inherited_blocks"] - after["inherited_blocks"] if base else 0
    own["peak_error"] = after["peak_error"] + before["peak_error"]
    own["inherited"] = own["inherited_blocks"] = 0
    own["inherited_error"] = after["inherited_error"]
    return Stats(**own)


def load_record(path: Path) -> dict[str, Any] | None:
    """Return a record with its last figures and state, or None if the file is gone."""
    try:
        record = _parse(path)
        page = Page(
            own_folder() / f"{record['pid']}-{record['started']}",
            record["pid"],
            record["started"],
        )
        runs = start_time(page.pid) == page.started
        if record["last"] is None and not runs:
            record = _parse(path)  # the last figures may be newer than the first reading
        record["page"] = page
        if record["last"] is None:
            record["state"] = "running" if runs else "killed"
            record["last"] = _page_figures(page)
        else:
            record.setdefault("state", "ended")
    except (OSError, ValueError, KeyError):
        return None
    return record


def _parse(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="ascii"))
    return record


def _page_figures(page: Page) -> dict[str, Any] | None:
    try:
        return read(page).to_dict()
    except PageError:
        return None


def collect(records: Iterable[dict[str, Any]]) -> WorkersStats:
    """Return the statistics of records with figures.

    Workers without allocations are left out, unless they were killed: then their last allocations
    may be missing.
    """
    workers, unknown = [], 0
    for record in sorted(records, key=lambda each: (each["started"], each["pid"])):
        if record["last"] is None and not record["problems"]:
            unknown += record["state"] == "killed"
            continue
        worker = _worker(record)
        stats = worker.stats
        if stats.alloc or stats.failed or worker.problems or worker.state == "killed":
            workers.append(worker)
    return WorkersStats(tuple(workers), unknown)


def _worker(record: dict[str, Any]) -> WorkerStats:
    nothing: dict[str, Any] = {"process": None, "policies": [], "scopes": []}
    last = record["last"] or {**nothing, "process": _ABSENT}
    base = record["base"] if record["base"] and record["last"] else nothing
    policies = {row["index"]: row["stats"] for row in base["policies"]}
    scopes = {tuple(row["path"]): row["stats"] for row in base["scopes"]}
    by_policy: dict[str, list[Stats]] = {}
    for row in last["policies"]:
        figures = own_figures(row["stats"], policies.get(row["index"]))
        by_policy.setdefault(row["name"], []).append(figures)
    by_scope = {
        scope_name(tuple(row["path"])): own_figures(row["stats"], scopes.get(tuple(row["path"])))
        for row in last["scopes"]
    }
    return WorkerStats(
        record["pid"],
        record["parent"],
        record["state"],
        record["command"],
        own_figures(last["process"], base["process"]),
        {name: _sum(each) for name, each in by_policy.items()},
        by_scope,
        tuple(record["problems"]),
    )
