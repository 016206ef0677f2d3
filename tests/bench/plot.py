"""Plot the results of a part: bars of ratios with their quartiles."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from result import Group, Result, Spread
from subjects import MEMRT

MOST = 24  # maximum of cases in one plot
WHISKERS = {"fmt": "none", "ecolor": "grey", "elinewidth": 0.9, "capsize": 1.5}


def bars(axes, group: Group, names: list[str]) -> None:
    """Draw one bar per subject for each case."""
    subjects = [name for name in group.subjects() if name != group.reference]
    width = 0.8 / len(subjects)
    against = (group.reference,) if group.reference else ()
    colours = {name: "black" if name == MEMRT else f"C{i}" for i, name in enumerate(subjects)}
    for index, subject in enumerate(subjects):
        cases = [(i, group.case(name)) for i, name in enumerate(names)]
        places, spreads = [], []
        for i, case in cases:
            if case.has(subject, *against):
                places.append(i + (index - (len(subjects) - 1) / 2) * width)
                spreads.append(Spread.of(case.ratios(subject, *against)))
        middles = np.array([spread.middle for spread in spreads])
        errors = [middles - [s.low for s in spreads], [s.high for s in spreads] - middles]
        start = 1 if group.reference else 0  # a bar upwards is slower, a bar downwards is faster
        axes.bar(places, middles - start, width, start, color=colours[subject], label=subject)
        axes.errorbar(places, middles, errors, **WHISKERS)


def label(axes, group: Group, names: list[str]) -> None:
    axes.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
    if group.reference:
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    axes.set_ylabel(f"ratio to {group.reference}" if group.reference else group.unit)
    axes.set_title(group.title)
    axes.figure.legend(fontsize=7, ncols=6, loc="outside lower center")
    axes.grid(axis="y", which="both", linewidth=0.3)


def plot(group: Group, path: Path, names: list[str]) -> None:
    figure, axes = plt.subplots(figsize=(max(6, 0.7 * len(names) + 3), 5), layout="constrained")
    bars(axes, group, names)
    label(axes, group, names)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def plot_result(result: Result, folder: Path) -> list[Path]:
    """Write a PNG for each group; a large group gets several. Return the paths."""
    written = []
    for group in result.groups:
        names = [case.name for case in group.cases]
        for start in range(0, len(names), MOST):
            title = re.sub(r"\W+", "-", group.title.lower()).strip("-")
            extra = f"-{start // MOST + 1}" if len(names) > MOST else ""
            path = folder / f"{result.part}-{title}{extra}.png"
            plot(group, path, names[start : start + MOST])
            written.append(path)
    return written
