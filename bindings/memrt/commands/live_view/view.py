"""Draw the live view, and redraw the view at each update and key."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from memrt._support.extras import expect
from memrt._telemetry import stats_pages
from memrt._telemetry.stats_pages import PageError, Snapshot
from memrt.commands.live_view.history import History
from memrt.commands.live_view.keyboard import HANGUP, open_keyboard
from memrt.commands.live_view.layout import Lines, cut, fold, plain_text, text_width
from memrt.commands.live_view.state import State
from memrt.commands.live_view.tables import (
    HEAD_TABLES,
    Figures,
    Table,
    list_of_processes,
    one_process,
    points_of,
    read_all,
)
from memrt.commands.output.errors import CommandError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# Texts for the last line: the first text that fits into the window is shown.
_KEYS = (
    "s: sort; /: filter; t: tree; arrows, Enter: details; q or Ctrl-C ends",
    "s: sort; /: filter; t: tree; Enter: details; q ends",
    "q or Ctrl-C ends",
)
_DETAIL_KEYS = (
    "a: allocation sites; s: sort; arrows: scroll; Esc: all processes; q or Ctrl-C ends",
    "a: sites; s: sort; Esc: all processes; q ends",
    _KEYS[-1],
)

Record = Callable[[list[Snapshot]], None]


def watch(state: State, interval: float, seconds: float, record: Record) -> None:
    """Show the view until a key, Ctrl-C or SIGTERM, or until `seconds` have passed.

    Parameters
    ----------
    state : State
        With a process id, the view ends when the process has ended.
    interval : float
        Seconds between two updates.
    record : Callable
        Called with the snapshots of each update.
    """
    try:
        expect("rich", "the live view")
    except ImportError as error:
        raise CommandError(f"{error}, or use --once or --json") from None
    signal.signal(signal.SIGTERM, end_like_ctrl_c)
    try:
        _follow(state, record, interval, time.monotonic() + seconds)
    except KeyboardInterrupt:
        return


def end_like_ctrl_c(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C, so that terminal settings are restored and files closed."""
    raise KeyboardInterrupt


def _follow(state: State, record: Record, interval: float, until: float) -> None:
    from rich.console import Console
    from rich.live import Live

    view, only = _View(Console(), state, record), state.pid
    view.update()
    drawing, why = view.draw(), ""
    with (
        open_keyboard() as keyboard,
        Live(drawing, console=view.console, screen=True, auto_refresh=False) as live,
    ):
        while not why:
            live.update(drawing, refresh=True)
            keys = keyboard.wait(min(interval, max(until - time.monotonic(), 0)))
            for key in keys:
                state.press(key)
            if state.ended or HANGUP in keys or time.monotonic() >= until:
                return
            why = why_it_ended(only)
            if not why:
                view.update()
                drawing = view.draw()
    view.console.print(
        plain_text(view.tables, state.sort), markup=False, highlight=False, soft_wrap=True
    )
    view.console.print(why, markup=False, highlight=False)


def why_it_ended(pid: int | None) -> str:
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


class _View:
    """Tables of the last update, and their drawing."""

    def __init__(self, console: Console, state: State, record: Record) -> None:
        self.console, self.state, self.tables = console, state, list[Table]()
        self._record, self._history = record, History()
        self._message = ""
        self._sites: dict[int, Table] = {}  # of the process of the detail view, if asked

    def update(self) -> None:
        """Read the statistics pages. The list replaces the details of a process without a page."""
        state = self.state
        snapshots, errors = read_all()
        self._record(snapshots)
        self._history.update(points_of(snapshots))
        figures = Figures(self._history, ascii_only=self.console.options.ascii_only)
        self._message = ""
        chosen = [one for one in snapshots if one.pid == state.pid]
        if state.pid is not None and not chosen:
            self._message, state.pid = f"process {state.pid} has ended; ", None
        if chosen:
            sites = self._sites_of(chosen[-1].pid)
            self.tables = one_process(chosen[-1], state.choice, figures, sites)
        else:
            self._sites.clear()
            self.tables = list_of_processes(snapshots, errors, state.choice, figures)
            state.pids = [row.pid for row in self.tables[0].rows]

    def _sites_of(self, pid: int) -> Table | None:
        """Return the allocation sites of a process, read again if a key asks for the sites."""
        if self.state.asked:
            from memrt.commands.live_view.asked_sites import ask_for_sites  # most views need none

            self._sites[pid] = ask_for_sites(pid)
        self.state.asked = False
        return self._sites.get(pid)

    def draw(self) -> Text:
        """Return the lines that fit into the window, with the keys in the last line."""
        from rich.text import Text

        width, height = self.console.size
        room = max(height - 2, 3)
        lines = self._list(width, room) if self.state.pid is None else self._detail(width, room)
        foot = Text(cut(self._foot(width), width), style="dim")
        return Text("\n", no_wrap=True).join([*lines, Text(), foot])

    def _foot(self, width: int) -> str:
        """Return the last line: the sort key, and the keys as far as there is room."""
        state = self.state
        if state.typing:
            return f"filter: {state.text}_   Enter: keep; Esc: remove"
        start = f"{self._message}by {state.sort}; "
        for keys in _KEYS if state.pid is None else _DETAIL_KEYS:
            if text_width(start + keys) <= width:
                return start + keys
        return ""

    def _list(self, width: int, room: int) -> list[Text]:
        """Return the title, the header and the rows around the selected row."""
        from rich.text import Text

        state, first = self.state, self.tables[0]
        lines = Lines(first, width, state.sort)
        others = [line for table in self.tables[1:] for line in _table_lines(table, width, state)]
        room = max(room - 2 - (len(others) + 1 if others else 0), 1)
        start = min(max(state.row() - room + 1, 0), max(len(lines.lines) - room, 0))
        state.height = room
        title = first.title
        if len(lines.lines) > room:
            title += f"; rows {start + 1} to {min(start + room, len(lines.lines))}"
        shown = [Text(cut(title, width), style="bold")]
        shown += [_header(lines.header, state.sort)] if lines.lines else []
        for i, line in enumerate(lines.lines[start : start + room], start):
            chosen = "reverse" if i == state.row() else "dim" if lines.rows[i].dead else ""
            shown.append(Text(line, style=chosen))
        return [*shown, *([Text(), *others] if others else [])]

    def _detail(self, width: int, room: int) -> list[Text]:
        """Return the lines of the tables from the offset on."""
        from rich.text import Text

        state, lines = self.state, list[Text]()
        for i, table in enumerate(self.tables):
            if i >= HEAD_TABLES:
                lines.append(Text())
            lines += _table_lines(table, width, state)
        state.height = room
        state.offset = min(state.offset, max(len(lines) - room, 0))
        return lines[state.offset : state.offset + room]


def _table_lines(table: Table, width: int, state: State) -> list[Text]:
    from rich.text import Text

    shown = [Text(line, style="bold") for line in fold(table.title, width)] if table.title else []
    if table.rows:
        lines = Lines(table, width, state.sort)
        shown += [_header(lines.header, state.sort), *map(Text, lines.lines)]
    return shown


def _header(header: str, sort: str) -> Text:
    from rich.text import Text

    text = Text(header, style="bold")
    text.highlight_words([f" {sort} "], "bold cyan")
    return text
