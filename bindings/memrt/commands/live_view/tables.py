"""Tables of the view: all processes, and one process by policy, scope and part of memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from memrt._policy.scope_tree import scope_name
from memrt._process.outside import OutsidePart, read_parts
from memrt._stats.snapshot import Stats
from memrt._support.units import human_bytes, human_seconds
from memrt._telemetry import stats_pages
from memrt._telemetry.stats_pages import Page, PageError, Snapshot
from memrt.commands.live_view.family import in_tree, parent_of
from memrt.commands.live_view.history import WIDTH, History, rate_text
from memrt.commands.live_view.process_names import command_words, program_of

KEYS: dict[str, Callable[[Stats], int]] = {
    "live": lambda stats: stats.live,
    "peak": lambda stats: stats.peak,
    "total": lambda stats: stats.total,
    "cached": lambda stats: stats.cached,
    "blocks": lambda stats: stats.alloc - stats.free,
    "failed": lambda stats: stats.failed,
}
SORTS = (*KEYS, "rate", "name")
_BYTES = frozenset({"live", "peak", "total", "cached"})


class Row(NamedTuple):
    """Row of a table."""

    cells: list[str]
    pid: int = 0
    """Process of the row; 0 for other rows."""
    dead: bool = False


@dataclass
class Table:
    """Table with a title. A table without rows is a line of text."""

    title: str
    header: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


class Choice(NamedTuple):
    """Which processes a table has, and in which order."""

    sort: str = "live"
    text: str = ""
    """Text that the process id or the command line must contain; case does not matter."""
    tree: bool = False


def read(page: Page) -> Snapshot | str:
    """Return the contents of a statistics page, or the reason of a read error."""
    try:
        return stats_pages.read(page)
    except PageError as error:
        return str(error)


def read_all() -> tuple[list[Snapshot], list[str]]:
    """Return the contents of all statistics pages, and the reasons of read errors."""
    found = [read(page) for page in stats_pages.pages()]
    return (
        [one for one in found if isinstance(one, Snapshot)],
        [one for one in found if isinstance(one, str)],
    )


def points_of(snapshots: list[Snapshot]) -> dict[object, tuple[float, int]]:
    """Return time and live bytes of each process, policy and scope, by the key of its row."""
    points: dict[object, tuple[float, int]] = {}
    for one in snapshots:
        points[_key(one)] = (one.time, one.stats.live)
        points |= {_key(one, *row): (one.time, stats.live) for row, stats in _inner(one)}
    return points


def _key(snapshot: Snapshot, *row: object) -> tuple[object, ...]:
    return (snapshot.pid, snapshot.begun, *row)


def _inner(snapshot: Snapshot) -> list[tuple[tuple[str, str], Stats]]:
    """Return the policies and scopes: kind, name and statistics."""
    rows = [(("policy", f"{row.name} #{i}"), row.stats) for i, row in snapshot.policies.items()]
    rows += [(("scope", scope_name(path)), stats) for path, stats in snapshot.scopes.items()]
    return rows


class Figures:
    """Cells of statistics: with trend and rate if there is a history.

    Parameters
    ----------
    history : History or None
        Live bytes of earlier updates; None for a table that is printed once.
    """

    def __init__(self, history: History | None = None, *, ascii_only: bool = False) -> None:
        self._history, self._ascii_only = history, ascii_only
        first, *rest = KEYS
        self.header = [first, *(["trend", "rate"] if history is not None else []), *rest]

    def cells(self, key: object, stats: Stats) -> list[str]:
        """Return the cells of a row, in the order of `header`."""
        first, *rest = (
            human_bytes(value(stats)) if name in _BYTES else f"{value(stats):,}"
            for name, value in KEYS.items()
        )
        if self._history is None:
            return [first, *rest]
        bars = self._history.bars(key, ascii_only=self._ascii_only).ljust(WIDTH)
        return [first, bars, rate_text(self._history.rate(key)), *rest]

    def order(self, sort: str, name: str, key: object, stats: Stats) -> tuple[float, str]:
        """Return the sort key of a row: the largest value first, or the name."""
        if sort == "name":
            return 0.0, name
        if sort == "rate":
            return -((self._history and self._history.rate(key)) or 0.0), name
        return -float(KEYS[sort](stats)), name


def _matches(snapshot: Snapshot, text: str) -> bool:
    return text.casefold() in f"{snapshot.pid} {' '.join(command_words(snapshot))}".casefold()


def list_of_processes(
    snapshots: list[Snapshot], errors: list[str], choice: Choice, figures: Figures
) -> list[Table]:
    """Return the table of all processes, and a table of unreadable pages."""
    named = [(program_of(command_words(one)), one) for one in snapshots
             if _matches(one, choice.text)]  # fmt: skip
    named.sort(key=lambda row: (*figures.order(choice.sort, row[0], _key(row[1]), row[1].stats),
                                row[1].pid))  # fmt: skip
    if choice.tree:
        names = {(one.pid, one.begun): name for name, one in named}
        named = [(branch + names[one.pid, one.begun], one)
                 for branch, one in in_tree([one for _, one in named])]  # fmt: skip
    header = ["program", "PID", "state", *figures.header, "resident", "updated"]
    rows = [
        Row([name, str(one.pid), _state(one), *figures.cells(_key(one), one.stats),
             human_bytes(one.resident), _age(one)], one.pid, not one.runs)
        for name, one in named
    ]  # fmt: skip
    tables = [Table(_count(snapshots, len(rows), choice.text), header, rows)]
    if errors:
        tables.append(Table("unreadable pages", ["reason"], [Row([why]) for why in errors]))
    return tables


def _count(snapshots: list[Snapshot], shown: int, text: str) -> str:
    if not snapshots:
        return "no process of this user shares statistics: start a process with MEMRT_SHARE=1"
    running = sum(one.runs for one in snapshots)
    filtered = f"; {shown} of {len(snapshots)} contain {text!r}" if text else ""
    return f"{running} running, {len(snapshots) - running} dead{filtered}"


def _state(snapshot: Snapshot) -> str:
    return "running" if snapshot.runs else "dead"


def _age(snapshot: Snapshot) -> str:
    return f"{human_seconds(max(time.time() - snapshot.time, 0.001))} ago"


HEAD_TABLES = 3  # tables of one_process() that belong together: names, state, the whole


def one_process(
    snapshot: Snapshot, choice: Choice, figures: Figures, sites: Table | None = None
) -> list[Table]:
    """Return the tables of one process: the whole, sites, policies, scopes, parts of the memory."""
    words = command_words(snapshot)
    title = f"process {snapshot.pid}, {_state(snapshot)}, updated {_age(snapshot)}"
    parent = f", child of {parent_of(snapshot.pid)}" if snapshot.runs else ""
    whole = [*figures.cells(_key(snapshot), snapshot.stats), human_bytes(snapshot.resident)]
    tables = [
        Table(program_of(words)),
        Table(f"{title}{parent}"),
        Table(" ".join(words), ["", *figures.header, "resident"], [Row(["whole process", *whole])]),
    ]
    tables += [] if sites is None else [sites]
    for kind in ("policy", "scope"):
        found = [(row[1], _key(snapshot, *row), stats) for row, stats in _inner(snapshot)
                 if row[0] == kind]  # fmt: skip
        found.sort(key=lambda row: figures.order(choice.sort, *row))
        rows = [Row([name, *figures.cells(key, stats)]) for name, key, stats in found]
        if rows:
            tables.append(Table("", [kind, *figures.header], rows))
    memory = [Row([part.name, human_bytes(part.resident), human_bytes(part.mapped)])
              for part in parts_of(snapshot)]  # fmt: skip
    if memory:
        tables.append(Table("memory of the process", ["part", "resident", "mapped"], memory))
    if snapshot.left_out:
        tables.append(Table(f"{snapshot.left_out} more are omitted: the page is full"))
    if sites is None:
        tables.append(Table(_NO_SITES.format(snapshot.pid)))
    return tables


_NO_SITES = "allocation sites: python -m memrt attach {} --report FILE.html"


def parts_of(snapshot: Snapshot) -> list[OutsidePart]:
    """Return the parts of the memory of a running process."""
    return read_parts(snapshot.pid) if snapshot.runs else []
