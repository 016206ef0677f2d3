"""The table of tested systems in docs/reliability.md: one row per system, from several chores."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "reliability"))
import page

ABOUT = (
    "Last run of the tests on each system, by `./dev suites matrix --record`, "
    "`./dev suites distributions --record`, `./dev wheels --record` and "
    "`./dev variants free-threaded --record`."
)
SECTION = "systems/tested"  # of the page
COLUMNS = ("system", "processor", "Python", "NumPy", "GIL", "tests", "result", "commit", "date")
KEYS = 6  # first columns, which name a row
MOST = 40


@dataclass(frozen=True)
class System:
    """A tested system, and the result of the tests."""

    system: str
    processor: str
    python: str
    numpy: str
    gil: str
    tests: str
    result: str


def outcome(passed: bool, figures: str) -> str:
    """Return the text of a result, which is a failure if no test ran."""
    return figures if passed and figures else f"FAILED: {figures or 'no test ran'}"


def read() -> list[list[str]]:
    """Return the recorded rows."""
    path = page.FIGURES / f"{SECTION}.json"
    return json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []


def merged(rows: Sequence[Sequence[str]], new: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return all rows in order of their keys. A new row replaces the row with its key."""
    by_key = {tuple(row[:KEYS]): list(row) for row in [*rows, *new]}
    return [by_key[key] for key in sorted(by_key)]


def record(systems: Sequence[System]) -> None:
    """Add rows to the record, with the commit and the date of today.

    Raises ValueError for more than MOST rows: a reader could not survey them.
    """
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    new = [[*astuple(system), page.commit(), today] for system in systems]
    rows = merged(read(), new)
    if len(rows) > MOST:
        raise ValueError(f"the table must have at most {MOST} rows, got {len(rows)}")
    page.record(SECTION, "Tested systems", ABOUT, columns=COLUMNS, rows=rows)
