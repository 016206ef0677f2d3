"""``python -m memrt top``: show the shared statistics of other processes."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from typing import Any

from memrt._support.units import plural
from memrt._telemetry import stats_pages
from memrt._telemetry.stats_pages import PageError, Snapshot
from memrt.commands.live_view.layout import plain_text
from memrt.commands.live_view.record_file import RecordFile
from memrt.commands.live_view.state import State
from memrt.commands.live_view.tables import (
    SORTS,
    Choice,
    Figures,
    list_of_processes,
    one_process,
    parts_of,
    read,
    read_all,
)
from memrt.commands.live_view.view import end_like_ctrl_c, watch, why_it_ended
from memrt.commands.output.errors import CommandError

HELP = "Show the memory use of processes that share statistics, also of killed processes."

EXAMPLES = """\
A process shares statistics if MEMRT_SHARE=1 is in the environment, after a start by
`python -m memrt run --share`, or after the call memrt.set_option("share", True). The last
statistics of a killed process stay until --clean. Processes of other users cannot be read. If
standard output is not a terminal, the view is printed once.

keys of the live view:
  up, down, page up, page down    select a process, or scroll
  Enter, Esc                      show the selected process by policy and scope; back to the list
  a                               ask the shown process for its allocation sites, as attach does
  s, S, right, left               sort by another column
  /                               show the processes whose command line contains a text
  t                               show child processes below their parents
  q, Ctrl-C                       end

exit status:
  0  statistics were shown or recorded
  2  no statistics to show: the process has ended, belongs to another user or does not share, or the
     page is damaged or has another version; standard error gives the reason

examples:
  python -m memrt top                  all processes, until Ctrl-C
  python -m memrt top 4711             policies and scopes of process 4711
  python -m memrt top --once --sort peak --filter train.py
  python -m memrt top 4711 --json      print JSON for scripts
  python -m memrt top --record load.csv --seconds 60 > /dev/null
  python -m memrt top --clean          remove the statistics of killed processes
  python -m memrt top --dask tcp://127.0.0.1:8786
                                       workers and task prefixes of a Dask cluster
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", nargs="?", type=int, metavar="PID", help="process id (default: all)")
    parser.add_argument("--sort", choices=SORTS, default="live",
                        help="sort by a column, largest first, or by name "
                        "(default live)")  # fmt: skip
    parser.add_argument("--filter", default="", metavar="TEXT",
                        help="only processes with TEXT in the command line "
                        "or process id")  # fmt: skip
    parser.add_argument("--tree", action="store_true",
                        help="show child processes below their parents")  # fmt: skip
    parser.add_argument("--interval", type=_interval, default=1.0, metavar="SECONDS",
                        help="time between two updates (default 1)")  # fmt: skip
    parser.add_argument("--seconds", type=_interval, default=float("inf"), metavar="SECONDS",
                        help="end the live view or the recording after SECONDS")  # fmt: skip
    parser.add_argument("--once", action="store_true", help="print once, as plain text")
    parser.add_argument("--json", action="store_true", help="print once, as JSON")
    parser.add_argument("--record", metavar="FILE",
                        help="write each update to FILE: CSV if the suffix is .csv, "
                        "else JSON lines")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace an existing FILE")
    parser.add_argument("--dask", metavar="ADDRESS",
                        help="show the Dask cluster of the scheduler at ADDRESS, with "
                        "memrt.dask in its workers")  # fmt: skip
    parser.add_argument("--clean", action="store_true",
                        help="remove the pages of processes that no longer run")  # fmt: skip


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600 * 24 * 365:
        raise argparse.ArgumentTypeError(f"must be a number of seconds from 0.1, got {text!r}")
    return seconds


def execute(arguments: argparse.Namespace) -> None:
    if arguments.dask is not None:
        from memrt.commands.live_view.dask_view import show_cluster

        show_cluster(arguments)
        return
    try:
        if arguments.clean:
            print(f"removed {plural(len(stats_pages.clean()), 'page')} of ended processes")
        elif arguments.json:
            print(json.dumps(_document(arguments.pid), indent=2))
        else:
            _show(arguments)
    except PageError as error:
        raise CommandError(str(error)) from None


def _show(arguments: argparse.Namespace) -> None:
    """Print the tables once, or show the live view, or record without a view."""
    if arguments.pid is not None:
        stats_pages.read(stats_pages.page_of(arguments.pid))
    recorder = _Recorder(arguments)
    try:
        if sys.stdout.isatty() and not arguments.once:
            state = State(arguments.sort, arguments.filter, arguments.tree, arguments.pid)
            watch(state, arguments.interval, arguments.seconds, recorder.add)
            return
        if arguments.record and not arguments.once:
            recorder.run(arguments.interval, arguments.seconds)
            return
        print(_text(arguments))
        recorder.add(read_all()[0])
    finally:
        recorder.close()


class _Recorder:
    """Recording of the chosen processes, if the options ask for a file."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._file = None
        self._pid, self._count = arguments.pid, 0
        if arguments.record is not None:
            self._file = RecordFile(arguments.record, arguments.force)

    def add(self, snapshots: list[Snapshot]) -> None:
        if self._file is not None:
            chosen = [one for one in snapshots if self._pid in (None, one.pid)]
            self._count += self._file.add(chosen, whole=self._pid is not None)

    def run(self, interval: float, seconds: float) -> None:
        """Record without a view until Ctrl-C or SIGTERM, or until the one process has ended."""
        signal.signal(signal.SIGTERM, end_like_ctrl_c)
        until, why = time.monotonic() + seconds, ""
        try:
            while not why and time.monotonic() < until:
                self.add(read_all()[0])
                time.sleep(min(interval, max(until - time.monotonic(), 0)))
                why = why_it_ended(self._pid)
        except KeyboardInterrupt:
            pass
        self.add(read_all()[0])
        print(f"recorded {plural(self._count, 'row')}" + (f"; {why}" if why else ""))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _document(pid: int | None) -> dict[str, Any]:
    if pid is not None:
        one = stats_pages.read(stats_pages.page_of(pid))
        memory = [part.to_dict() for part in parts_of(one)]
        found: list[dict[str, Any]] = [{**one.to_dict(), "memory": memory}]
    else:
        found = []
        for page in stats_pages.pages():
            result = read(page)
            found.append(
                {"pid": page.pid, "error": result} if isinstance(result, str) else result.to_dict()
            )
    return {"format": "memrt-top", "version": 1, "processes": found}


def _text(arguments: argparse.Namespace) -> str:
    choice, figures = Choice(arguments.sort, arguments.filter, arguments.tree), Figures()
    if arguments.pid is None:
        return plain_text(list_of_processes(*read_all(), choice, figures), choice.sort)
    one = stats_pages.read(stats_pages.page_of(arguments.pid))
    return plain_text(one_process(one, choice, figures), choice.sort)
