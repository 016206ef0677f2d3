"""``python -m memrt check-allocator``: test an allocator against memrt's allocator contract."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from typing import NamedTuple

import memrt
from memrt.commands.output.errors import CommandError
from memrt.commands.output.table import text_table
from memrt.commands.workers.worker import run_worker

HELP = "Test an allocator in a shared object against each clause of memrt's contract."

EXAMPLES = """\
The shared object exports a filled memrt_allocator_t (memrt/allocator.h). Each clause is tested in a
process of its own, so that a crash or a hang is a verdict of the clause.

exit status: 0 if no clause is broken, 1 if a clause is broken, 2 if no clause could be tested

examples:
  python -m memrt check-allocator ./arena.so             test the table memrt_allocator
  python -m memrt check-allocator ./arena.so:my_table    test the table my_table
  python -m memrt check-allocator --clause fork --json ./arena.so
"""

SYMBOL = "memrt_allocator"
PROGRAM = os.path.join(os.path.dirname(memrt.__file__), "libexec", "check_allocator")


class Verdict(NamedTuple):
    """The result of one clause: pass, fail, not applicable, crashed or hung."""

    clause: str
    verdict: str
    saw: str
    says: str

    @property
    def is_broken(self) -> bool:
        return self.verdict not in ("pass", "not applicable")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("allocator", metavar="LIB[:SYMBOL]",
                        help=f"shared object and name of the table (default {SYMBOL})")  # fmt: skip
    parser.add_argument("--clause", action="append", metavar="NAME",
                        help="clause to test; may be repeated (default: all)")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS",
                        help="time after which a clause counts as hung (default 60)")  # fmt: skip
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
    """Test a table against the chosen clauses, each in a process of its own.

    Parameters
    ----------
    chosen : list[str] or None
        Names of clauses; None for all clauses.

    Raises
    ------
    CommandError
        For an unknown clause, or if the library or table cannot be loaded.
    """
    says = _clauses()
    for name in chosen or ():
        if name not in says:
            raise CommandError(f"clause must be one of {', '.join(says)}, got {name!r}")
    return [_try(library, symbol, name, says[name], timeout) for name in chosen or says]


def _table(allocator: str) -> tuple[str, str]:
    """Return the path of the library and the name of the table."""
    library, _, symbol = allocator.partition(":")
    if not os.path.isfile(library):
        raise CommandError(f"cannot test {library!r}: no such file")
    return os.path.abspath(library), symbol or SYMBOL


def _clauses() -> dict[str, str]:
    listed = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout
    return dict(line.split("\t") for line in listed.splitlines())


def _try(library: str, symbol: str, name: str, says: str, timeout: float) -> Verdict:
    try:
        result = run_worker([PROGRAM, library, symbol, name], timeout=timeout)
    except subprocess.TimeoutExpired:
        return Verdict(name, "hung", f"no answer within {timeout:g} s", says)
    if result.returncode == 2:
        raise CommandError(result.stderr.strip())
    last = result.stdout.rstrip("\n").rpartition("\n")[2]  # skips output of the allocator
    verdict, tab, saw = last.partition("\t")
    if result.returncode != 0 or not tab:
        return Verdict(name, "crashed", _end(result), says)
    return Verdict(name, verdict, saw, says)


def _end(result: subprocess.CompletedProcess[str]) -> str:
    """Describe the end of a process without a verdict: exit status or signal, last error line."""
    code = result.returncode
    how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    said = result.stderr.strip().splitlines()
    return f"{how}: {said[-1]}" if said else how


def _print(verdicts: list[Verdict]) -> None:
    print(text_table((each.clause, each.verdict, each.saw or each.says) for each in verdicts))
    broken = sum(verdict.is_broken for verdict in verdicts)
    print(f"\n{len(verdicts)} clauses tested, {broken} broken")
