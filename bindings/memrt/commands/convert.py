"""``python -m memrt convert``: write a trace or a recording in a format of other programs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import IO

import memrt
from memrt._profile.recording import Document, RecordingError, loads
from memrt._trace.reader import Trace
from memrt._trace.trace_file import TraceError
from memrt.commands.formats import csv_file, findings, perfetto, pprof, sarif, speedscope
from memrt.commands.output.errors import CommandError, say
from memrt.commands.output.target import new_file

HELP = "Convert a trace or a recording to a format of other programs."

EXAMPLES = """\
formats:
  csv         a row for each event, for spreadsheets and data frames
  perfetto    live bytes by scope, marks and refused requests, for https://ui.perfetto.dev
  pprof       live bytes at the peak and total bytes by call stack and scope, for
              `go tool pprof`, Pyroscope and Parca; also of a recording
  problems    a line for each finding of a recording, as compilers print warnings
  sarif       findings of a recording at their source lines, for editors and code scanning
  speedscope  live and total bytes by call stack, for https://www.speedscope.app

`trace` writes traces, and `run --record` recordings. Findings are lost buffers, large buffers that
small views keep, and buffers that are live at the end.

exit status: 0; 2 if the file cannot be read or the output cannot be written

examples:
  python -m memrt convert run.memtrace --to csv -o run.csv
  python -m memrt convert run.memtrace --to perfetto -o run.pftrace
  python -m memrt convert run.memrt --to pprof -o run.pb.gz
  python -m memrt convert run.memrt --to sarif -o run.sarif
  python -m memrt convert run.memtrace --to speedscope -o run.speedscope.json
  python -m memrt convert run.memtrace --to csv | head
"""

_FORMATS: dict[str, Callable[[Trace, IO[bytes]], None]] = {
    "csv": csv_file.write,
    "perfetto": perfetto.write,
    "pprof": pprof.write,
    "speedscope": speedscope.write,
}
_FORMATS_OF_RECORDINGS: dict[str, Callable[[Sequence[Document], IO[bytes]], None]] = {
    "pprof": pprof.write_recording,
    "problems": findings.write_problems,
    "sarif": sarif.write,
}
_START_OF_RECORDING = b'{"format": "memrt recording"'


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="FILE",
                        help="file that `trace` or `run --record` wrote")  # fmt: skip
    forms = sorted({*_FORMATS, *_FORMATS_OF_RECORDINGS})
    parser.add_argument("--to", choices=forms, required=True, help="output format")
    parser.add_argument("-o", "--output", metavar="OUT",
                        help="file to write (default: standard output)")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def execute(arguments: argparse.Namespace) -> None:
    write = _writer(arguments.trace, arguments.to)
    if arguments.output is None:
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with new_file(arguments.output, arguments.force, arguments.trace) as file:
        write(file)


def _writer(path: str, form: str) -> Callable[[IO[bytes]], None]:
    """Read the input, and return the function that writes the output."""
    if not _is_recording(path):
        trace = opened(path)
        if form not in _FORMATS:
            raise CommandError(
                f"{path!r} is a trace, and --to {form} needs a recording: record the program with "
                "`python -m memrt run --record FILE SCRIPT`"
            )
        return lambda file: _FORMATS[form](trace, file)
    if form not in _FORMATS_OF_RECORDINGS:
        raise CommandError(
            f"{path!r} is a recording, and --to {form} needs an event trace: record a trace with "
            "`python -m memrt trace SCRIPT`"
        )
    try:
        with open(path, "rb") as file:
            documents = loads(file.read())
    except RecordingError as error:
        raise CommandError(f"cannot read {path!r}: {error}") from None
    return lambda file: _FORMATS_OF_RECORDINGS[form](documents, file)


def _is_recording(path: str) -> bool:
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return file.read(len(_START_OF_RECORDING)) == _START_OF_RECORDING
    except OSError:  # the reader of traces reports the error
        return False


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
        say(f"memrt: {path}: {trace.problem}")
    return trace
