"""Read and write counts of failure points: lines "name<tab>kind<tab>count" of a file."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

VARIABLE = "POINTS_FILE"  # environment variable with the path of the file


def note(what: str, kind: str, count: int) -> None:
    """Append a line to the file, if the environment names a file."""
    path = os.environ.get(VARIABLE)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{what}\t{kind}\t{count}\n")


def read(path: Path) -> dict[str, Counter[str]]:
    """Return the counts by kind, for each name in the file."""
    found: dict[str, Counter[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        what, kind, count = line.split("\t")
        found.setdefault(what, Counter())[kind] += int(count)
    return found
