"""``python -m memrt refprune``: remove refcount calls that cancel out from LLVM IR of Numba."""

from __future__ import annotations

import argparse
import sys

from memrt.commands.output.errors import CommandError, say
from memrt.commands.output.table import text_table
from memrt.commands.output.target import new_file
from memrt.numba import refprune

HELP = "Remove calls of NRT_incref and NRT_decref that cancel out from LLVM IR."

EXAMPLES = """\
passes:
  null    remove calls on null
  pairs   remove calls that cancel out on every path
  sink    move calls of NRT_decref to the end of their basic block, where this helps `pairs`
  raise   ignore paths that raise, on which Numba does not release its references

modes:
  premise  no callee releases a reference of the caller: the contract of Numba
  strict   each call may release any reference

exit status: 0; 2 if the input is not LLVM IR, or the output cannot be written

examples:
  python -m memrt refprune in.ll -o out.ll --stats
  python -m memrt refprune in.ll --explain --passes null,pairs > out.ll
  NUMBA_DUMP_LLVM=1 python program.py     print the LLVM IR that Numba generates
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FILE", help="LLVM IR, or - for standard input")
    parser.add_argument("-o", "--output", metavar="OUT",
                        help="file to write (default: standard output)")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--passes", default=",".join(refprune.PASSES), metavar="NAMES",
                        help="names with commas between them (default: all)")  # fmt: skip
    parser.add_argument("--mode", choices=refprune.MODES, default="premise",
                        help="assumption about calls (default: premise)")  # fmt: skip
    parser.add_argument("--stats", action="store_true",
                        help="print the number of removed calls to standard error")  # fmt: skip
    parser.add_argument("--explain", action="store_true",
                        help="print to standard error why calls stay")  # fmt: skip


def execute(arguments: argparse.Namespace) -> None:
    text, stats = _prune(arguments)
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        with new_file(arguments.output, arguments.force, arguments.source) as file:
            file.write(text.encode())
    if arguments.explain:
        for kept in stats.kept:
            say(f"{kept.function}: {kept.call!r} stays: {kept.reason}")
    if arguments.stats:
        say(text_table(_rows(stats)))


def _prune(arguments: argparse.Namespace) -> tuple[str, refprune.PruneStats]:
    text = _read(arguments.source)
    passes = [name for name in arguments.passes.split(",") if name]
    try:
        return refprune.prune(text, mode=arguments.mode, passes=passes, explain=arguments.explain)
    except (ValueError, ImportError) as error:
        raise CommandError(str(error)) from None


def _read(source: str) -> str:
    try:
        if source == "-":
            return sys.stdin.read()
        with open(source, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the file is not UTF-8"
        raise CommandError(f"cannot read {source!r}: {reason}") from None


def _rows(stats: refprune.PruneStats) -> list[tuple[str, str]]:
    return [
        ("increfs removed", str(stats.increfs)),
        ("decrefs removed", str(stats.decrefs)),
        ("calls on null removed", str(stats.nulls)),
        ("decrefs moved", str(stats.moved)),
        ("functions changed", str(stats.functions)),
    ]
