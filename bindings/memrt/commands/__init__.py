"""Parse and run command lines of memrt. Each verb has a module: `prepare_parser`, `execute`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from memrt._support.import_path import remove_first_path
from memrt.commands.output.errors import CommandError, say
from memrt.commands.programs.hints import Parser, misplaced_hint

_VERBS = {
    "run": "run",
    "leaks": "leaks",
    "retention": "retention",
    "report": "report",
    "trace": "trace",
    "replay": "replay",
    "diff": "diff",
    "convert": "convert",
    "info": "installation.info",
    "config": "installation.config",
    "stats": "stats",
    "top": "live_view.top",
    "attach": "attaching.attach",
    "check-allocator": "check_allocator",
    "compile": "compile",
    "refprune": "refprune",
    "completion": "completion",
}
"""Commands, and their modules in this package."""

_RUNNING = ("run", "leaks", "retention", "trace")
"""Commands that run a program. Words after the options of memrt belong to the program."""

_DESCRIPTION = "memrt: reference-counted memory for NumPy and compiled code."

_EXAMPLES = """\
examples:
  python -m memrt run script.py --its-own-option    run a program on memrt, print a summary
  python -m memrt run --json out.json -m package    run a module, write statistics to a file
  python -m memrt run --html report.html script.py  write a report about the memory use
  python -m memrt report run.memrt                  make the report of a recording
  python -m memrt leaks script.py                   list live buffers at the end, with holders
  python -m memrt retention script.py               list large buffers that small views keep
  python -m memrt trace -o FILE script.py           record every allocation in a file
  python -m memrt replay FILE --allocator malloc    repeat the allocations with malloc
  python -m memrt diff FILE FILE                    compare two traces
  python -m memrt convert FILE --to perfetto -o OUT convert a trace for a timeline viewer
  python -m memrt info                              show versions, library and options
  python -m memrt config --cflags --libs            print the flags to compile against memrt
  python -m memrt stats                             explain the statistics
  python -m memrt top                               show the memory use of other processes
  python -m memrt attach 4711                       put a running process on memrt
  python -m memrt refprune in.ll -o out.ll          remove refcount calls from LLVM IR
  python -m memrt check-allocator ./arena.so        test an allocator against its contract
  python -m memrt compile kernels.py:f -o f.o       compile a function of Numba for C programs

`memrt` is short for `python -m memrt`.
"""


def script() -> None:
    """Run the command `memrt`, without the folder of the script on the import path."""
    remove_first_path()
    main()


def main(arguments: list[str] | None = None) -> None:
    """Run one command. Failure: on CommandError, print the message and exit with status 2."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    chosen = _read(words)
    try:
        if words[0] in _RUNNING:
            chosen.execute(chosen)
        else:
            _print_all(chosen)
    except CommandError as error:
        say(f"memrt: {error}")
        sys.exit(2)


def _read(words: list[str]) -> argparse.Namespace:
    """Parse a command line. The words of a program bypass argparse, which would change some."""
    verbs = words[:1] if words and words[0] in _VERBS else _VERBS
    whole = parser(verbs=verbs)
    if not words or words[0] not in _RUNNING:
        command = _verb_parser(whole, words[0]) if words and words[0] in _VERBS else None
        return whole.parse_command(words, command)
    from memrt.commands.programs.program import split_words

    command = _verb_parser(whole, words[0])
    own, program = split_words(command, words[1:])
    chosen = whole.parse_command([words[0], *own], command)
    chosen.program = program
    chosen.hints = misplaced_hint(command, program)
    return chosen


def _verb_parser(whole: argparse.ArgumentParser, verb: str) -> argparse.ArgumentParser:
    verbs = next(each for each in whole._actions if isinstance(each, argparse._SubParsersAction))
    choices: dict[str, argparse.ArgumentParser] = verbs.choices
    return choices[verb]


def _print_all(chosen: argparse.Namespace) -> None:
    """Run a command that only prints. A reader such as head may close the pipe early."""
    try:
        chosen.execute(chosen)
        sys.stdout.flush()
    except KeyboardInterrupt:  # no message: the user pressed Ctrl-C
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # lets the exit flush work


def _module_of(verb: str) -> ModuleType:
    return import_module(f"memrt.commands.{_VERBS[verb]}")


def parser(name: str = "python -m memrt", verbs: Iterable[str] = _VERBS) -> Parser:
    """Return the parser of memrt's command line, with `name` as the program name in messages.

    A program that runs on memrt shares its process with the modules of commands, so the caller may
    limit the parser to some `verbs`.
    """
    whole = Parser(
        prog=name,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.commands = _VERBS
    commands = whole.add_subparsers(metavar="COMMAND", required=True)
    for verb in verbs:
        module = _module_of(verb)
        command = commands.add_parser(
            verb,
            help=module.HELP,
            description=module.HELP,
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.prepare_parser(command)
        command.set_defaults(execute=module.execute, make_parser=parser)
    return whole
