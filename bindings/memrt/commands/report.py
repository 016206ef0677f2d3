"""``python -m memrt report``: render a recording as a page or a picture."""

from __future__ import annotations

import argparse
import os

from memrt._profile.recording import Document, RecordingError, loads
from memrt._trace.trace_file import MAGIC
from memrt.commands.output.errors import CommandError
from memrt.commands.output.options import add_output_options
from memrt.commands.output.reports import Outputs

HELP = "Make the HTML page of a recording."

EXAMPLES = """\
The page is written to the file after -o, or beside the recording with the suffix .html. With --plot
and without -o, only the picture is written.

exit status: 0; 2 if the recording cannot be read or an output cannot be written

examples:
  python -m memrt run --record run.memrt script.py    make a recording
  python -m memrt report run.memrt                    write the page run.html
  python -m memrt report run.memrt --plot run.png     write a picture of the timeline
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="file that `run --record` wrote")
    parser.add_argument("-o", "--html", metavar="HTML",
                        help="file to write (default: FILE with the suffix .html)")  # fmt: skip
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> None:
    documents = _read(arguments.file)
    html = arguments.html
    if html is None and arguments.plot is None:
        html = os.path.splitext(arguments.file)[0] + ".html"
    for output in (html, arguments.plot):
        if output is not None and os.path.realpath(output) == os.path.realpath(arguments.file):
            raise CommandError(f"{output!r} is the recording itself: name another output file")
    outputs = Outputs(html=html, plot=arguments.plot, record=None, force=arguments.force)
    failures = outputs.write(documents)
    if failures:
        raise CommandError(failures[0])
    print("\n".join(outputs.said()))


def _read(path: str) -> list[Document]:
    try:
        with open(path, "rb") as file:
            data = file.read()
        if data.startswith(MAGIC):
            raise CommandError(
                f"{path!r} is a trace, not a recording: use `python -m memrt replay`, `diff` or "
                "`convert` for traces"
            )
        return loads(data)
    except OSError as error:
        raise CommandError(f"cannot read {path!r}: {error.strerror}") from None
    except RecordingError as error:
        raise CommandError(f"cannot read {path!r}: {error}") from None
