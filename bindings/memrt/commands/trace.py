"""``python -m memrt trace``: every allocation of a program as an event in a file."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import sys
import warnings

import memrt
from memrt._tracing import TraceStats
from memrt._units import human_bytes, parse_count, plural
from memrt.commands.errors import CommandError
from memrt.commands.program import add_program_arguments, program_named

HELP = "Run a Python program and record each birth, resize and death of its memory into a file."

EXAMPLES = """\
The program runs with all of NumPy's arrays on memrt, as by `run`, and sees the arguments, standard
input and exit status that it would have without. What it marks by memrt.mark() is in the trace.
Where the disk is full it goes on, and what was lost is said at its end. Processes that it starts
are not recorded.

exit status: the program's own; 2 when the trace could not begin

examples:
  python -m memrt trace script.py                       into script.PID.memtrace
  python -m memrt trace -o run.memtrace -m package.module argument
  python -m memrt trace --last 1M --frames 4 script.py  the last million events
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="to record into (default: PROGRAM.PID.memtrace)")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument("--frames", type=int, default=16, metavar="N",
                        help="Python calls to record of each birth (default 16)")  # fmt: skip
    parser.add_argument("--native", type=int, default=0, metavar="N",
                        help="native calls to record of each birth (default 0)")  # fmt: skip
    parser.add_argument("--last", metavar="N",
                        help="keep only the last N events, till the end; K, M")  # fmt: skip
    parser.add_argument("--quiet", action="store_true",
                        help="say nothing at the end, unless events were lost")  # fmt: skip
    add_program_arguments(parser)


def execute(arguments: argparse.Namespace) -> None:
    program = program_named(arguments.module, arguments.program)
    program.load()
    output = arguments.output or _name_for(program.target)
    trace = _begin(arguments, output)
    atexit.register(_finish, trace, os.getpid(), arguments.quiet)
    memrt.enable()
    program.run()


def _name_for(target: str) -> str:
    stem = os.path.splitext(os.path.basename(os.path.normpath(target)))[0]
    return f"{stem or 'program'}.{os.getpid()}.memtrace"


def _begin(arguments: argparse.Namespace, output: str) -> memrt.trace:
    try:
        last = None if arguments.last is None else parse_count(arguments.last)
        trace = memrt.trace(
            output,
            frames=arguments.frames,
            native=arguments.native,
            last=last,
            replace=arguments.force,
        )
        return trace.__enter__()
    except FileExistsError:
        raise CommandError(f"{output!r} is there already: give another -o, or --force") from None
    except ValueError as error:
        raise CommandError(str(error)) from None
    except (OSError, MemoryError) as error:
        raise CommandError(f"cannot record into {output!r}: {reason_of(error)}") from None


def reason_of(error: Exception) -> str:
    """Why a file could not be used."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _finish(trace: memrt.trace, owner: int, quiet: bool) -> None:
    """At the exit: after the program's own functions for it, before its modules go."""
    if os.getpid() != owner:  # a forked child is not the program
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what was lost is said below
        trace.__exit__()
    stats = trace.stats
    if stats.recording or (quiet and not stats.lost):
        return
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be gone
        print(_summary(trace.path, stats), file=sys.stderr, flush=True)


def _summary(path: str, stats: TraceStats) -> str:
    line = f"memrt: {plural(stats.events, 'event')}, {human_bytes(stats.bytes)} in {path}"
    if stats.overwritten:
        line += f", without {stats.overwritten:,} that came before the last"
    return line if stats.loss is None else f"{line}\nmemrt: {stats.loss}"
