"""Write the summary at the end of ``python -m memrt run``."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from typing import Any

import memrt
from memrt import _memrt
from memrt._support.units import human_bytes, human_seconds
from memrt._tracking.live import LiveBuffer, sites
from memrt._tracking.live import live as live_buffers
from memrt._tracking.sites import Place, site_text
from memrt.commands.output.table import text_table
from memrt.commands.output.target import Target, written

_LISTED = 10  # allocation sites in the printed summary


def summarise_at_exit(policy: memrt.Policy, json_file: Target | None, quiet: bool) -> None:
    """Register the summary for the exit of this process, after its threads and exit functions."""
    if json_file is not None:
        # The end of a program imports nothing.
        import json  # noqa: F401

        import memrt._process.account  # noqa: F401
    owner, begin = os.getpid(), time.perf_counter()

    def finish() -> None:
        if os.getpid() != owner:  # a forked child is not the program
            return
        live = live_buffers() if _memrt.tracking_enabled() else None
        report = _report(policy, time.perf_counter() - begin, live)
        if json_file is not None:
            _write(json_file, {**report, "memory": _memory()})
        if not quiet:
            _say(_as_text(report, live))

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
        _say(f"memrt: {failure}")


def _say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be gone
        print(text, file=sys.stderr, flush=True)


def _as_text(report: dict[str, Any], live: list[LiveBuffer] | None) -> str:
    policy, stats = report["policy"], report["stats"]
    lines = [
        f"memrt {report['memrt']}: policy {policy['name']!r}, alignment {policy['alignment']}, "
        f"{human_seconds(report['seconds'])}",
        text_table(_rows(stats), right=[1]),
    ]
    if live is not None:
        lines += [_live_title(live), text_table(_live_rows(live), right=[0, 1])]
    return "\n".join(lines)


def _rows(stats: dict[str, int]) -> list[tuple[str, str, str]]:
    def row(label: str, name: str, note: str = "") -> tuple[str, str, str]:
        return (label, human_bytes(stats[name]), note or f"{stats[name]:,} bytes")

    error = stats["peak_error"]
    return [
        row("peak", "peak", f"{stats['peak']:,} bytes, " + _precision(error)),
        row("live at the end", "live"),
        row("allocated in total", "total"),
        ("blocks allocated", f"{stats['alloc']:,}", f"{stats['free']:,} freed"),
        ("blocks resized", f"{stats['realloc']:,}", ""),
        ("requests refused", f"{stats['failed']:,}", ""),
    ]


def _precision(error: int) -> str:
    return "exact" if error == 0 else f"within {human_bytes(error)}"


def _live_title(live: list[LiveBuffer]) -> str:
    places = len({buffer.place for buffer in live})
    shown = f"; the {_LISTED} allocation sites with most bytes" if places > _LISTED else ""
    return f"live buffers: {len(live):,}{shown}"


def _live_rows(live: list[LiveBuffer]) -> list[tuple[str, ...]]:
    """Return rows by source line, largest sum of bytes first.

    The text has the line of a library that allocated the largest buffer of the source line.
    """
    texts: dict[Place | None, str] = {}
    for buffer in sorted(live, key=lambda each: -each.nbytes):
        texts.setdefault(buffer.place, site_text(buffer.site))
    return [
        (human_bytes(round(usage.bytes)), f"{usage.blocks:,.0f}", texts[usage.place])
        for usage in sites(live)[:_LISTED]
    ]
