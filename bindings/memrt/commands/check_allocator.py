"""``python -m memrt check-allocator``: whether somebody's allocator is what memrt expects."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from typing import NamedTuple

import memrt
from memrt.commands.errors import CommandError
from memrt.commands.table import text_table

HELP = "Try an allocator of a shared object against every clause of memrt's contract."

EXAMPLES = """\
The shared object exports a filled memrt_allocator_t (memrt/allocator.h). Each clause is tried in a
process of its own, so that one that crashes or hangs is a verdict like others.

exit status: 0 when no clause is broken, 1 when one is, 2 when nothing could be tried

examples:
  python -m memrt check-allocator ./arena.so             the table memrt_allocator
  python -m memrt check-allocator ./arena.so:my_table    another one
  python -m memrt check-allocator --clause fork --json ./arena.so
"""

SYMBOL = "memrt_allocator"
PROGRAM = os.path.join(os.path.dirname(memrt.__file__), "libexec", "check_allocator")


class Verdict(NamedTuple):
    """What one clause found: pass, fail, not applicable, crashed or hung."""

    clause: str
    verdict: str
    saw: str
    says: str

    @property
    def is_broken(self) -> bool:
        return self.verdict not in ("pass", "not applicable")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("allocator", metavar="LIB[:SYMBOL]",
                        help=f"shared object and table (default {SYMBOL})")  # fmt: skip
    parser.add_argument("--clause", action="append", metavar="NAME",
                        help="try this one; may be given again (default: all)")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS",
                        help="after which a clause hangs (default 60)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> None:
    library, symbol = _table(arguments.allocator)
    verdicts = try_clauses(library, symbol, arguments.timeout, arguments.clause)
    if arguments.json:
        print(json.dumps([verdict._asdict() for verdict in verdicts], indent=2))
    else:
        _print(verdicts)
    if any(verdict.is_broken for verdict in verdicts):
        sys.exit(1)


def try_clauses(
    library: str, symbol: str, timeout: float, chosen: list[str] | None = None
) -> list[Verdict]:
    """Try a table against the clauses that are chosen, None: all, one process each."""
    says = _clauses()
    for name in chosen or ():
        if name not in says:
            raise CommandError(f"there is no clause {name!r}; there are {', '.join(says)}")
    return [_try(library, symbol, name, says[name], timeout) for name in chosen or says]


def _table(allocator: str) -> tuple[str, str]:
    """Path of the library and name of the table."""
    library, _, symbol = allocator.partition(":")
    if not os.path.isfile(library):
        raise CommandError(f"cannot try {library!r}: there is no such file")
    return os.path.abspath(library), symbol or SYMBOL


def _clauses() -> dict[str, str]:
    listed = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout
    return dict(line.split("\t") for line in listed.splitlines())


def _try(library: str, symbol: str, name: str, says: str, timeout: float) -> Verdict:
    try:
        result = subprocess.run(
            [PROGRAM, library, symbol, name], capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return Verdict(name, "hung", f"no answer within {timeout:g} s", says)
    if result.returncode == 2:
        raise CommandError(result.stderr.strip())
    last = result.stdout.rstrip("\n").rpartition("\n")[2]  # the allocator may print, too
    verdict, tab, saw = last.partition("\t")
    if result.returncode != 0 or not tab:
        return Verdict(name, "crashed", _end(result), says)
    return Verdict(name, verdict, saw, says)


def _end(result: subprocess.CompletedProcess[str]) -> str:
    """How a process ended that gave no verdict, and the last it said."""
    code = result.returncode
    how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    said = result.stderr.strip().splitlines()
    return f"{how}: {said[-1]}" if said else how


def _print(verdicts: list[Verdict]) -> None:
    print(text_table((each.clause, each.verdict, each.saw or each.says) for each in verdicts))
    broken = sum(verdict.is_broken for verdict in verdicts)
    print(f"\n{len(verdicts)} clauses tried, {broken} broken")
