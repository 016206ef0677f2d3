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
from memrt._allocators.allocator_source import SYMBOL, split_library
from memrt.commands.output.errors import CommandError
from memrt.commands.output.table import text_table
from memrt.commands.workers.worker import run_worker

HELP = "Test an allocator against each clause of memrt's contract."

EXAMPLES = """\
A shared object exports a filled memrt_allocator_t (memrt/allocator.h). An object of a Python module
is any allocator that memrt.Policy(allocator=...) accepts. Each clause is tested in a process of its
own, so that a crash or a hang is a verdict of the clause.

exit status: 0 if no clause is broken, 1 if a clause is broken, 2 if no clause could be tested

examples:
  python -m memrt check-allocator ./arena.so             test the table memrt_allocator
  python -m memrt check-allocator ./arena.so:my_table    test the table my_table
  python -m memrt check-allocator arenas:secret          test the object secret of the module arenas
  python -m memrt check-allocator --clause fork --json ./arena.so
"""

_LIBEXEC = os.path.join(os.path.dirname(memrt.__file__), "libexec")
PROGRAM = os.path.join(_LIBEXEC, "check_allocator")
MODULE = os.path.join(_LIBEXEC, "libconformance.so")


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
    parser.add_argument("allocator", metavar="LIB[:SYMBOL] | MODULE:OBJECT",
                        help="shared object and name of the table (default "
                        f"{SYMBOL}), or Python module and object")  # fmt: skip
    parser.add_argument("--clause", action="append", metavar="NAME",
                        help="clause to test; may be repeated (default: all)")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS",
                        help="time after which a clause counts as hung (default 60)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> None:
    worker = _worker_for(arguments.allocator)
    verdicts = _try_clauses(worker, arguments.timeout, arguments.clause)
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
    return _try_clauses([PROGRAM, library, symbol], timeout, chosen)


def _try_clauses(worker: list[str], timeout: float, chosen: list[str] | None) -> list[Verdict]:
    says = _clauses()
    for name in chosen or ():
        if name not in says:
            raise CommandError(f"clause must be one of {', '.join(says)}, got {name!r}")
    return [_try([*worker, name], says[name], timeout) for name in chosen or says]


def _worker_for(allocator: str) -> list[str]:
    """Return the command of a worker for a library or a Python object, without the clause."""
    library, symbol = split_library(allocator)
    if os.path.isfile(library):
        return [PROGRAM, os.path.abspath(library), symbol]
    if ":" in allocator and all(map(str.isidentifier, library.split("."))):
        worker = "memrt.commands.workers.allocator_worker"
        return [sys.executable, "-m", worker, MODULE, allocator]
    raise CommandError(f"cannot test {library!r}: no such file")


def _clauses() -> dict[str, str]:
    listed = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout
    return dict(line.split("\t") for line in listed.splitlines())


def _try(command: list[str], says: str, timeout: float) -> Verdict:
    name = command[-1]
    try:
        result = run_worker(command, timeout=timeout)
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
