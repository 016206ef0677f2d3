"""Write docs/reliability.md from the figures that the chores record in docs/reliability.

usage: python tests/reliability/page.py [--check]

A chore that measures calls record(), the only writer of figures. Figures are recorded only for a
tree without uncommitted changes, so the recorded commit is the measured commit.
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

Written by the chores named in each section, from figures in `docs/reliability`; do not edit.
Purpose and command of each chore: [Development](internals/development.md).
"""

# Files of results. A commit that changes only files of results leaves recorded figures valid.
RECORDS = ("docs/reliability", "docs/reliability.md", "docs/guide/numba.md")

# Names of the sections, in the order of the page.
SECTIONS = (
    "full",
    "failure-points",
    "sanitizers",
    "numpy-suite",
    "stress",
    "fuzzing",
    "exits",
    "weak-memory",
    "coverage",
    "coverage-bindings",
    "mutation",
    "mutation-bindings",
    "checking",
    "conformance",
    "findings",
)


def git(*arguments: str) -> str:
    """Return the output of a git command on the project, without the files of results."""
    others = ["--", ".", *(f":(exclude){path}" for path in RECORDS)]
    command = ["git", "-C", str(ROOT), *arguments, *others]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def commit() -> str:
    """Return the abbreviated hash of the last commit that changed more than results."""
    return git("log", "-1", "--format=%h")


def uncommitted() -> list[str]:
    """Return the changed and untracked files, without the files of results."""
    return git("status", "--porcelain").splitlines()


def record(
    section: str,
    title: str,
    about: str,
    facts: Mapping[str, object] | None = None,
    columns: Sequence[str] = (),
    rows: Iterable[Sequence[object]] = (),
) -> None:
    """Write the figures of one section, with date, commit and machine, and then the page.

    `about` states the measurement and its command. `facts` are single figures by name. `columns`
    and `rows` are a table. Nothing is written if the tree has uncommitted changes.

    Raises ValueError for a section that is not in SECTIONS.
    """
    if section not in SECTIONS:
        raise ValueError(f"section must be in SECTIONS of {__file__}, got {section!r}")
    if changed := uncommitted():
        print(f"{section}: not recorded, {len(changed)} files have uncommitted changes")
        return
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
    """Yield the Markdown lines of one section."""
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
    parser.add_argument(
        "--check", action="store_true", help="check that the page is current, write nothing"
    )
    options = parser.parse_args()
    if not options.check:
        PAGE.write_text(page(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        print(f"{PAGE} does not match the figures in {FIGURES}: run {__file__}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
