"""``python -m memrt run``: run an unchanged program with its arrays on memrt.

All options, output files and required packages are checked before the program starts.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

import memrt
from memrt._stats.peak import set_precision_of_peaks
from memrt.commands.output.errors import CommandError
from memrt.commands.output.options import add_output_options
from memrt.commands.output.target import Target
from memrt.commands.programs.program import add_program_arguments, program_named
from memrt.commands.programs.summary import Summary, summarise_at_exit

if TYPE_CHECKING:
    from memrt.commands.output.reports import Outputs
    from memrt.commands.programs.pools import Pools
    from memrt.commands.programs.recording import Recording

HELP = "Run a Python program with all of NumPy's arrays on memrt, and print a summary to stderr."

EXAMPLES = """\
Options of memrt precede the program. The program is a script, folder, zip file or pipe, a module
after -m, code after -c, or - for source on standard input. All words after the program belong to
the program, including --. Arguments, standard input, __main__ module, call stack, tracebacks and
exit status are the same as in plain Python. Only sys.orig_argv and sys.modules show memrt.

Forked children stay on memrt. Other child processes do not use memrt, with three exceptions:
--numba puts Numba on memrt in child processes. --children puts Python child processes on memrt and
in the report, --workers puts these processes on memrt and in the summary.

The summary begins with a finding only if tracking is on: with --track, --html or --record. A
finding names the line to change, and the next step.

With --html, --record or --plot, memrt reads statistics while the program runs, and writes the
outputs at the end of the program. If the program calls os._exit or a signal kills the program,
memrt writes outputs only with --children. Unwritable files are refused before the program starts.

exit status: the status of the program; 2 if the program could not start

examples:
  python -m memrt run script.py --its-own-option
  python -m memrt run -m package.module argument
  python -m memrt run -c 'import numpy; numpy.ones(10)'
  python -m memrt run --alignment 4096 --track --json out.json script.py
  python -m memrt run --track --sample 512K script.py    track a sample, at low cost
  python -m memrt run --html report.html script.py       write a report about the memory use
  python -m memrt run --workers --limit 2G script.py     limit each worker of pools, too
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--alignment", type=int, default=64, metavar="N",
                        help="array alignment in bytes, a power of two; 16: 16 bytes above a "
                             "multiple of 64, as malloc (default 64)")  # fmt: skip
    parser.add_argument("--name", default="run", help="name of the policy (default 'run')")
    parser.add_argument(
        "--limit",
        metavar="SIZE",
        help="maximum of live bytes, like 2G, 80%% or auto: more is MemoryError",
    )
    parser.add_argument(
        "--soft-limit",
        metavar="SIZE",
        help="live bytes from which memrt frees memory, like 1G, 70%% or auto: 90%% of the limit",
    )
    parser.add_argument("--exact-peak", action="store_true",
                        help="measure the exact peak of all threads; slows allocations "
                             "(default: within 2%% of the peak)")  # fmt: skip
    parser.add_argument("--track", action="store_true",
                        help="print the first finding, and live buffers at the end, with "
                             "allocation sites")  # fmt: skip
    add_tracking_options(parser)
    parser.add_argument("--numba", action="store_true",
                        help="also put Numba on memrt, here and in child processes")  # fmt: skip
    parser.add_argument("--html", metavar="HTML", help="write a report to HTML; turns tracking on")
    parser.add_argument("--record", metavar="FILE",
                        help="record to FILE, for `report`; turns tracking on")  # fmt: skip
    add_output_options(parser)
    parser.add_argument("--children", action="store_true",
                        help="also report child processes")  # fmt: skip
    parser.add_argument("--workers", action="store_true",
                        help="put worker processes on memrt, with limits and scope, and show "
                             "their memory")  # fmt: skip
    parser.add_argument("--share", action="store_true",
                        help="let `python -m memrt top` read the statistics")  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help="write statistics to FILE as JSON")
    parser.add_argument("--quiet", action="store_true", help="print no summary")
    add_program_arguments(parser)


def execute(arguments: argparse.Namespace) -> None:
    """Check options and outputs, put NumPy on memrt, and run the program.

    Raises
    ------
    CommandError
        Before the program starts, for an invalid option, output or program.
    """
    program = program_named(arguments.program)
    program.load()
    policy = _policy(arguments)
    if (arguments.limit, arguments.soft_limit) != (None, None):
        _set_limits(arguments.limit, arguments.soft_limit)
    json_file = None if arguments.json is None else Target(arguments.json, arguments.force)
    outputs = _outputs(arguments, json_file)
    if arguments.children and outputs is None:
        raise CommandError(
            "--children needs a report: add --html FILE, --record FILE or --plot PNG"
        )
    if arguments.share:
        _share()
    tracked = bool(arguments.track or arguments.html or arguments.record)
    if not tracked and (arguments.sample is not None or arguments.native):
        raise CommandError("--sample and --native need tracking: add --track, --html or --record")
    if tracked:
        requested_tracking(arguments).__enter__()  # never left: the reports at exit need tracking
    set_precision_of_peaks(arguments.exact_peak)
    recording = None
    if outputs is not None or (tracked and not arguments.quiet):
        recording = _recording(arguments, outputs, tracked)
    pools = _pools() if arguments.workers else None
    _summarise(arguments, policy, json_file, recording, pools, outputs)
    if arguments.numba:
        _put_numba_on_memrt()
    memrt.enable(policy)
    if pools is not None:
        pools.start()
    if recording is None:
        program.run()
        return
    recording.start()
    with recording.program():
        program.run()


def _summarise(
    arguments: argparse.Namespace,
    policy: memrt.Policy,
    json_file: Target | None,
    recording: Recording | None,
    pools: Pools | None,
    outputs: Outputs | None,
) -> None:
    """Register the summary. Without a report, the summary names the command that shows more."""
    has_report = arguments.html is not None or arguments.record is not None
    summarise_at_exit(
        Summary(
            policy,
            json_file=json_file,
            quiet=arguments.quiet,
            findings=None if recording is None else recording.findings,
            program=[] if has_report else arguments.program,
            hints=arguments.hints,
            tracked=arguments.track,
            outputs=0 if outputs is None else len(outputs),
            pools=pools,
        )
    )


def _pools() -> Pools:
    from memrt.commands.programs.pools import Pools  # saves a plain run the memory

    return Pools()


def _set_limits(limit: str | None, soft: str | None) -> None:
    """Set the limits. For None, the limit of the environment stays in force."""
    values = {option.name: option.value for option in memrt.debug.options()}
    given = "--soft-limit" if limit is None else "--limit"
    try:
        memrt.limit(limit or values["MEMRT_LIMIT"], soft=soft or values["MEMRT_SOFT_LIMIT"])
    except (ValueError, RuntimeError) as error:
        raise CommandError(f"{given}: {error}") from None


def _outputs(arguments: argparse.Namespace, json_file: Target | None) -> Outputs | None:
    """Return the requested pages, pictures and recordings, or None if none are requested."""
    if arguments.html is None and arguments.plot is None and arguments.record is None:
        return None
    from memrt.commands.output.reports import Outputs  # saves a plain run the memory

    return Outputs(
        html=arguments.html,
        plot=arguments.plot,
        record=arguments.record,
        force=arguments.force or _continues(arguments),
        others=[] if json_file is None else [json_file],
    )


def _continues(arguments: argparse.Namespace) -> bool:
    """Return whether the program replaced itself by this command, after it wrote the outputs."""
    if not arguments.children:
        return False
    from memrt._profile.family import folder_before_exec

    return folder_before_exec() is not None


def _recording(arguments: argparse.Namespace, outputs: Outputs | None, tracked: bool) -> Recording:
    """Return a recording of this process, not started.

    With --children, the recording includes child processes, and passes the options on to them.
    """
    from memrt._profile.family import Family
    from memrt._profile.recorder import Recorder
    from memrt.commands.programs.recording import Recording

    settings = {
        "Policy": arguments.name,
        "Alignment": str(arguments.alignment),
        "Tracked allocations": _tracking_text(arguments) if tracked else "no",
    }
    child_options = {
        "settings": settings,
        "tracked": tracked,
        "tracking": {name: getattr(arguments, name) for name in ("frames", "native", "sample")},
        "alignment": arguments.alignment,
        "name": arguments.name,
        "limit": arguments.limit,
        "outputs": {name: _absolute(getattr(arguments, name)) for name in _OUTPUTS},
        "all_frames": arguments.all_frames,
        "soft_limit": arguments.soft_limit,
        "exact_peak": arguments.exact_peak,
    }
    family = Family(child_options) if arguments.children else None
    return Recording(Recorder(settings, tracked), family, outputs, arguments.quiet)


_OUTPUTS = ("html", "plot", "record")


def _absolute(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)


def _tracking_text(arguments: argparse.Namespace) -> str:
    """Return the tracking settings as text for the report."""
    sampled = "all" if arguments.sample is None else f"about one per {arguments.sample} of memory"
    return f"{sampled}, with {arguments.frames} Python calls and {arguments.native} native calls"


def add_tracking_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of :class:`memrt.debug.tracking` as options."""
    parser.add_argument("--frames", type=int, default=16, metavar="N",
                        help="Python calls to record per allocation (default 16)")  # fmt: skip
    parser.add_argument("--native", type=int, default=0, metavar="N",
                        help="native calls to record per allocation (default 0)")  # fmt: skip
    parser.add_argument("--sample", metavar="SIZE",
                        help="track about one allocation per SIZE bytes, like 512K")  # fmt: skip
    parser.add_argument("--all-frames", action="store_true",
                        help="name the innermost calls, also in libraries, with whole "
                             "paths")  # fmt: skip


def requested_tracking(arguments: argparse.Namespace) -> memrt.debug.tracking:
    """Return a tracking context, not entered, with the settings of the options.

    Sets the form of call stacks for this process.

    Raises
    ------
    CommandError
        For an invalid setting.
    """
    from memrt._tracking.user_code import show_all_frames  # a plain run has no call stacks

    show_all_frames(arguments.all_frames)
    try:
        return memrt.debug.tracking(
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
