"""``python -m memrt report``: a recording as a page, or as a picture."""

from __future__ import annotations

import argparse
import os

from memrt._report.recording import Document, RecordingError, loads
from memrt.commands.errors import CommandError
from memrt.commands.outputs import Outputs, add_output_options

HELP = "Make the page of a recording that `run --record` wrote."

EXAMPLES = """\
The page goes where -o says, or beside the recording with the ending .html.

exit status: 0, or 2 when the recording cannot be read or the page not be written

examples:
  python -m memrt run --record run.memrt script.py    make a recording
  python -m memrt report run.memrt                    its page, run.html
  python -m memrt report run.memrt --plot run.png     a picture of its timeline
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument("-o", "--html", metavar="HTML",
                        help="write the page to HTML (default: FILE, ending .html)")  # fmt: skip
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> None:
    documents = _read(arguments.file)
    html = arguments.html
    if html is None and arguments.plot is None:
        html = os.path.splitext(arguments.file)[0] + ".html"
    for output in (html, arguments.plot):
        if output is not None and os.path.realpath(output) == os.path.realpath(arguments.file):
            raise CommandError(f"{output!r} is the recording itself: name another file to write")
    outputs = Outputs(html=html, plot=arguments.plot, record=None, force=arguments.force)
    failures = outputs.write(documents)
    if failures:
        raise CommandError(failures[0])
    print("\n".join(outputs.said()))


def _read(path: str) -> list[Document]:
    try:
        with open(path, "rb") as file:
            return loads(file.read())
    except OSError as error:
        raise CommandError(f"cannot read {path!r}: {error.strerror}") from None
    except RecordingError as error:
        raise CommandError(f"cannot read {path!r}: {error}") from None
