"""``python -m memrt leaks``: what a program leaves behind, and who holds it."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import os
import sys

import memrt
from memrt._leaks import LeakGroup, amount, describe, group, held, unexpected
from memrt._live import LiveBuffer
from memrt._units import human_bytes, plural
from memrt.commands.program import add_program_arguments, program_named
from memrt.commands.run import add_tracking_options, tracking_asked_for

HELP = "Run a Python program and tell what is live at its end, where it was born, who holds it."

EXAMPLES = """\
The program runs with all of NumPy's arrays on memrt, as by `run`. At its end, after its threads and
exit functions, garbage is collected and the live buffers are told by place of birth: first those
that are lost, which no Python object holds and no C code under a name, then those that something
holds. What NumPy keeps for good is left out.

exit status: the program's own; with --fail 23 where it ended well and something is lost

examples:
  python -m memrt leaks script.py
  python -m memrt leaks --fail -m package.module argument
  python -m memrt leaks --native 8 script.py    with the calls of native code
"""

LOOKED_AT = 100
"""Buffers, the largest ones, whose holders are looked for: each takes a pass over all objects."""

EXIT_LOST = 23


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    add_tracking_options(parser)
    parser.add_argument("--fail", action="store_true",
                        help=f"exit with {EXIT_LOST} where something is lost")  # fmt: skip
    add_program_arguments(parser)


def execute(arguments: argparse.Namespace) -> None:
    program = program_named(arguments.module, arguments.program)
    program.load()
    verdict = _Verdict(arguments.fail)
    tracking_asked_for(arguments).__enter__()
    memrt.enable()
    try:
        program.run()
    except SystemExit as end:
        verdict.ended_well = end.code in (None, 0)
        raise
    except BaseException:
        verdict.ended_well = False
        raise


class _Verdict:
    """What is said at the exit of this process, and its status."""

    def __init__(self, fails: bool) -> None:
        self.ended_well = True
        self._fails = fails
        self._owner = os.getpid()
        atexit.register(self._finish)

    def _finish(self) -> None:
        if os.getpid() != self._owner:  # a forked child is not the program
            return
        lost, kept = _sorted_out()
        with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be gone
            print("\n".join(_lines(lost, kept)), file=sys.stderr, flush=True)
        if self._fails and lost and self.ended_well:
            sys.stdout.flush()
            os._exit(EXIT_LOST)


def _sorted_out() -> tuple[list[LeakGroup], list[LeakGroup]]:
    """Those that are lost, and the others; what is known to last is in neither."""
    gc.collect()
    buffers = [buffer for each in unexpected(group(memrt.live())) for buffer in each.buffers]
    largest = sorted(buffers, key=lambda buffer: -buffer.size)[:LOOKED_AT]
    lost = [buffer for buffer in largest if _is_lost(buffer)]
    ids = {buffer.id for buffer in lost}
    return group(lost), group(buffer for buffer in buffers if buffer.id not in ids)


def _is_lost(buffer: LiveBuffer) -> bool:
    found = held(buffer)
    if found is None:
        return False
    return not found.named and not any(each.referrers for each in found.rows)


def _lines(lost: list[LeakGroup], kept: list[LeakGroup]) -> list[str]:
    if not lost and not kept:
        return ["memrt: nothing is live at the end"]
    lines = []
    if lost:
        lines += [f"memrt: lost: {_amount(lost)}, held by no Python object", *describe(lost)]
    if kept:
        lines += [f"memrt: held at the end: {_amount(kept)}", *describe(kept)]
    return lines


def _amount(groups: list[LeakGroup]) -> str:
    count, size = amount(groups)
    return f"{plural(count, 'buffer')}, {human_bytes(size)}"
