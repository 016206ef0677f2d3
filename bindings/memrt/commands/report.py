"""``python -m memrt report``: render a recording, or two to compare, as a page or a picture."""

from __future__ import annotations

import argparse
import os

from memrt._profile.findings.comparison import compare
from memrt._profile.recording import Document, RecordingError, loads
from memrt._trace.trace_file import MAGIC
from memrt.commands.output.errors import CommandError
from memrt.commands.output.options import add_output_options
from memrt.commands.output.reports import Outputs

HELP = "Make the HTML page of a recording, or of two recordings to compare."

EXAMPLES = """\
The page is written to the file after -o, or beside the recording with the suffix .html. With --plot
and without -o, only the picture is written. A second recording, such as after a fix, is compared
with the first: the page shows the second recording, and what became smaller or larger by source
line. The verdict is also printed.

exit status: 0; 2 if the recording cannot be read or an output cannot be written

examples:
  python -m memrt run --record run.memrt script.py    make a recording
  python -m memrt report run.memrt                    write the page run.html
  python -m memrt report run.memrt --plot run.png     write a picture of the timeline
  python -m memrt report before.memrt after.memrt     write the page after.html
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="file that `run --record` wrote")
    parser.add_argument("after", metavar="AFTER", nargs="?",
                        help="second recording, to compare with FILE")  # fmt: skip
    parser.add_argument("-o", "--html", metavar="HTML",
                        help="file to write (default: the name of the recording with the suffix "
                        ".html)")  # fmt: skip
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> None:
    files = [arguments.file] if arguments.after is None else [arguments.file, arguments.after]
    *earlier, documents = map(_read, files)
    html = arguments.html
    if html is None and arguments.plot is None:
        html = os.path.splitext(files[-1])[0] + ".html"
    for output in (html, arguments.plot):
        if output is not None and os.path.realpath(output) in map(os.path.realpath, files):
            raise CommandError(f"{output!r} is the recording itself: name another output file")
    if earlier:
        documents[0]["comparison"] = compare(earlier[0], documents)
    outputs = Outputs(html=html, plot=arguments.plot, record=None, force=arguments.force)
    failures = outputs.write(documents)
    if failures:
        raise CommandError(failures[0])
    verdict = documents[0]["comparison"]["verdict"] if earlier else []
    print("\n".join([*verdict, *outputs.said()]))


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
