"""Draw the results of a group as a chart: one row per case, one mark per subject."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
from report import chart_name, charted
from result import Case, Group, Result, Spread
from subjects import MEMRT

WIDTH = 7.5  # inches
# Text stays text, and the same figures give the same file.
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "memrt",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
MARKS = "os^vP*hd"


def draw_subject(axes, group: Group, cases: list[Case], index: int, subject: str) -> None:
    """Draw the median and the quartiles of one subject in each case."""
    against = group.against()
    rows = [row for row, case in enumerate(cases) if case.has(subject, *against)]
    spreads = [Spread.of(cases[row].ratios(subject, *against)) for row in rows]
    own = subject == MEMRT
    axes.errorbar(
        [spread.middle for spread in spreads],
        rows,
        xerr=[[s.middle - s.low for s in spreads], [s.high - s.middle for s in spreads]],
        fmt="D" if own else MARKS[index % len(MARKS)],
        color="black" if own else f"C{index}",
        markersize=6 if own else 5,
        zorder=3 if own else 2,
        elinewidth=1,
        alpha=1 if own else 0.75,
        label=subject,
    )


def draw(group: Group, path: Path) -> None:
    """Write the chart of a group, in the format of the path's suffix."""
    cases = group.cases
    subjects = [name for name in group.subjects() if name != group.reference]
    with plt.rc_context(STYLE):
        height = 1.5 + 0.3 * len(cases)
        figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
        for index, subject in enumerate(subjects):
            draw_subject(axes, group, cases, index, subject)
        axes.set_yticks(range(len(cases)), [case.name for case in cases])
        axes.set_ylim(len(cases) - 0.5, -0.5)
        if group.reference:
            axes.axvline(1, color="grey", linewidth=0.8)
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter("{x:g}" if is_narrow(axes) else "")
        ratio = f"ratio to {group.reference}, less is better"
        axes.set_xlabel(ratio if group.reference else group.unit)
        axes.set_title(group.title, loc="left")
        axes.grid(axis="x", which="both" if is_narrow(axes) else "major", linewidth=0.3)
        figure.legend(ncols=4, loc="outside lower center", frameon=False)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)


def is_narrow(axes) -> bool:
    """Whether a logarithmic axis spans less than a power of ten, with one major label at most."""
    low, high = axes.get_xlim()
    return low > 0 and high / low < 10


def draw_charts(results: Mapping[str, Result], folder: Path) -> None:
    """Write the charts of the page as SVG files."""
    for result, group in charted(results):
        draw(group, folder / chart_name(result, group))
