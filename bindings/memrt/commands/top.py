"""``python -m memrt top``: show the shared statistics of other processes."""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from memrt._policy.scope_tree import scope_name
from memrt._process.outside import OutsidePart, read_parts
from memrt._stats.snapshot import Stats
from memrt._support.extras import expect
from memrt._support.units import human_bytes, human_seconds, plural
from memrt._telemetry import stats_pages
from memrt._telemetry.stats_pages import Page, PageError, Snapshot
from memrt.commands.output.errors import CommandError
from memrt.commands.output.table import text_table

if TYPE_CHECKING:
    from rich.console import JustifyMethod, RenderableType

HELP = "Show the memory use of processes that share statistics, also of killed processes."

EXAMPLES = """\
A process shares statistics if MEMRT_SHARE=1 is in the environment, after a start by
`python -m memrt run --share`, or after the call memrt.set_option("share", True). The last
statistics of a killed process stay until --clean. Processes of other users cannot be read. If
standard output is not a terminal, the view is printed once. In the live view, the arrow keys and s
sort by another column, and q or Ctrl-C ends the command.

exit status:
  0  statistics were shown
  2  no statistics to show: the process has ended, belongs to another user or does not share, or the
     page is damaged or has another version; standard error gives the reason

examples:
  python -m memrt top                  all processes, until Ctrl-C
  python -m memrt top 4711             policies and scopes of process 4711
  python -m memrt top --once --sort peak
  python -m memrt top 4711 --json      print JSON for scripts
  python -m memrt top --clean          remove the statistics of killed processes
"""

_Key = Callable[[Stats], int]
_KEYS: dict[str, _Key] = {
    "live": lambda stats: stats.live,
    "peak": lambda stats: stats.peak,
    "total": lambda stats: stats.total,
    "cached": lambda stats: stats.cached,
    "blocks": lambda stats: stats.alloc - stats.free,
    "failed": lambda stats: stats.failed,
}
_SORTS = (*_KEYS, "name")
_BYTES = frozenset({"live", "peak", "total", "cached"})


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", nargs="?", type=int, metavar="PID", help="process id (default: all)")
    parser.add_argument("--sort", choices=_SORTS, default="live",
                        help="sort by a column, largest first, or by name or process id "
                        "(default live)")  # fmt: skip
    parser.add_argument("--interval", type=_interval, default=1.0, metavar="SECONDS",
                        help="time between two updates (default 1)")  # fmt: skip
    parser.add_argument("--once", action="store_true", help="print once, as plain text")
    parser.add_argument("--json", action="store_true", help="print once, as JSON")
    parser.add_argument("--clean", action="store_true",
                        help="remove the pages of processes that no longer run")  # fmt: skip


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"must be a number from 0.1 to 3600, got {text!r}")
    return seconds


def execute(arguments: argparse.Namespace) -> None:
    try:
        if arguments.clean:
            print(f"removed {plural(len(stats_pages.clean()), 'page')} of ended processes")
        elif arguments.json:
            print(json.dumps(_document(arguments.pid), indent=2))
        elif arguments.once or not sys.stdout.isatty():
            print(_text(arguments))
        else:
            _watch(arguments)
    except PageError as error:
        raise CommandError(str(error)) from None


# --- Documents and tables.


def _read(page: Page) -> Snapshot | str:
    """Return the contents of a statistics page, or the reason of a read error."""
    try:
        return stats_pages.read(page)
    except PageError as error:
        return str(error)


def _document(pid: int | None) -> dict[str, Any]:
    if pid is not None:
        one = stats_pages.read(stats_pages.page_of(pid))
        memory = [part.to_dict() for part in _memory(one)]
        found: list[dict[str, Any]] = [{**one.to_dict(), "memory": memory}]
    else:
        found = []
        for page in stats_pages.pages():
            result = _read(page)
            found.append(
                {"pid": page.pid, "error": result} if isinstance(result, str) else result.to_dict()
            )
    return {"format": "memrt-top", "version": 1, "processes": found}


def _figures(stats: Stats) -> list[str]:
    values = ((name, key(stats)) for name, key in _KEYS.items())
    return [human_bytes(value) if name in _BYTES else f"{value:,}" for name, value in values]


def _sorted(rows: list[tuple[str, Stats]], sort: str) -> list[tuple[str, Stats]]:
    """Return the rows sorted by name, or by the largest value first."""
    if sort == "name":
        return sorted(rows)
    return sorted(rows, key=lambda row: (-_KEYS[sort](row[1]), row[0]))


_Table = tuple[str, list[str], list[list[str]]]  # title, header, rows


def _list_of_processes(sort: str) -> list[_Table]:
    results = [(page, _read(page)) for page in stats_pages.pages()]
    seen = [snapshot for _, snapshot in results if isinstance(snapshot, Snapshot)]
    if sort == "name":
        seen.sort(key=lambda snapshot: snapshot.pid)
    else:
        seen.sort(key=lambda snapshot: (-_KEYS[sort](snapshot.stats), snapshot.pid))
    header = ["PID", "state", *_KEYS, "resident", "updated", "command"]
    rows = [
        [str(one.pid), _state(one), *_figures(one.stats), human_bytes(one.resident), _age(one),
         one.command]
        for one in seen
    ]  # fmt: skip
    tables: list[_Table] = [(_count(seen), header, rows)]
    errors = [[why] for _, why in results if isinstance(why, str)]
    return [*tables, ("unreadable pages", ["reason"], errors)] if errors else tables


def _count(seen: list[Snapshot]) -> str:
    if not seen:
        return "no process of this user shares statistics: start a process with MEMRT_SHARE=1"
    running = sum(one.runs for one in seen)
    return f"{running} running, {len(seen) - running} dead"


def _state(snapshot: Snapshot) -> str:
    return "running" if snapshot.runs else "dead"


def _age(snapshot: Snapshot) -> str:
    return f"{human_seconds(max(time.time() - snapshot.time, 0.001))} ago"


def _one_process(snapshot: Snapshot, sort: str) -> list[_Table]:
    policies = [(f"{row.name} #{index}", row.stats) for index, row in snapshot.policies.items()]
    scopes = [(scope_name(path), stats) for path, stats in snapshot.scopes.items()]
    title = (
        f"process {snapshot.pid}, {_state(snapshot)}, updated {_age(snapshot)}: {snapshot.command}"
    )
    whole = [[*_figures(snapshot.stats), human_bytes(snapshot.resident)]]
    tables: list[_Table] = [(title, [*_KEYS, "resident"], whole)]
    for name, found in (("policy", policies), ("scope", scopes)):
        rows = [[*_figures(stats), row] for row, stats in _sorted(found, sort)]
        if rows:
            tables.append(("", [*_KEYS, name], rows))
    memory = [[human_bytes(part.resident), human_bytes(part.mapped), part.name]
              for part in _memory(snapshot)]  # fmt: skip
    if memory:
        tables.append(("memory of the process", ["resident", "mapped", "part"], memory))
    if snapshot.left_out:
        tables.append((f"{snapshot.left_out} more are omitted: the page is full", [], []))
    return tables


def _memory(snapshot: Snapshot) -> list[OutsidePart]:
    """Return the parts of the memory of a running process."""
    return read_parts(snapshot.pid) if snapshot.runs else []


def _tables(arguments: argparse.Namespace) -> list[_Table]:
    if arguments.pid is None:
        return _list_of_processes(arguments.sort)
    return _one_process(stats_pages.read(stats_pages.page_of(arguments.pid)), arguments.sort)


_LEFT = frozenset({"state", "command", "policy", "scope", "reason", "part"})


def _text(arguments: argparse.Namespace) -> str:
    parts = []
    for title, header, rows in _tables(arguments):
        right = [i for i, name in enumerate(header) if name not in _LEFT]
        table = text_table([header, *rows], right) if rows else ""
        parts.append("\n".join(part for part in (title, table) if part))
    return "\n\n".join(parts)


# --- The live view.


def _watch(arguments: argparse.Namespace) -> None:
    try:
        expect("rich", "the live view")
    except ImportError as error:
        raise CommandError(f"{error}, or use --once or --json") from None
    signal.signal(signal.SIGTERM, _end)
    try:
        _follow(arguments)
    except KeyboardInterrupt:
        return


def _end(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C, so that the terminal settings are restored."""
    raise KeyboardInterrupt


_ENDS = frozenset({b"q", b"Q", b""})  # b"" means that the terminal has hung up
_STEPS = {b"s": 1, b"\x1b[C": 1, b"\x1bOC": 1, b"S": -1, b"\x1b[D": -1, b"\x1bOD": -1}
_NONE = b"\0"


def _wait_for_key(keyboard: list[int], seconds: float) -> bytes:
    """Return the key pressed within `seconds`, or _NONE."""
    pressed, _, _ = select.select(keyboard, [], [], seconds)
    return os.read(pressed[0], 64) if pressed else _NONE


@contextmanager
def _keyboard() -> Iterator[list[int]]:
    """Provide the file descriptor of the keyboard in cbreak mode, as a list.

    The list is empty if standard input is not a terminal, or if another process group is in the
    foreground of the terminal. The old terminal settings are restored at the end.
    """
    file = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else -1
    if file < 0 or os.tcgetpgrp(file) != os.getpgrp():
        yield []
        return
    before = termios.tcgetattr(file)
    tty.setcbreak(file)
    try:
        yield [file]
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def _next_sort(sort: str, step: int) -> str:
    return _SORTS[(_SORTS.index(sort) + step) % len(_SORTS)]


def _follow(arguments: argparse.Namespace) -> None:
    """Refresh the view until a key ends the view, or until the one selected process has ended."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    view, why = _view(arguments, console.width), ""
    with (
        _keyboard() as keyboard,
        Live(view, console=console, screen=True, auto_refresh=False) as live,
    ):
        while not why:
            live.update(view, refresh=True)
            key = _wait_for_key(keyboard, arguments.interval)
            if key in _ENDS:
                return
            arguments.sort = _next_sort(arguments.sort, _STEPS.get(key, 0))
            why = _why_it_ended(arguments.pid)
            view = view if why else _view(arguments, console.width)
    console.print(view)
    console.print(why, markup=False, highlight=False)


def _why_it_ended(pid: int | None) -> str:
    """Return the reason why the view of one process ended, or an empty string.

    The view of all processes never ends for a reason of its own.
    """
    if pid is None:
        return ""
    try:
        runs = stats_pages.page_of(pid).runs
    except PageError:
        return f"process {pid} has ended"
    return "" if runs else f"process {pid} no longer runs: the last statistics stay until --clean"


def _view(arguments: argparse.Namespace, width: int) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = []
    for title, header, rows in _tables(arguments):
        table = Table(box=None, pad_edge=False, header_style="bold")
        head, *rows = _fitted(header, rows, width) or [[]]
        for name in head:
            style = "bold cyan" if name == arguments.sort else ""
            side: JustifyMethod = "left" if name in _LEFT else "right"
            table.add_column(Text(name, style=style), justify=side, no_wrap=True)
        for row in rows:
            table.add_row(*map(Text, row), style="dim" if "dead" in row else None)
        parts += [Text(title, style="bold"), table, Text()]
    said = f"sorted by {arguments.sort}; arrows: another column; q or Ctrl-C ends"
    parts.append(Text(said, style="dim"))
    return Group(*parts)


# Table columns that a narrow window omits, in order.
_SPARED = ("failed", "blocks", "cached", "resident", "updated", "total")
_ROOM = 20  # minimum width of the name column


def _fitted(header: list[str], rows: list[list[str]], width: int) -> list[list[str]]:
    """Return header and rows that fit into `width`: with fewer columns, and with cut names."""
    lines = [header, *rows]
    for name in _SPARED:
        if name in lines[0] and _numbers_width(lines) + _ROOM > width:
            index = lines[0].index(name)
            lines = [[*line[:index], *line[index + 1 :]] for line in lines]
    room = max(width - _numbers_width(lines), _ROOM)
    return [
        [*line[:-1], line[-1] if len(line[-1]) <= room else f"{line[-1][: room - 1]}…"]
        for line in lines
        if line
    ]


def _numbers_width(lines: list[list[str]]) -> int:
    """Return the width of all columns except the names."""
    return sum(max(map(len, column)) + 2 for column in list(zip(*lines, strict=True))[:-1])
