"""``python -m memrt leaks``: report live buffers at the end of a program, and their holders."""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import sys
from dataclasses import dataclass

import memrt
from memrt._leaks.leaks import GROUPS_SHOWN, LeakGroup, amount, describe, group, unexpected
from memrt._leaks.survey import Survey
from memrt._support.units import human_bytes, plural
from memrt._tracking.live import live
from memrt.commands.output.errors import say
from memrt.commands.programs.program import (
    add_program_arguments,
    program_named,
    run_exit_functions,
)
from memrt.commands.run import add_tracking_options, requested_tracking

HELP = "Run a Python program, and list live buffers at the end, with allocation sites and holders."

EXAMPLES = """\
The program runs with all of NumPy's arrays on memrt, as under `run`. After the threads and exit
functions of the program, memrt collects garbage and reports the live buffers by allocation site.
Lost buffers come first: neither a Python object nor a named reference of C code holds a lost
buffer. Held buffers follow, with the number of buffers for each kind of holder. All live buffers
are examined. Suppressed allocations, such as NumPy's own caches, are left out.

exit status: the status of the program; with --fail, 23 if the program succeeded and a buffer is
lost or could not be examined; 2 if the program could not start

examples:
  python -m memrt leaks script.py
  python -m memrt leaks --fail -m package.module argument
  python -m memrt leaks --native 8 script.py    record native calls, too
"""

EXIT_LOST = 23


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    add_tracking_options(parser)
    parser.add_argument("--fail", action="store_true",
                        help=f"exit with {EXIT_LOST} if a buffer is lost")  # fmt: skip
    add_program_arguments(parser)


def execute(arguments: argparse.Namespace) -> None:
    program = program_named(arguments.program)
    program.load()
    verdict = _Verdict(arguments.hints)
    requested_tracking(arguments).__enter__()
    memrt.enable()
    try:
        program.run()
    except SystemExit as end:
        if not arguments.fail or end.code not in (None, 0):
            raise
    if arguments.fail:
        run_exit_functions()
        if verdict.fails:
            sys.exit(EXIT_LOST)


class _Verdict:
    """The report at the exit of this process, after the exit functions of the program."""

    def __init__(self, hints: list[str]) -> None:
        self.fails = False
        self._hints = hints
        self._owner = os.getpid()
        atexit.register(self._finish)

    def _finish(self) -> None:
        if os.getpid() != self._owner:  # a forked child is not the program
            return
        found = _find()
        self.fails = found.fails
        say(*_lines(found), *self._hints)


@dataclass(frozen=True)
class _Found:
    """The live buffers at the end, without suppressed allocations."""

    lost: list[LeakGroup]
    held: list[LeakGroup]
    unexamined: list[LeakGroup]
    """All buffers, if the search for holders failed."""
    why: str
    """The reason for the failed search, else an empty string."""
    survey: Survey | None

    @property
    def fails(self) -> bool:
        """Return True if a buffer is lost, or may be lost because the search failed."""
        return bool(self.lost or self.unexamined)


def _find() -> _Found:
    """Collect garbage, and examine all live buffers that are not suppressed."""
    gc.collect()
    buffers = [buffer for each in unexpected(group(live())) for buffer in each.buffers]
    try:
        survey = Survey(buffers)
    except (KeyboardInterrupt, MemoryError, RuntimeError) as error:
        return _Found([], [], group(buffers), str(error) or type(error).__name__, None)
    lost = [buffer for buffer in buffers if survey.is_lost(buffer)]
    ids = {buffer.id for buffer in lost}
    held = [each for each in buffers if each.id not in ids and survey.is_live(each)]
    return _Found(group(lost), group(held), [], "", survey)


def _lines(found: _Found) -> list[str]:
    lines = []
    if found.lost:
        title = f"memrt: lost: {_amount(found.lost)}, held by no Python object"
        lines += [title, *describe(found.lost, found.survey, in_command=True)]
    if found.held:
        title = f"memrt: held at the end: {_amount(found.held)}"
        lines += [title, *describe(found.held, found.survey, in_command=True)]
    if found.unexamined:
        title = f"memrt: not examined, may be lost: {_amount(found.unexamined)} ({found.why})"
        lines += [title, *(f"  {each}" for each in found.unexamined[:GROUPS_SHOWN])]
    return lines or ["memrt: nothing is live at the end"]


def _amount(groups: list[LeakGroup]) -> str:
    count, size = amount(groups)
    return f"{plural(count, 'buffer')}, {human_bytes(size)}"
