"""Write docs/benchmarks.md from docs/benchmarks/*.json: a summary, charts, goals and tables.

No library writes the page: pyperf prints tables of runs, without goals and without ratios within a
round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from goals import GOALS, MET, NOT_MEASURED, NOT_MET, Goal, Verdict, judge
from parts import alloc, numba_kernels, numpy_ops, programs, threads
from result import Case, Group, Result, Spread
from subjects import DEFAULT

PARTS = {
    "alloc": "Blocks and references",
    "threads": "Threads",
    "patterns": "Patterns of threads",
    "numpy": "NumPy",
    "numba": "Numba",
    "memory": "Memory",
    "limits": "Limits",
    "observe": "Observers",
    "see": "Traces and reports",
    "exchange": "Exchange",
    "programs": "Whole programs",
}
CHARTS = (
    ("programs", programs.TIME),
    ("programs", programs.PEAK),
    ("numpy", numpy_ops.EXPRESSION),
    ("numba", numba_kernels.GROUP),
    ("alloc", alloc.ONE),
    ("alloc", alloc.LARGE_BLOCKS),
    ("threads", threads.HANDED),
)
HEAD = """\
# Benchmarks

Written by `./dev bench`; do not edit.
[How to run the benchmark](internals/development.md#the-benchmark).

"""
CHARTS_HEAD = """\
## Charts

A mark is the median over all rounds, and a line joins the quartiles. Left of 1: less than the
reference. memrt's statistics are on, as in every installed build.

"""
GOALS_HEAD = """\
## Goals

The row of a goal with several cases shows the worst case and the number of cases that miss the
bound. In a goal with more than four cases and a bound that allows ratios worse than 1, a case
fails only if three in four of its rounds are also on the wrong side of 1.

| | work | goal | measured | |
|---|---|---|---|---|
"""
TABLES_HEAD = """\
## All figures

Each round measures all subjects in a new random order, so that a disturbance of the machine affects
all subjects. In a table with a reference in the first column, the further figures are ratios to the
reference within each round: the median of all rounds and, in brackets, the quartiles. Less is
better. The figures of each round are in `docs/benchmarks`.

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
    return ratio(Spread.of(case.ratios(subject, *group.against())))


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
    """Return the tables of one part, folded."""
    lines = ["<details>", f"<summary>{PARTS[result.part]}</summary>", ""]
    lines += [f"Rounds: {result.rounds} at most.", ""]
    lines += [f"- {key}: {value}" for key, value in result.machine.items()]
    lines.append("")
    for group in result.groups:
        lines += table(group)
    return "\n".join([*lines, "</details>", ""])


def chart_name(result: Result, group: Group) -> str:
    """Return the file name of a group's chart."""
    title = re.sub(r"\W+", "-", group.title.lower()).strip("-")
    return f"{result.part}-{title}.svg"


def charted(results: Mapping[str, Result]) -> list[tuple[Result, Group]]:
    """Return the measured groups of CHARTS, in this order."""
    return [
        (results[part], group)
        for part, title in CHARTS
        if part in results
        for group in results[part].groups
        if group.title == title
    ]


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


def goals_section(verdicts: Sequence[Verdict]) -> str:
    return GOALS_HEAD + "\n".join(map(row, verdicts)) + "\n"


def limits(verdicts: Sequence[Verdict]) -> str:
    """Return the known reasons of missed goals, each reason once, or an empty string."""
    missed: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.state == NOT_MET and verdict.goal.limit:
            name = f"{verdict.goal.number}, {verdict.goal.text}"
            missed.setdefault(verdict.goal.limit, []).append(name)
    if not missed:
        return ""
    lines = [f"- {'; '.join(names)}. Reason: {reason}" for reason, names in missed.items()]
    return "\n".join(["## Limits", "", "Known reasons for goals that are not met:", "", *lines, ""])


def mean(
    results: Mapping[str, Result], part: str, group: str, under: tuple[str, ...], *cases: str
) -> Verdict:
    """Return the geometric mean of memrt's ratios to the least of some subjects, as for a goal."""
    return judge(Goal("", "", part, group, 1.0, cases, under=under, mean=True), results)


def summary(results: Mapping[str, Result], verdicts: Sequence[Verdict]) -> str:
    """Return up to three sentences of figures."""
    sentences = []
    took = mean(results, "programs", programs.TIME, (DEFAULT,))
    kept = mean(results, "programs", programs.PEAK, (DEFAULT,))
    if took.spread and kept.spread:
        sentences.append(
            f"{took.cases} whole programs take {number(took.spread.middle)} of the time and "
            f"{number(kept.spread.middle)} of the peak memory that they take with NumPy's default "
            "allocator (geometric means)."
        )
    block = mean(results, "alloc", alloc.ONE, alloc.PEERS, "64 B, one live")
    if block.spread:
        sentences.append(
            f"A block of 64 B takes {number(block.spread.middle)} times as long as with the "
            f"fastest of {', '.join(alloc.PEERS)}."
        )
    measured = [each for each in verdicts if each.state != NOT_MEASURED]
    met = sum(each.state == MET for each in measured)
    sentences.append(f"{met} of {len(measured)} goals are met.")
    return "\n".join(sentences) + "\n"


def charts(results: Mapping[str, Result], folder: str) -> str:
    """Return the section of the charts. `folder` is the path from the page to the charts."""
    lines = [
        f"![{group.title}]({folder}/{chart_name(result, group)})\n"
        for result, group in charted(results)
    ]
    return CHARTS_HEAD + "\n".join(lines)


def page(
    results: Mapping[str, Result], goals: Sequence[Goal] = GOALS, folder: str = "benchmarks"
) -> str:
    """Return the whole page. Parts without results have no section."""
    verdicts = [judge(goal, results) for goal in goals]
    tables = [section(results[part]) for part in PARTS if part in results]
    return HEAD + "\n".join(
        filter(
            None,
            [
                summary(results, verdicts),
                charts(results, folder),
                goals_section(verdicts),
                limits(verdicts),
                TABLES_HEAD + "\n".join(tables),
            ],
        )
    )


def known(folder: Path) -> dict[str, Result]:
    """Read all results in a folder, by part."""
    return {part: Result.read(path) for part in PARTS if (path := folder / f"{part}.json").exists()}


def write_page(results: Mapping[str, Result], folder: str, path: Path) -> None:
    """Write the page. The charts are in `folder`, beside the page."""
    path.write_text(page(results, folder=folder), encoding="utf-8")
