"""Read the resident memory of this process, as counted by Linux."""

from __future__ import annotations

import re
from pathlib import Path

PROCESS = Path("/proc/self")


def _read(file: str, name: str) -> int:
    text = (PROCESS / file).read_text(encoding="ascii")
    return int(re.search(rf"^{name}:\s*(\d+) kB$", text, re.MULTILINE)[1])


def resident() -> int:
    """Return the KiB resident now, counted page by page."""
    return _read("smaps_rollup", "Rss")


def huge() -> int:
    """Return the KiB of anonymous memory on huge pages."""
    return _read("smaps_rollup", "AnonHugePages")


def peak() -> int:
    """Return the peak of resident KiB. Linux lags behind by some hundred KiB."""
    return _read("status", "VmHWM")


def reset_peak() -> None:
    """Reset the peak to the memory resident now."""
    (PROCESS / "clear_refs").write_text("5", encoding="ascii")
