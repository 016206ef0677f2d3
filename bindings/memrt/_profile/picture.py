"""Draw the timeline of a recording as a PNG picture."""

from __future__ import annotations

from typing import BinaryIO

from memrt._profile.recording import Document
from memrt._support.extras import expect, needed
from memrt._support.units import human_bytes

SERIES = 10
_TITLE_MOST = 100  # characters
_DPI = 120
_WHY = "a picture"


def expect_packages() -> None:
    """Raise MissingPackageError if matplotlib is not installed."""
    expect("matplotlib", _WHY)


def draw(document: Document, file: BinaryIO) -> None:
    """Write the timeline of one process as PNG, without a change to matplotlib's global state."""
    needed("matplotlib.figure", _WHY)
    from matplotlib.figure import Figure

    line = document["timeline"]
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.add_subplot()
    names, rows = _stacked(line)
    if line["t"]:
        axes.stackplot(line["t"], rows, labels=names, linewidth=0)
    axes.plot(line["t"], line["cached"], ":", color="0.4", label="kept for reuse")
    resident = [(t, size) for t, size in zip(line["t"], line["resident"], strict=True) if size >= 0]
    axes.plot(*zip(*resident, strict=True), color="0.2", label="resident")
    axes.set_xlabel("seconds")
    ticks = _ticks(max([*line["live"], *line["cached"], *line["resident"], 1]))
    axes.set_ylim(0, ticks[-1])
    axes.set_yticks(ticks, [human_bytes(size) for size in ticks])
    axes.set_title(
        _plain(" ".join(document["program"]))[:_TITLE_MOST], loc="left", fontsize="medium"
    )
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small", frameon=False)
    figure.savefig(file, format="png", dpi=_DPI)


def _ticks(most: int) -> list[int]:
    """Return ticks from 0 to beyond `most`, in steps of a power of two."""
    step = 1
    while most / step > 8:
        step *= 2
    return list(range(0, most + step + 1, step))


def _plain(text: str) -> str:
    """Escape a text for matplotlib: `$` starts no formula, and lone surrogates become escapes."""
    return text.replace("$", r"\$").encode("utf-8", "backslashreplace").decode()


def _stacked(line: dict[str, list[object]]) -> tuple[list[str], list[list[int]]]:
    """Return names and rows of live bytes: outside scopes, in the SERIES largest, in the rest."""
    scoped: list[list[tuple[int, int]]] = line["scoped"]  # type: ignore[assignment]
    live: list[int] = line["live"]  # type: ignore[assignment]
    most = [0] * len(line["scopes"])
    for sample in scoped:
        for scope, size in sample:
            most[scope] = max(most[scope], size)
    named = [scope for scope in range(len(most)) if line["scopes"][scope]]
    chosen = sorted(named, key=lambda scope: -most[scope])[:SERIES]
    rows = [[dict(sample).get(scope, 0) for sample in scoped] for scope in chosen]
    inside = [sum(size for _, size in sample) for sample in scoped]
    shown = [sum(dict(sample).get(scope, 0) for scope in chosen) for sample in scoped]
    others = [total - part for total, part in zip(inside, shown, strict=True)]
    outside = [max(0, size - part) for size, part in zip(live, inside, strict=True)]
    names = ["live, in no scope", *(_plain(f"live, in {line['scopes'][i]}") for i in chosen)]
    found = [outside, *rows]
    if any(others):
        return [*names, "live, in other scopes"], [*found, others]
    return names, found
