"""``python -m memrt convert``: traces for other programs."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO

import memrt
from memrt._trace import Trace, TraceError
from memrt.commands import csv_file, perfetto, speedscope
from memrt.commands.errors import CommandError

HELP = "Write a trace in a format of other programs."

EXAMPLES = """\
formats:
  csv         a row for each event, for tables and data frames
  perfetto    tracks of live bytes by scope, marks and refusals, for https://ui.perfetto.dev
  speedscope  live bytes at the peak and all bytes by calls, for https://www.speedscope.app

exit status: 0 when the file was written, 2 when it could not be

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
    parser.add_argument("trace", metavar="FILE", help="what `python -m memrt trace` recorded")
    parser.add_argument("--to", choices=sorted(_FORMATS), required=True, help="the format")
    parser.add_argument("-o", "--output", metavar="OUT",
                        help="to write to (default: standard output)")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def execute(arguments: argparse.Namespace) -> None:
    trace = opened(arguments.trace)
    write = _FORMATS[arguments.to]
    if arguments.output is None:
        write(trace, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with new_file(arguments.output, arguments.force) as file:
        write(trace, file)


def opened(path: str) -> memrt.Trace:
    """A trace to work with; what is missing from it is said."""
    try:
        trace = Trace(path)
    except TraceError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"cannot read {path!r}: {error.strerror}") from None
    if trace.problem is not None:
        print(f"memrt: {path}: {trace.problem}", file=sys.stderr)
    return trace


@contextlib.contextmanager
def new_file(path: str, replace: bool) -> Iterator[IO[bytes]]:
    """A file to write, which is there only once it is whole."""
    if not replace and os.path.lexists(path):
        raise CommandError(f"{path!r} is there already: give another name, or --force")
    unfinished = f"{path}.{os.getpid()}.part"
    try:
        with open(unfinished, "xb") as file:
            yield file
        os.replace(unfinished, path)
    except OSError as error:
        raise CommandError(f"cannot write {path!r}: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
