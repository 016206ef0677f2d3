"""Resident memory of this process, as Linux counts it."""

from __future__ import annotations

import re
from pathlib import Path

RESIDENT, PEAK = "VmRSS", "VmHWM"


def kibibytes(which: str) -> int:
    """What is resident now, or was at the peak."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(rf"^{which}:\s*(\d+) kB$", text, re.MULTILINE)[1])


def reset_peak() -> None:
    """Let the peak start again from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
