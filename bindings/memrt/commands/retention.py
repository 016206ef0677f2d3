"""``python -m memrt retention``: report large buffers that small views keep, at a program's end."""

from __future__ import annotations

import argparse
import atexit
import gc
import os
from collections import defaultdict

import memrt
from memrt._holders.retention import Retained, retention
from memrt._leaks.advice import COPY
from memrt._leaks.survey import Survey
from memrt._support.units import human_bytes, plural
from memrt._tracking.live import LiveBuffer, live
from memrt._tracking.sites import Place, site_text
from memrt.commands.output.errors import say
from memrt.commands.programs.program import add_program_arguments, program_named
from memrt.commands.run import add_tracking_options, requested_tracking

HELP = "Run a Python program, and list large buffers that only small views keep at the end."

EXAMPLES = """\
The program runs with all of NumPy's arrays on memrt, as under `run`. After the threads and exit
functions of the program, memrt collects garbage and lists the buffers of which views use less than
half, by allocation site and kind of holder. The bytes in no view would go if the program copied the
views. Buffers with less than 64 KiB in no view are left out.

exit status: the status of the program; 2 if the program could not start

examples:
  python -m memrt retention script.py
  python -m memrt retention -m package.module argument
"""

_MOST = 10_000  # buffers to examine
_SHOWN = 5  # groups


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    add_tracking_options(parser)
    add_program_arguments(parser)


def execute(arguments: argparse.Namespace) -> None:
    program = program_named(arguments.program)
    program.load()
    requested_tracking(arguments).__enter__()
    memrt.enable()
    atexit.register(_finish, os.getpid(), arguments.hints)
    program.run()


def _finish(owner: int, hints: list[str]) -> None:
    if os.getpid() != owner:  # a forked child is not the program
        return
    gc.collect()
    try:
        lines = _lines()
    except (KeyboardInterrupt, MemoryError, RuntimeError) as error:
        lines = [f"memrt: views were not examined: {str(error) or type(error).__name__}"]
    say(*lines, *hints)


def _lines() -> list[str]:
    found = retention(limit=_MOST)
    if not found.count:
        return ["memrt: no small view keeps a large buffer at the end"]
    buffers = {buffer.address: buffer for buffer in live()}
    listed = [b for each in found if (b := buffers.get(each.holders.address)) is not None]
    survey = Survey(listed)
    groups: defaultdict[tuple[Place | None, str], list[tuple[Retained, LiveBuffer | None]]]
    groups = defaultdict(list)
    for each in found:
        buffer = buffers.get(each.holders.address)
        holder = "" if buffer is None else survey.main_holder(buffer)
        groups[each.place, holder].append((each, buffer))
    rows = sorted(groups.values(), key=lambda group: -sum(each.wasted for each, _ in group))
    lines = [
        f"memrt: small views keep {plural(found.count, 'buffer')} at the end: "
        f"{human_bytes(found.wasted)} would go if the views were copied"
    ]
    for group in rows[:_SHOWN]:
        lines += _group_lines(group, survey)
    if len(rows) > _SHOWN:
        rest = sum(each.wasted for group in rows[_SHOWN:] for each, _ in group)
        lines.append(f"  and {human_bytes(rest)} in {plural(len(rows) - _SHOWN, 'more group')}")
    return lines


def _group_lines(group: list[tuple[Retained, LiveBuffer | None]], survey: Survey) -> list[str]:
    kept, viewed = sum(each.nbytes for each, _ in group), sum(each.viewed for each, _ in group)
    first = next((buffer for _, buffer in group if buffer is not None), None)
    where = "an unknown source line" if first is None else site_text(first.site)
    lines = [
        f"  {human_bytes(kept)} in {plural(len(group), 'buffer')} allocated in {where}",
        f"      kept for views of {human_bytes(viewed)}",
    ]
    if first is not None:
        lines.append(f"      {len(group):,} x {survey.main_holder(first)}")
    return [*lines, f"      fix: {COPY}"]
