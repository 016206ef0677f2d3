"""Write the section of the figures of `./dev bench dask` into the page on clusters."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

BEGIN = "<!-- figures of ./dev bench dask: begin -->\n"
END = "<!-- figures of ./dev bench dask: end -->\n"
MOST_COST = 0.02
TASK = 1e-3  # seconds of processor time of a task of cost.py


def write(page: Path, found: dict[str, Any]) -> None:
    """Replace the section between the two marks of the page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{page} must have the marks of the section, got no such lines")
    page.write_text(f"{before}{BEGIN}{text(found)}{END}{after}", encoding="utf-8")


def text(found: dict[str, Any]) -> str:
    """Return the section in Markdown, without the marks."""
    naive, fixed = found["cases"][1], found["cases"][3]
    size = naive["frames"] * naive["side"] ** 2 * 4
    lines = [
        f"Measured on {found['machine']['date']} with Dask {found['machine']['dask']} on "
        f"{found['machine']['processor']}: {size / 2**30:.3g} GiB of frames on "
        f"two workers with a memory limit of {naive['limit']} each.",
        "",
        "| | chunk | outcome | time | highest resident memory of a worker | restarts |",
        "|---|---:|---|---:|---:|---:|",
        *map(row, found["cases"]),
        "",
        f"With memrt, {survived(naive)} of {len(naive['runs'])} runs with large chunks left both "
        f"workers alive. {refused(naive)} {needed(fixed)}",
        "",
        cost_text(found["cost"]),
        "",
    ]
    return "\n".join(lines)


def row(case: dict[str, Any]) -> str:
    first = case["runs"][0]
    cells = (
        "memrt" if case["memrt"] else "stock Dask",
        mib(chunk_bytes(case)),
        outcome(first["outcome"]),
        f"{statistics.median(run['seconds'] for run in case['runs']):.1f} s",
        mib(case["peak"]),
        str(case["restarts"]),
    )
    return f"| {' | '.join(cells)} |"


def outcome(name: str) -> str:
    meanings = {"done": "done", "KilledWorker": "workers killed", "TimeoutError": "paused"}
    return meanings.get(name, f"one task fails: `{name}`")


def chunk_bytes(case: dict[str, Any]) -> int:
    return case["chunk"] * case["side"] ** 2 * 4


def mib(size: float) -> str:
    return f"{size / 2**20:,.0f} MiB"


def survived(case: dict[str, Any]) -> int:
    return sum(run["survived"] for run in case["runs"])


def refused(case: dict[str, Any]) -> str:
    rows = [row for row in case["prefixes"] if row["failed"]]
    if not rows:
        return "No request was refused."
    first = max(rows, key=lambda row: row["failed"])
    return f"`memrt.dask.stats` names the prefix of the refused requests: `{first['prefix']}`."


def needed(case: dict[str, Any]) -> str:
    """Return a sentence with the peak of a task as a multiple of its chunk."""
    first = max(case["prefixes"], key=lambda row: row["peak"])
    multiple = first["peak"] / chunk_bytes(case)
    return (
        f"In the run with small chunks, a task of `{first['prefix']}` has a peak of "
        f"{mib(first['peak'])}, {multiple:.1f} times its chunk."
    )


def cost_of(cost: dict[str, Any]) -> float:
    """Return the median of the rounds: processor time with memrt, by the time without, less 1."""
    pairs = zip(cost["memrt"], cost["stock"], strict=True)
    return statistics.median(with_memrt / stock - 1 for with_memrt, stock in pairs)


def cost_text(cost: dict[str, Any]) -> str:
    share = cost_of(cost)
    return (
        f"For a graph of tasks of 1 ms, a worker with memrt takes {abs(share):.1%} "
        f"{'less' if share < 0 else 'more'} processor time than a worker without: the median of "
        f"{len(cost['stock'])} rounds in turn. The account itself takes {cost['own'] * 1e6:.0f} µs "
        "per task."
    )


def missed(found: dict[str, Any]) -> list[str]:
    """Return a sentence for each missed goal."""
    case = found["cases"][1]
    said = []
    if survived(case) < len(case["runs"]):
        said.append(f"survived runs must be {len(case['runs'])}, got {survived(case)}")
    if found["cases"][3]["runs"][0]["outcome"] != "done":
        said.append("the run with small chunks must end, got another outcome")
    for name, cost in (("graph", cost_of(found["cost"])), ("account", found["cost"]["own"] / TASK)):
        if cost > MOST_COST:
            said.append(f"cost of the {name} must be at most {MOST_COST:.0%}, got {cost:.1%}")
    return said
