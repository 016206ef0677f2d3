"""``python -m memrt convert``: write an event trace in a format of other programs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import IO

import memrt
from memrt._trace.reader import Trace
from memrt._trace.trace_file import TraceError
from memrt.commands.formats import csv_file, perfetto, speedscope
from memrt.commands.output.errors import CommandError
from memrt.commands.output.target import new_file

HELP = "Convert a trace to a format of other programs."

EXAMPLES = """\
formats:
  csv         a row for each event, for spreadsheets and data frames
  perfetto    live bytes by scope, marks and refused requests, for https://ui.perfetto.dev
  speedscope  live and total bytes by call stack, for https://www.speedscope.app

exit status: 0; 2 if the trace cannot be read or the output cannot be written

examples:
  python -m memrt convert run.memtrace --to csv -o run.csv
  python -m memrt convert run.memtrace --to perfetto -o run.pftrace
  python -m memrt convert run.memtrace --to speedscope -o run.speedscope.json
  python -m memrt convert run.memtrace --to csv | head
"""

_FORMATS: dict[str, Callable[[Trace, IO[bytes]], None]] = {
    "csv": csv_file.write,
    "perfetto": perfetto.write,
    "speedscope": speedscope.write,
}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="FILE", help="file that `python -m memrt trace` wrote")
    parser.add_argument("--to", choices=sorted(_FORMATS), required=True, help="output format")
    parser.add_argument("-o", "--output", metavar="OUT",
                        help="file to write (default: standard output)")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def execute(arguments: argparse.Namespace) -> None:
    trace = opened(arguments.trace)
    write = _FORMATS[arguments.to]
    if arguments.output is None:
        write(trace, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with new_file(arguments.output, arguments.force, arguments.trace) as file:
        write(trace, file)


def opened(path: str) -> memrt.debug.Trace:
    """Open an event trace, and print a warning if the trace is incomplete.

    Raises
    ------
    CommandError
        If the file cannot be read or is not an event trace.
    """
    try:
        trace = Trace(path)
    except TraceError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"cannot read {path!r}: {error.strerror}") from None
    if trace.problem is not None:
        print(f"memrt: {path}: {trace.problem}", file=sys.stderr)
    return trace
