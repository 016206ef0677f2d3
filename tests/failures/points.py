"""How many points of failure were met: lines "what<tab>kind<tab>count" of a file."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

VARIABLE = "POINTS_FILE"  # names the file


def note(what: str, kind: str, count: int) -> None:
    """Add a line, if a file is named."""
    path = os.environ.get(VARIABLE)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{what}\t{kind}\t{count}\n")


def read(path: Path) -> dict[str, Counter[str]]:
    """Counts by kind, of each that stands in the file."""
    found: dict[str, Counter[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        what, kind, count = line.split("\t")
        found.setdefault(what, Counter())[kind] += int(count)
    return found
