"""``python -m memrt trace``: record every allocation of a program as an event in a file."""

from __future__ import annotations

import argparse
import atexit
import os
import warnings

import memrt
from memrt._support.units import human_bytes, parse_count, plural
from memrt._trace.recorder import TraceStats
from memrt.commands.output.errors import CommandError, say
from memrt.commands.programs.program import add_program_arguments, program_named

HELP = "Run a Python program, and record each allocation, resize and free as an event in a file."

EXAMPLES = """\
The program runs with all of NumPy's arrays on memrt, as under `run`. Arguments, standard input and
exit status do not change. memrt.debug.mark() in the program adds a mark. On a full disk the
program continues, and memrt prints the number of lost events at the end. Child processes are not
recorded.

exit status: the status of the program; 2 if the trace could not start

examples:
  python -m memrt trace script.py                       write script.PID.memtrace
  python -m memrt trace -o run.memtrace -m package.module argument
  python -m memrt trace --last 1M --frames 4 script.py  keep the last million events
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="file to write (default: PROGRAM.PID.memtrace)")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--frames", type=int, default=16, metavar="N",
                        help="Python calls to record per allocation (default 16)")  # fmt: skip
    parser.add_argument("--native", type=int, default=0, metavar="N",
                        help="native calls to record per allocation (default 0)")  # fmt: skip
    parser.add_argument("--last", metavar="N",
                        help="write only the last N events, at the end; units K, M")  # fmt: skip
    parser.add_argument("--quiet", action="store_true",
                        help="print nothing at the end, unless events were lost")  # fmt: skip
    add_program_arguments(parser)


def execute(arguments: argparse.Namespace) -> None:
    program = program_named(arguments.program)
    program.load()
    output = arguments.output or f"{program.name}.{os.getpid()}.memtrace"
    trace = _begin(arguments, output)
    hints = [] if arguments.quiet else arguments.hints
    atexit.register(_finish, trace, os.getpid(), arguments.quiet, hints)
    memrt.enable()
    program.run()


def _begin(arguments: argparse.Namespace, output: str) -> memrt.debug.trace:
    try:
        last = None if arguments.last is None else parse_count(arguments.last)
        trace = memrt.debug.trace(
            output,
            frames=arguments.frames,
            native=arguments.native,
            last=last,
            replace=arguments.force,
        )
        return trace.__enter__()
    except FileExistsError:
        raise CommandError(
            f"{output!r} exists already: name another file, or add --force"
        ) from None
    except ValueError as error:
        raise CommandError(str(error)) from None
    except (OSError, MemoryError) as error:
        raise CommandError(f"cannot record into {output!r}: {reason_of(error)}") from None


def reason_of(error: Exception) -> str:
    """Return the reason of a failed file operation."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _finish(trace: memrt.debug.trace, owner: int, quiet: bool, hints: list[str]) -> None:
    """End the trace at exit, after the program's exit functions and before module finalization."""
    if os.getpid() != owner:  # a forked child is not the program
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the summary below reports lost events
        trace.__exit__()
    stats = trace.stats
    if stats.recording or (quiet and not stats.lost):
        return
    say(_summary(trace.path, stats), *hints)


def _summary(path: str, stats: TraceStats) -> str:
    line = f"memrt: {plural(stats.events, 'event')}, {human_bytes(stats.bytes)} in {path}"
    if stats.overwritten:
        line += f", without {stats.overwritten:,} earlier events"
    return line if stats.loss is None else f"{line}\nmemrt: {stats.loss}"
