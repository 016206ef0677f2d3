"""Resident memory of this process, as Linux counts it."""

from __future__ import annotations

import re
from pathlib import Path

PROCESS = Path("/proc/self")


def _read(file: str, name: str) -> int:
    text = (PROCESS / file).read_text(encoding="ascii")
    return int(re.search(rf"^{name}:\s*(\d+) kB$", text, re.MULTILINE)[1])


def resident() -> int:
    """KiB that are resident now, page by page."""
    return _read("smaps_rollup", "Rss")


def huge() -> int:
    """KiB of them that are on huge pages."""
    return _read("smaps_rollup", "AnonHugePages")


def peak() -> int:
    """Most KiB that were resident; Linux counts some hundred KiB late."""
    return _read("status", "VmHWM")


def reset_peak() -> None:
    """Let the peak start again from what is resident now."""
    (PROCESS / "clear_refs").write_text("5", encoding="ascii")
