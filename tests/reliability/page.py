"""Write docs/reliability.md from the figures that the chores record in docs/reliability.

usage: python tests/reliability/page.py [--check]

A chore that measures calls record(), the only writer of figures. Figures are recorded only for a
tree without uncommitted changes, so the recorded commit is the measured commit.

No library records the figures: asv keeps benchmarks per commit, but no other results.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
FIGURES = ROOT / "docs" / "reliability"
HEAD = """# Reliability

This page shows which tools search for defects in memrt, and the results. Sanitizers, fuzzers,
models and the conformance kit first had to find seeded bugs. Every defect that a tool found has a
regression test.

**Limits.** All runs are on Linux with two cores, without a GPU. A result is valid for the commit of
its section.
"""
FOOT = """## Source of the figures

The chores named in each section write figures into `docs/reliability`, and
`tests/reliability/page.py` writes this page; do not edit. Purpose and command of each chore:
[Development](internals/development.md).
"""
CHART = "coverage.svg"
TABLE_MOST = 30  # rows of a table that is not folded

# Files of results. A commit that changes only files of results leaves recorded figures valid.
RECORDS = (
    *("docs/reliability", "docs/reliability.md", "docs/benchmarks", "docs/benchmarks.md"),
    "docs/guide/numba/overview.md",
    "docs/guide/services/clusters.md",
)

FOUND = "found, of found mutants and survivors"

# Facts of each section that the summary shows.
SUMMARY = {
    "failure-points": ("functions", "points"),
    "sanitizers": ("suppressions",),
    "suites/numpy": ("tests, stock", "differences"),
    "suites/projects": ("tests, stock", "differences"),
    "suites/numba": ("tests", "differences"),
    "stress": ("minutes", "buffers"),
    "fuzzing": ("minutes", "inputs"),
    "exits": ("rounds", "minutes"),
    "weak-memory": ("weakened orders",),
    "coverage": ("branches", "taken"),
    "coverage-bindings": ("extension, taken", "package, taken"),
    "mutation": ("drawn", FOUND),
    "mutation-bindings": ("drawn", FOUND),
    "checking": ("overrun, seeded and found",),
    "conformance": ("subjects", "clauses tried"),
    "findings": ("found and fixed",),
    "clients/profilers": ("memrt, of 13", "memray, of 13", "tracemalloc, of 13"),
    "clients/healthy": ("programs with a finding of memrt",),
}

# Names of the sections, in the order of the page.
SECTIONS = (
    "full",
    "systems/tested",
    "systems/compilers",
    "failure-points",
    "sanitizers",
    "suites/numpy",
    "suites/projects",
    "suites/numba",
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
    "clients/profilers",
    "clients/healthy",
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
    file = FIGURES / f"{section}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")
    write()


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
    rows = figures["rows"]
    if len(rows) > TABLE_MOST:
        yield f"<details><summary>Table of {len(rows)} rows</summary>\n"
    yield from table(figures["columns"], rows)
    if len(rows) > TABLE_MOST:
        yield "</details>\n"


def anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def summary(records: Mapping[str, Mapping]) -> Iterable[str]:
    """Yield a table with a row per section: the main figures, and the date."""
    rows = []
    for section, figures in records.items():
        facts, title = figures["facts"], figures["title"]
        shown = [f"{n}: {cell(facts[n])}" for n in SUMMARY.get(section, ()) if n in facts]
        rows.append([f"[{title}](#{anchor(title)})", "; ".join(shown), facts["date"]])
    yield from table(["tool", "main figures", "date"], rows)


def chart(figures: Mapping) -> str:
    """Return an SVG picture with a bar per folder: the part of the branches that tests take."""
    folders: dict[str, list[int]] = {}
    for file, branches, taken in figures["rows"]:
        sums = folders.setdefault("/".join(file.split("/")[:-1][:2]), [0, 0])
        sums[0], sums[1] = sums[0] + branches, sums[1] + taken
    height = 24 * len(folders) + 34
    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" font-size="13" '
        'font-family="sans-serif">',
        f'<rect width="640" height="{height}" fill="white"/>',
        '<text x="8" y="20" font-weight="bold">Branches that the C tests take</text>',
    ]
    for number, (folder, (branches, taken)) in enumerate(sorted(folders.items())):
        y, share = 24 * number + 32, taken / branches
        text += [
            f'<text x="8" y="{y + 14}">{folder}</text>',
            f'<rect x="150" y="{y}" width="340" height="18" fill="#e3e7ec"/>',
            f'<rect x="150" y="{y}" width="{340 * share:.0f}" height="18" fill="#0a7d91"/>',
            f'<text x="504" y="{y + 14}">{share:.1%} of {branches:,}</text>',
        ]
    return "\n".join([*text, "</svg>"]) + "\n"


def records() -> dict[str, Mapping]:
    """Return the recorded figures by section, in the order of the page."""
    paths = {section: FIGURES / f"{section}.json" for section in SECTIONS}
    return {
        section: json.loads(path.read_text(encoding="utf-8"))
        for section, path in paths.items()
        if path.exists()
    }


def page() -> str:
    found = records()
    text = [HEAD]
    if found.get("coverage", {}).get("rows"):
        text.append(f"![part of the branches that the C tests take](reliability/{CHART})\n")
    text.extend(summary(found))
    for figures in found.values():
        text.extend(lines(figures))
    return "\n".join([*text, FOOT]).rstrip() + "\n"


def pictures() -> dict[str, str]:
    """Return the charts of the page by file name."""
    coverage = records().get("coverage", {})
    return {CHART: chart(coverage)} if coverage.get("rows") else {}


def write() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    for name, text in pictures().items():
        (FIGURES / name).write_text(text, encoding="utf-8")


def is_current() -> bool:
    """Return True if the page and the charts show the recorded figures."""
    wanted = {PAGE: page(), **{FIGURES / name: text for name, text in pictures().items()}}
    return all(
        path.exists() and path.read_text(encoding="utf-8") == text for path, text in wanted.items()
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="check that the page is current, write nothing"
    )
    options = parser.parse_args()
    if not options.check:
        write()
    elif not is_current():
        print(f"{PAGE} does not match the figures in {FIGURES}: run {__file__}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
