"""Write docs/reliability.md from the figures that the chores leave in docs/reliability.

usage: python tests/reliability/page.py [--check]

A chore that measures calls record(); nobody else writes a figure.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
FIGURES = ROOT / "docs" / "reliability"
HEAD = """# Reliability

Written by the chores that it names, from figures that they leave in `docs/reliability`; do not
edit. What each of them proves, and how to run it: [Development](development.md).
"""

# Names of the sections, in the order of the page.
SECTIONS = (
    "failure-points",
    "sanitizers",
    "numpy-suite",
    "stress",
    "fuzzing",
    "exits",
    "weak-memory",
    "coverage",
    "mutation",
    "checking",
    "conformance",
    "findings",
)


def commit() -> str:
    """The commit that figures are of, with a sign when the tree is another."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def record(
    section: str,
    title: str,
    about: str,
    facts: Mapping[str, object] | None = None,
    columns: Sequence[str] = (),
    rows: Iterable[Sequence[object]] = (),
) -> None:
    """Leave the figures of one section, with date, commit and machine, and write the page.

    `about` says what was run and by which command; `facts` are single figures by name; `columns`
    and `rows` are a table.
    """
    if section not in SECTIONS:
        raise ValueError(f"{section!r} is not in SECTIONS of {__file__}")
    when = {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "commit": commit(),
        "machine": f"{platform.system()} {platform.release()}, {os.cpu_count()} cores",
    }
    figures = {
        "title": title,
        "about": about,
        "facts": {**when, **(facts or {})},
        "columns": list(columns),
        "rows": [list(row) for row in rows],
    }
    FIGURES.mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    (FIGURES / f"{section}.json").write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


def cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterable[str]:
    if rows:
        yield "| " + " | ".join(columns) + " |"
        yield "|" + "---|" * len(columns)
        yield from ("| " + " | ".join(map(cell, row)) + " |" for row in rows)
        yield ""


def lines(figures: Mapping) -> Iterable[str]:
    """One section."""
    yield f"## {figures['title']}\n"
    yield f"{figures['about']}\n"
    yield from (f"- {name}: {cell(value)}" for name, value in figures["facts"].items())
    yield ""
    yield from table(figures["columns"], figures["rows"])


def page() -> str:
    text = [HEAD]
    for section in SECTIONS:
        path = FIGURES / f"{section}.json"
        if path.exists():
            text.extend(lines(json.loads(path.read_text(encoding="utf-8"))))
    return "\n".join(text).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    options = parser.parse_args()
    if not options.check:
        PAGE.write_text(page(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        print(f"{PAGE} is not as its figures are: run {__file__}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
