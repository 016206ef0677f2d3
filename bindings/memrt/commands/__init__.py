"""The command line: one module for each verb, with `prepare_parser` and `execute`."""

from __future__ import annotations

import argparse
import os
import sys

from memrt.commands import (
    check_allocator,
    completion,
    convert,
    diff,
    info,
    leaks,
    replay,
    report,
    run,
    stats,
    top,
    trace,
)
from memrt.commands.errors import CommandError

_VERBS = {
    "run": run,
    "leaks": leaks,
    "report": report,
    "trace": trace,
    "replay": replay,
    "diff": diff,
    "convert": convert,
    "info": info,
    "stats": stats,
    "top": top,
    "check-allocator": check_allocator,
    "completion": completion,
}

_DESCRIPTION = "memrt: reference-counted memory for NumPy and compiled code."

_EXAMPLES = """\
examples:
  python -m memrt run script.py --its-own-option    run a program on memrt, print a summary
  python -m memrt run --json out.json -m package    the same for a module, numbers to a file
  python -m memrt run --html report.html script.py  a page of all that it did with memory
  python -m memrt report run.memrt                  the page of a recording
  python -m memrt leaks script.py                   what it leaves behind, and who holds it
  python -m memrt trace -o FILE script.py           every allocation as an event in a file
  python -m memrt replay FILE --allocator malloc    the same through allocators, compared
  python -m memrt diff FILE FILE                    what two runs differ in
  python -m memrt convert FILE --to perfetto -o OUT for a viewer of timelines
  python -m memrt info                              versions, library, options
  python -m memrt stats                             what the numbers mean
  python -m memrt top                               what processes have in use, from outside
  python -m memrt check-allocator ./arena.so        whether an allocator is as memrt expects

`memrt` is `python -m memrt` by a shorter name.
"""


def script() -> None:
    """The command `memrt`: modules are found from the current folder, as by ``python -m memrt``."""
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path[0] = os.getcwd()
    main()


def main(arguments: list[str] | None = None) -> None:
    """Run one command; ends the process with status 2 when it could not be carried out."""
    chosen = parser().parse_args(arguments)
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


def parser(name: str = "python -m memrt") -> argparse.ArgumentParser:
    """What reads command lines of memrt, called by that name."""
    parser = argparse.ArgumentParser(
        prog=name,
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
