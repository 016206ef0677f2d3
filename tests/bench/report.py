"""Write docs/benchmarks.md: a table of goals, and a section for each part.

A part without fresh results keeps the rows and the section of the existing page.

No library writes the page: pyperf prints tables of runs, without goals and without ratios within a
round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from goals import GOALS, NOT_MEASURED, NOT_MET, Goal, Verdict, judge
from result import Case, Group, Result, Spread

PARTS = {
    "alloc": "Blocks and references",
    "threads": "Threads",
    "numpy": "NumPy",
    "numba": "Numba",
    "memory": "Memory",
    "limits": "Limits",
    "observe": "Observers",
    "see": "Traces and reports",
    "exchange": "Exchange",
    "programs": "Whole programs",
}
HEAD = """\
# Benchmarks

Written by `./dev bench`; do not edit. memrt's statistics are always on, as in every installed
build. Each round measures all subjects in a new random order, so that a disturbance of the machine
affects all subjects. In a table with a reference in the first column, the further figures are
ratios to the reference within each round: the median of all rounds and, in brackets, the quartiles.
Less is better. Plots and all single figures are in `build/bench`.
[How to run the benchmark](internals/development.md#the-benchmark).

"""
GOALS_HEAD = """\
## Goals

The row of a goal with several cases shows the worst case and the number of cases that miss the
bound. In a goal with more than four cases and a bound that allows ratios worse than 1, a case
fails only if three in four of its rounds are also on the wrong side of 1.

| | work | goal | measured | |
|---|---|---|---|---|
"""
UNITS = {"ns": (1e9, "s", 1e6, "ms", 1e3, "µs", 1, "ns"), "KiB": (1 << 20, "GiB", 1 << 10, "MiB")}


def amount(figure: float, unit: str) -> str:
    """Format a figure in the largest fitting unit."""
    steps = UNITS.get(unit, ())
    for size, name in zip(steps[::2], steps[1::2], strict=True):
        if abs(figure) >= size:
            return f"{figure / size:.3g} {name}"
    return f"{figure:,.3g} {unit}" if abs(figure) < 100 else f"{figure:,.0f} {unit}"


def number(figure: float) -> str:
    """Format a ratio: two decimals, one digit below 0.1, no decimals from 100 on."""
    if 0 < abs(figure) < 0.1:
        return f"{figure:.1g}"
    return f"{figure:.2f}" if abs(figure) < 100 else f"{figure:,.0f}"


def ratio(spread: Spread) -> str:
    return f"{number(spread.middle)} ({number(spread.low)} to {number(spread.high)})"


def cell(case: Case, subject: str, group: Group) -> str:
    """Return the table cell of one subject in one case: an amount, or a ratio to the reference."""
    if subject not in case.figures:
        return ""
    if subject == group.reference:
        return amount(Spread.of(case.figures[subject]).middle, group.unit)
    if group.reference is None and group.unit != "share":
        return amount(Spread.of(case.figures[subject]).middle, group.unit)
    against = (group.reference,) if group.reference else ()
    return ratio(Spread.of(case.ratios(subject, *against)))


def table(group: Group) -> list[str]:
    """Return the Markdown table of one group, with the reference in the first column."""
    subjects = group.subjects()
    lines = [
        f"### {group.title}",
        "",
        group.about,
        "",
        f"| | {' | '.join(subjects)} |",
        f"|---|{'---:|' * len(subjects)}",
    ]
    for case in group.cases:
        cells = [cell(case, subject, group) for subject in subjects]
        lines.append(f"| {case.name} | {' | '.join(cells)} |")
    return [*lines, ""]


def section(result: Result) -> str:
    """Return the section of one part."""
    lines = [f"## {PARTS[result.part]}", "", f"Rounds: {result.rounds} at most.", ""]
    lines += [f"- {key}: {value}" for key, value in result.machine.items()]
    lines.append("")
    for group in result.groups:
        lines += table(group)
    return "\n".join(lines)


def bound(goal: Goal) -> str:
    sign = "≥" if goal.faster else "≤"
    return f"{sign} {amount(goal.bound, goal.unit) if goal.unit else number(goal.bound)}"


def cells(verdict: Verdict) -> list[str]:
    """Return the table cells of one verdict."""
    goal, spread = verdict.goal, verdict.spread
    found = ""
    if spread is not None:
        found = amount(spread.middle, goal.unit) if goal.unit else ratio(spread)
        found += f", {verdict.case}" if verdict.cases > 1 else ""
        found += (
            f"; {verdict.failed} of {verdict.cases} miss the bound" if verdict.failed > 1 else ""
        )
    return [goal.number, goal.text, bound(goal), found, verdict.state]


def row(verdict: Verdict) -> str:
    return f"| {' | '.join(cells(verdict))} |"


def standing(page: str) -> dict[str, str]:
    """Return the rows of goals in a page, by the text of the goal."""
    rows = re.findall(r"^\| P\d+b? \| .*\|$", page, re.MULTILINE)
    return {line.split(" | ")[1]: line for line in rows}


def goal_rows(results: Mapping[str, Result], page: str, goals: Sequence[Goal]) -> list[str]:
    """Return the rows of all goals. Goals without fresh figures keep the row of the page."""
    known = standing(page)
    verdicts = [judge(goal, results) for goal in goals]
    return [
        known.get(verdict.goal.text, row(verdict))
        if verdict.state == NOT_MEASURED
        else row(verdict)
        for verdict in verdicts
    ]


def limits(rows: Sequence[str], goals: Sequence[Goal]) -> list[str]:
    """List the known reasons of the goals whose rows say "not met"."""
    missed = {line.split(" | ")[1] for line in rows if line.endswith(f"| {NOT_MET} |")}
    lines = [
        f"- {goal.number}, {goal.text}: {goal.limit}"
        for goal in goals
        if goal.limit and goal.text in missed
    ]
    return ["", "Known reasons for goals that are not met:", "", *lines] if lines else []


def standing_section(part: str, page: str) -> str:
    """Return the section of a part in an existing page, or an empty string."""
    found = re.search(rf"^## {PARTS[part]}\n.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return found[0].rstrip("\n") + "\n" if found else ""


def page(results: Mapping[str, Result], before: str, goals: Sequence[Goal] = GOALS) -> str:
    """Return the whole page: fresh results, and the old text for parts without fresh results."""
    sections = [
        section(results[part]) if part in results else standing_section(part, before)
        for part in PARTS
    ]
    rows = goal_rows(results, before, goals)
    head = HEAD + GOALS_HEAD + "\n".join([*rows, *limits(rows, goals)]) + "\n"
    return "\n".join([head, *filter(None, sections)])


def write_page(results: Mapping[str, Result], path: Path) -> str:
    """Update the page and return its text."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    text = page(results, before)
    path.write_text(text, encoding="utf-8")
    return text
