"""The summary at the end of ``python -m memrt run``."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import time
from collections import Counter
from typing import Any

import memrt
from memrt import _memrt
from memrt._units import human_bytes, human_seconds
from memrt.commands.errors import CommandError
from memrt.commands.table import text_table

_LISTED = 10  # places of birth in the printed summary


def summarise_at_exit(policy: memrt.Policy, json_file: str | None, quiet: bool) -> None:
    """Have the summary written when this process ends, after its threads and its exit functions.

    CommandError when `json_file` cannot be written, which is better known now than then.
    """
    if json_file is not None:
        _expect_writeable(json_file)
    owner, begin = os.getpid(), time.perf_counter()

    def finish() -> None:
        if os.getpid() != owner:  # a forked child is not the program
            return
        report = _report(policy, time.perf_counter() - begin)
        if json_file is not None:
            _write(json_file, report)
        if not quiet:
            _print(report)

    atexit.register(finish)


def _expect_writeable(path: str) -> None:
    try:
        with open(path, "a", encoding="utf-8"):
            pass
    except OSError as error:
        raise CommandError(f"cannot write {path!r}: {error.strerror}") from None


def _report(policy: memrt.Policy, seconds: float) -> dict[str, Any]:
    live = memrt.live() if _memrt.tracking_enabled() else None
    return {
        "program": sys.argv,
        "seconds": seconds,
        "memrt": memrt.__version__,
        "policy": {"name": policy.name, "alignment": policy.alignment},
        "stats": policy.stats().to_dict(),
        "process": memrt.stats().to_dict(),
        "live": None if live is None else [buffer.to_dict() for buffer in live],
    }


def _write(path: str, report: dict[str, Any]) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)
    except OSError as error:
        print(f"memrt: cannot write {path!r}: {error.strerror}", file=sys.stderr)


def _print(report: dict[str, Any]) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be gone by now
        print(_as_text(report), file=sys.stderr, flush=True)


def _as_text(report: dict[str, Any]) -> str:
    policy, stats = report["policy"], report["stats"]
    lines = [
        f"memrt {report['memrt']}: policy {policy['name']!r}, alignment {policy['alignment']}, "
        f"{human_seconds(report['seconds'])}",
        text_table(_rows(stats), right=[1]),
    ]
    if report["live"] is not None:
        lines += [_live_title(report["live"]), text_table(_live_rows(report["live"]), right=[0, 1])]
    return "\n".join(lines)


def _rows(stats: dict[str, int]) -> list[tuple[str, str, str]]:
    def row(label: str, name: str, note: str = "") -> tuple[str, str, str]:
        return (label, human_bytes(stats[name]), note or f"{stats[name]:,} bytes")

    error = stats["peak_error"]
    return [
        row("peak", "peak", f"{stats['peak']:,} bytes, " + _precision(error)),
        row("live at the end", "live"),
        row("allocated in all", "total"),
        ("blocks made", f"{stats['alloc']:,}", f"{stats['free']:,} freed again"),
        ("blocks resized", f"{stats['realloc']:,}", ""),
        ("requests refused", f"{stats['failed']:,}", ""),
    ]


def _precision(error: int) -> str:
    return "exact" if error == 0 else f"within {human_bytes(error)}"


def _live_title(live: list[dict[str, Any]]) -> str:
    places = len({buffer["place"] for buffer in live})
    shown = f"; the {_LISTED} places that hold most" if places > _LISTED else ""
    return f"live buffers: {len(live):,}{shown}"


def _live_rows(live: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """By place of birth, the most bytes first."""
    sizes: Counter[str] = Counter()
    blocks: Counter[str] = Counter()
    for buffer in live:
        place = buffer["place"] or "place not known"
        sizes[place] += buffer["size"]
        blocks[place] += 1
    return [
        (human_bytes(size), f"{blocks[place]:,}", place)
        for place, size in sizes.most_common(_LISTED)
    ]
