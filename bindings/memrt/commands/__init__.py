"""The command line: one module for each verb, with `prepare_parser` and `execute`."""

from __future__ import annotations

import argparse
import os
import sys

from memrt.commands import (
    check_allocator,
    convert,
    diff,
    info,
    leaks,
    replay,
    run,
    stats,
    trace,
)
from memrt.commands.errors import CommandError

_VERBS = {
    "run": run,
    "leaks": leaks,
    "trace": trace,
    "replay": replay,
    "diff": diff,
    "convert": convert,
    "info": info,
    "stats": stats,
    "check-allocator": check_allocator,
}

_DESCRIPTION = "memrt: reference-counted memory for NumPy and compiled code."

_EXAMPLES = """\
examples:
  python -m memrt run script.py --its-own-option    run a program on memrt, print a summary
  python -m memrt run --json out.json -m package    the same for a module, numbers to a file
  python -m memrt leaks script.py                   what it leaves behind, and who holds it
  python -m memrt trace -o FILE script.py           every allocation as an event in a file
  python -m memrt replay FILE --allocator malloc    the same through allocators, compared
  python -m memrt diff FILE FILE                    what two runs differ in
  python -m memrt convert FILE --to perfetto -o OUT for a viewer of timelines
  python -m memrt info                              versions, library, options
  python -m memrt stats                             what the numbers mean
  python -m memrt check-allocator ./arena.so        whether an allocator is as memrt expects
"""


def main(arguments: list[str] | None = None) -> None:
    """Run one command; ends the process with status 2 when it could not be carried out."""
    chosen = _parser().parse_args(arguments)
    try:
        if chosen.execute in (run.execute, leaks.execute, trace.execute):
            chosen.execute(chosen)
        else:
            _print_all(chosen)
    except CommandError as error:
        print(f"memrt: {error}", file=sys.stderr)
        sys.exit(2)


def _print_all(chosen: argparse.Namespace) -> None:
    """Carry out a command that only prints; a reader that has seen enough, like head, may go."""
    try:
        chosen.execute(chosen)
        sys.stdout.flush()
    except KeyboardInterrupt:  # who pressed Ctrl-C knows
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m memrt",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module in _VERBS.items():
        verb = verbs.add_parser(
            name,
            help=module.HELP,
            description=module.HELP,
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.prepare_parser(verb)
        verb.set_defaults(execute=module.execute)
    return parser
