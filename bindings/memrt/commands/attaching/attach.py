"""``python -m memrt attach``: put a running Python process on memrt."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from typing import Any

import memrt
from memrt._profile.recording import RecordingError, loads
from memrt._support.units import plural
from memrt.commands.attaching.mailbox import ANSWER, RECORDING, SCRIPT, Mailbox
from memrt.commands.attaching.payload import as_statement, payload
from memrt.commands.attaching.target import Target, refusal, target_of
from memrt.commands.attaching.tracing import TraceError, call_in_main_thread
from memrt.commands.output.errors import CommandError
from memrt.commands.output.reports import Outputs

HELP = "Put a running Python process on memrt, so that `top` shows the process."

EXAMPLES = """\
From then on, the arrays of the main thread and of new threads are on memrt, and the process shares
its statistics. With --report, allocations are tracked for some seconds, and the command writes the
page, or a recording by any other suffix than .html. Arrays that exist, running threads and existing
tasks of asyncio are not reached.

The process needs memrt of the same version in its environment. Python 3.14 and later run the code
by sys.remote_exec. For older versions, the command stops the main thread by ptrace for a
millisecond and adds a pending call of Python; x86-64 only. The process then imports memrt on its
main thread, between two instructions of Python code. Do not attach to a process whose loss you
cannot accept.

exit status:
  0  attached, detached, or the report was written
  2  nothing was changed, or the report could not be written; standard error gives the reason

examples:
  python -m memrt attach 4711                     then: python -m memrt top 4711
  python -m memrt attach 4711 --report now.html   record for 10 seconds, write the page
  python -m memrt attach 4711 --detach
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", type=int, metavar="PID", help="process id")
    parser.add_argument("--track", action="store_true", help="track allocations, with their sites")
    parser.add_argument("--sample", metavar="SIZE",
                        help="track about one allocation per SIZE bytes, like 512K")  # fmt: skip
    parser.add_argument("--report", metavar="FILE",
                        help="record for some seconds, and write FILE: a page if the suffix is "
                        ".html, else a recording for `report`")  # fmt: skip
    parser.add_argument("--seconds", type=_seconds, default=10.0, metavar="N",
                        help="length of the recording (default 10)")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace an existing FILE")
    parser.add_argument("--detach", action="store_true",
                        help="undo attach: no more counting, tracking and sharing")  # fmt: skip
    parser.add_argument("--wait", type=_seconds, default=10.0, metavar="SECONDS",
                        help="give up if the main thread runs no Python code for SECONDS "
                        "(default 10)")  # fmt: skip


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 1e6:
        raise argparse.ArgumentTypeError(f"must be a number of seconds from 0.1, got {text!r}")
    return seconds


def execute(arguments: argparse.Namespace) -> None:
    """Check the outputs and the process, then attach, detach, or record and detach.

    Raises
    ------
    CommandError
        The process refuses, has ended, ran no Python code, or does not answer.
    """
    if arguments.detach and (arguments.report or arguments.track):
        raise CommandError("--detach must stand alone: leave out --track and --report")
    if arguments.sample is not None and not (arguments.track or arguments.report):
        raise CommandError("--sample needs --track or --report")
    outputs = None if arguments.report is None else _outputs(arguments)
    target = target_of(arguments.pid)
    if arguments.detach:
        ask(target, {"action": "detach"}, arguments.wait).remove()
        print(f"memrt: detached from process {target.pid}")
    elif outputs is None:
        box = ask(target, _request(arguments), arguments.wait)
        print(_said(target.pid, box.answer))
        box.remove()
    else:
        _record(target, arguments, outputs)


def _outputs(arguments: argparse.Namespace) -> Outputs:
    is_page = arguments.report.endswith(".html")
    return Outputs(
        html=arguments.report if is_page else None,
        record=None if is_page else arguments.report,
        plot=None,
        force=arguments.force,
    )


def _request(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "action": "attach",
        "track": arguments.track,
        "sample": arguments.sample,
        "seconds": None if arguments.report is None else arguments.seconds,
    }


def _said(pid: int, answer: dict[str, Any]) -> str:
    threads = answer["other_threads"]
    missed = f"; {plural(threads, 'running thread')} not reached" if threads else ""
    return (
        f"memrt: attached to process {pid}: arrays of the main thread and of new threads from now "
        f"on{missed}\nmemrt: `python -m memrt top {pid}` shows the process, `python -m memrt "
        f"attach {pid} --detach` ends"
    )


_SECONDS_AFTER_TAKING = 60.0  # the process imports memrt and NumPy before the answer


class Answered(Mailbox):
    """Mailbox with the answer of the process."""

    answer: dict[str, Any]


def ask(
    target: Target,
    request: dict[str, Any],
    seconds: float,
    remedy: str = "try again, or add --wait SECONDS",
) -> Answered:
    """Send a request, and return the mailbox with the answer. The caller removes the mailbox.

    `remedy` is for a process that has not taken the request after `seconds`.

    Raises
    ------
    CommandError
        The process ran no Python code, does not answer, has ended, or refuses.
    """
    box = Answered(target, {**request, "version": memrt.__version__})
    try:
        _inject(target, box)
        box.answer = _parsed(target, _wait_for_answer(target, box, seconds, remedy))
        if "error" in box.answer:
            raise CommandError(f"process {target.pid} {box.answer['error']}")
    except BaseException:
        _withdraw(target, box)
        box.remove()
        raise
    return box


def _wait_for_answer(target: Target, box: Mailbox, seconds: float, remedy: str) -> bytes:
    """Return the answer. A request that the process has not taken after `seconds` is withdrawn."""
    text = box.wait(ANSWER, seconds)
    if text is None and _withdraw(target, box):
        raise CommandError(
            f"the main thread of process {target.pid} ran no Python code for {seconds:g} s, so "
            f"nothing was changed: {remedy}"
        )
    if text is None:
        text = box.wait(ANSWER, _SECONDS_AFTER_TAKING)
    if text is None:
        raise CommandError(
            f"process {target.pid} took the request, but did not answer for "
            f"{_SECONDS_AFTER_TAKING:g} s: the process may be attached, see `python -m memrt top`"
        )
    return text


def _withdraw(target: Target, box: Mailbox) -> bool:
    """Withdraw the request. Return false if the process has taken the request.

    Python 3.14 prints an error where the script of sys.remote_exec is missing later, so the process
    gets an empty script.
    """
    if not box.withdraw():
        return False
    remote_exec = getattr(sys, "remote_exec", None)
    if remote_exec is not None and (box.folder / SCRIPT).exists():
        with contextlib.suppress(RuntimeError, OSError):  # the process has ended
            remote_exec(target.pid, os.devnull)
    return True


def _parsed(target: Target, text: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise CommandError(f"process {target.pid} wrote no answer")
    return answer


def _inject(target: Target, box: Mailbox) -> None:
    """Let the main thread of the process run the payload soon."""
    code = payload(str(box.folder))
    try:
        if not _ran_by_remote_exec(target.pid, code, box):
            functions = target.symbols
            added = call_in_main_thread(
                target.pid,
                functions["Py_AddPendingCall"],
                functions["PyRun_SimpleString"],
                as_statement(code),
            )
            if added != 0:
                raise TraceError("has too many pending calls: try again")
    except TraceError as error:
        raise CommandError(f"process {target.pid} {error}") from None
    except OSError as error:
        raise CommandError(f"process {target.pid} {refusal(error)}") from None


def _ran_by_remote_exec(pid: int, code: str, box: Mailbox) -> bool:
    """Return whether sys.remote_exec of Python 3.14 accepted the code.

    The function raises RuntimeError for a process with another version of Python, and for a process
    that has switched remote debugging off.
    """
    remote_exec = getattr(sys, "remote_exec", None)
    if remote_exec is None:
        return False
    try:
        remote_exec(pid, str(box.add(SCRIPT, code)))
    except RuntimeError:
        return False
    return True


def _record(target: Target, arguments: argparse.Namespace, outputs: Outputs) -> None:
    """Record the process, write the outputs, and undo the changes made for the recording."""
    box = ask(target, _request(arguments), arguments.wait)
    try:
        text = box.wait(RECORDING, arguments.seconds + 120.0)
        if text is None:
            raise CommandError(f"process {target.pid} did not write the recording")
        failures = outputs.write(loads(text))
        if failures:
            raise CommandError(failures[0])
        print("\n".join(outputs.said()))
    except RecordingError as error:
        raise CommandError(f"process {target.pid} wrote no recording: {error}") from None
    finally:
        box.remove()
        _end_recording(target, arguments.wait)


def _end_recording(target: Target, seconds: float) -> None:
    try:
        ask(target, {"action": "end recording"}, seconds).remove()
    except CommandError:
        if target.runs:
            raise
