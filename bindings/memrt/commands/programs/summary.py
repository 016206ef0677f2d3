"""Write the summary at the end of ``python -m memrt run``: the first finding, then the figures.

The summary has at most 12 lines, with the lines about output files.
"""

from __future__ import annotations

import atexit
import importlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import memrt
from memrt import _memrt
from memrt._support.units import human_bytes, human_seconds
from memrt.commands.output.errors import say
from memrt.commands.output.table import text_table
from memrt.commands.output.target import Target, written
from memrt.commands.programs.hints import more_line

if TYPE_CHECKING:
    from memrt._tracking.live import LiveBuffer
    from memrt.commands.programs.pools import Pools

_LISTED = 3  # allocation sites in the printed summary, one fewer for each line after the first

Findings = list[dict[str, Any]]


@dataclass
class Summary:
    """Contents of the summary."""

    policy: memrt.Policy
    json_file: Target | None = None
    quiet: bool = False
    findings: Callable[[], Findings] | None = None
    """Returns the findings of the recording, at the end; None without tracking."""
    program: list[str] = field(default_factory=list)
    """Words of the program for the command that shows more; empty: no such line."""
    hints: list[str] = field(default_factory=list)
    """Lines at the end of the summary."""
    tracked: bool = False
    """Whether the command turned tracking on."""
    outputs: int = 0
    """Lines that name the files with outputs, printed after the summary."""
    pools: Pools | None = None
    """Worker processes; None: without --workers."""


def summarise_at_exit(wanted: Summary) -> None:
    """Register the summary for the exit of this process, after its threads and exit functions."""
    json_file = wanted.json_file
    if json_file is not None:
        # The end of a program imports nothing.
        importlib.import_module("json")
        importlib.import_module("memrt._process.account")
    if _memrt.tracking_enabled():
        importlib.import_module("memrt.commands.programs.live_rows")
    owner, begin = os.getpid(), time.perf_counter()

    def finish() -> None:
        if os.getpid() != owner:  # a forked child is not the program
            return
        live = memrt.debug.live() if _memrt.tracking_enabled() else None
        report = _report(wanted.policy, time.perf_counter() - begin, live)
        workers = None if wanted.pools is None else wanted.pools.collect()
        if workers is not None:
            from memrt.commands.programs.pools import worker_lines, worker_rows

            report["workers"] = worker_rows(workers)
        if json_file is not None:
            _write(json_file, {**report, "memory": _memory()})
        if not wanted.quiet:
            found = [] if wanted.findings is None else wanted.findings()
            more = [more_line(wanted.program, found, wanted.tracked)] if wanted.program else []
            listed = _LISTED - len(wanted.hints) - max(0, len(more) + wanted.outputs - 1)
            lines = _as_lines(report, live, found, listed - (workers is not None))
            lines += [] if workers is None else worker_lines(workers, 0 if live else max(0, listed))
            say(*lines, *more, *wanted.hints)

    atexit.register(finish)


def _report(policy: memrt.Policy, seconds: float, live: list[LiveBuffer] | None) -> dict[str, Any]:
    return {
        "program": sys.argv,
        "seconds": seconds,
        "memrt": memrt.__version__,
        "policy": {"name": policy.name, "alignment": policy.alignment},
        "stats": policy.stats().to_dict(),
        "process": memrt.stats().to_dict(),
        "live": None if live is None else [buffer.to_dict() for buffer in live],
    }


def _memory() -> dict[str, Any] | None:
    """Return the account of the memory of the process, or None where the system has none."""
    try:
        return memrt.debug.process_memory().to_dict()
    except OSError:
        return None


def _write(json_file: Target, report: dict[str, Any]) -> None:
    import json

    failure = written(json_file, lambda file: file.write(json.dumps(report, indent=2).encode()))
    if failure is not None:
        say(f"memrt: {failure}")


def _as_lines(
    report: dict[str, Any], live: list[LiveBuffer] | None, findings: Findings, listed: int
) -> list[str]:
    policy, stats = report["policy"], report["stats"]
    lines = [
        *finding_lines(findings),
        f"memrt {report['memrt']}: policy {policy['name']!r}, alignment {policy['alignment']}, "
        f"{human_seconds(report['seconds'])}",
        text_table(_rows(stats), right=[1]),
    ]
    if live:
        from memrt.commands.programs.live_rows import live_lines  # a plain run does not need sites

        lines += live_lines(live, listed)
    return lines


def finding_lines(findings: Findings) -> list[str]:
    """Return the first finding as lines: the sentence, and the next step."""
    if not findings:
        return []
    first = findings[0]
    count = "" if len(findings) == 1 else f" (1 of {len(findings)})"
    return [f"memrt: {first['rule']}{count}: {first['text']}", f"  next step: {first['fix']}"]


def _rows(stats: dict[str, int]) -> list[tuple[str, str, str]]:
    def row(label: str, name: str, note: str = "") -> tuple[str, str, str]:
        return (label, human_bytes(stats[name]), note or f"{stats[name]:,} bytes")

    blocks = f"{stats['free']:,} freed, {stats['realloc']:,} resized"
    if stats["failed"]:
        blocks += f", {stats['failed']:,} requests refused"
    return [
        row("peak", "peak", f"{stats['peak']:,} bytes, " + _precision(stats["peak_error"])),
        row("live at the end", "live"),
        row("allocated in total", "total"),
        ("blocks allocated", f"{stats['alloc']:,}", blocks),
    ]


def _precision(error: int) -> str:
    return "exact" if error == 0 else f"within {human_bytes(error)}"
