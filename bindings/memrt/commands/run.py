"""``python -m memrt run``: a program on memrt, unchanged."""

from __future__ import annotations

import argparse

import memrt
from memrt._report.family import Family
from memrt._report.recorder import Recorder
from memrt.commands.errors import CommandError
from memrt.commands.outputs import Outputs, add_output_options
from memrt.commands.program import add_program_arguments, program_named
from memrt.commands.recording import Recording
from memrt.commands.summary import summarise_at_exit

HELP = "Run a Python program with all of NumPy's arrays on memrt; a summary goes to stderr."

EXAMPLES = """\
Options of memrt stand before the program, those of the program after it. The program sees the
arguments, standard input, __main__ module and exit status that it would have without memrt.
Processes that it starts are not on memrt, except that with --numba their Numba is, and with
--children all are that are Pythons, and forked.

With --html, --record or --plot the statistics are read while it runs, and written at its end,
however that comes, unless it leaves by os._exit or a signal. Files that cannot be written are
refused before it starts.

exit status: the program's own; 2 when it could not be run

examples:
  python -m memrt run script.py --its-own-option
  python -m memrt run -m package.module argument
  python -m memrt run --alignment 4096 --track --json out.json script.py
  python -m memrt run --track --sample 512K script.py    little cost, estimates
  python -m memrt run --html report.html script.py       a page of all that it did with memory
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--alignment", type=int, default=64, metavar="N",
                        help="of every array in bytes, a power of two (default 64)")  # fmt: skip
    parser.add_argument("--name", default="run", help="of the policy in reports (default 'run')")
    parser.add_argument("--track", action="store_true",
                        help="list what is live at the end, and where it was born")  # fmt: skip
    add_tracking_options(parser)
    parser.add_argument("--numba", action="store_true",
                        help="put Numba on memrt, too, here and in child processes")  # fmt: skip
    parser.add_argument("--html", metavar="HTML", help="write a report to HTML; tracks births")
    parser.add_argument("--record", metavar="FILE",
                        help="record into FILE, for `report`; tracks births")  # fmt: skip
    add_output_options(parser)
    parser.add_argument("--children", action="store_true",
                        help="report child processes, too")  # fmt: skip
    parser.add_argument("--share", action="store_true",
                        help="let 'python -m memrt top' read the statistics")  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help="write the numbers to FILE as JSON")
    parser.add_argument("--quiet", action="store_true", help="print no summary")
    add_program_arguments(parser)


def execute(arguments: argparse.Namespace) -> None:
    program = program_named(arguments.module, arguments.program)
    program.load()
    policy = _policy(arguments)
    outputs = Outputs(
        html=arguments.html, plot=arguments.plot, record=arguments.record, force=arguments.force
    )
    if arguments.children and not outputs:
        raise CommandError(
            "--children is for reports: add --html FILE, --record FILE or --plot PNG"
        )
    if arguments.share:
        _share()
    tracked = bool(arguments.track or arguments.html or arguments.record)
    if tracked:
        tracking_asked_for(arguments).__enter__()
    recording = _recording(arguments, outputs, tracked) if outputs else None
    summarise_at_exit(policy, json_file=arguments.json, quiet=arguments.quiet)
    if arguments.numba:
        _put_numba_on_memrt()
    memrt.enable(policy)
    if recording is None:
        program.run()
        return
    recording.start()
    with recording.program():
        program.run()


def _recording(arguments: argparse.Namespace, outputs: Outputs, tracked: bool) -> Recording:
    """A recording of this process, which is to begin."""
    settings = {
        "Policy": arguments.name,
        "Alignment": str(arguments.alignment),
        "Births tracked": _tracking_text(arguments) if tracked else "no",
    }
    asked = {
        "settings": settings,
        "tracked": tracked,
        "tracking": {name: getattr(arguments, name) for name in ("frames", "native", "sample")},
        "alignment": arguments.alignment,
        "name": arguments.name,
    }
    family = Family(asked) if arguments.children else None
    return Recording(Recorder(settings, tracked), family, outputs, arguments.quiet)


def _tracking_text(arguments: argparse.Namespace) -> str:
    what = "all" if arguments.sample is None else f"one in about {arguments.sample}"
    return f"{what}, with {arguments.frames} Python calls and {arguments.native} native ones"


def add_tracking_options(parser: argparse.ArgumentParser) -> None:
    """What :class:`memrt.tracking` takes, as options."""
    parser.add_argument("--frames", type=int, default=16, metavar="N",
                        help="Python calls to record of each birth (default 16)")  # fmt: skip
    parser.add_argument("--native", type=int, default=0, metavar="N",
                        help="native calls to record of each birth (default 0)")  # fmt: skip
    parser.add_argument("--sample", metavar="SIZE",
                        help="track one birth in about so many bytes, like 512K")  # fmt: skip


def tracking_asked_for(arguments: argparse.Namespace) -> memrt.tracking:
    """Tracking as those options say."""
    try:
        return memrt.tracking(
            frames=arguments.frames, native=arguments.native, sample=arguments.sample
        )
    except ValueError as error:
        raise CommandError(str(error)) from None


def _share() -> None:
    try:
        memrt.set_option("share", True)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _put_numba_on_memrt() -> None:
    from memrt import numba

    try:
        numba.install(children=True)
    except ImportError as error:
        raise CommandError(str(error)) from None


def _policy(arguments: argparse.Namespace) -> memrt.Policy:
    try:
        return memrt.Policy(arguments.alignment, arguments.name)
    except (ValueError, MemoryError) as error:
        raise CommandError(str(error)) from None
