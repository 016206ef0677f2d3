"""Measure memrt against the other allocators and runtimes that a user can choose.

Writes a JSON file and charts for each part into docs/benchmarks, and docs/benchmarks.md from the
JSON files of all parts; parts that are not measured keep their figures. A quick run writes the same
files into build/bench/quick.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from goals import GOALS, MET, NOT_MEASURED, judge
from machine import machine
from options import Options
from parts import (
    alloc,
    exchange,
    limits,
    memory,
    numba_kernels,
    numpy_ops,
    observe,
    patterns,
    programs,
    see,
    threads,
)
from places import FIGURES, OUT, PAGE, ROOT, UNCOUNTED
from plot import draw_charts
from report import PARTS, cells, known, write_page
from result import Result
from rich.console import Console
from rich.table import Table

MODULES = {
    "alloc": alloc,
    "threads": threads,
    "patterns": patterns,
    "numpy": numpy_ops,
    "numba": numba_kernels,
    "memory": memory,
    "limits": limits,
    "observe": observe,
    "see": see,
    "exchange": exchange,
    "programs": programs,
}
PACKAGES = {
    "numpy": ("pyarrow",),
    "exchange": ("pyarrow",),
    "programs": ("scipy", "pandas", "scikit-image", "scikit-learn"),
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench",
        description=__doc__.split("\n\n")[0],
        epilog=__doc__.split("\n\n", 1)[1],
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"part to measure: {', '.join(PARTS)}; default: all",
    )
    parser.add_argument(
        "--quick", action="store_true", help="measure few rounds, no very large arrays"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="measure N rounds of every part")
    parser.add_argument("--instructions", action="store_true",
                        help="also count instructions, in parts with counts")  # fmt: skip
    parser.add_argument("--report", action="store_true",
                        help="write the page and the charts without measuring")  # fmt: skip
    parsed = parser.parse_args()
    unknown = set(parsed.parts) - set(PARTS)
    if unknown:
        parser.error(f"PART must be one of {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    if parsed.rounds is not None and parsed.rounds < 1:
        parser.error(f"--rounds must be 1 or more, got {parsed.rounds}")
    return parsed


def measure_part(part: str, options: Options, console: Console) -> Result:
    """Measure one part. Show the measurement in progress on the last line of the console."""
    begin = time.monotonic()
    with console.status(part) as status:

        def progress(what: str) -> None:
            spent = time.monotonic() - begin
            status.update(f"{part}: {what}")
            console.log(f"{part}, {spent:4.0f} s: {what}", highlight=False)

        groups = MODULES[part].measure(options, progress)
    console.log(f"{part}: done in {time.monotonic() - begin:.0f} s", highlight=False)
    rounds = max(len(f) for g in groups for case in g.cases for f in case.figures.values())
    return Result(part, machine(PACKAGES.get(part, ())), rounds, groups)


def verdicts(results: dict[str, Result]) -> Table:
    """Return a table with the verdict of each goal measured in `results`."""
    table = Table(title="Goals")
    for heading in ("", "work", "goal", "measured", ""):
        table.add_column(heading)
    for verdict in (judge(goal, results) for goal in GOALS):
        if verdict.state != NOT_MEASURED:
            table.add_row(*cells(verdict), style="" if verdict.state == MET else "yellow")
    return table


def publish(figures: Path, page: Path) -> dict[str, Result]:
    """Write charts and page from the results in the folder `figures`. Return the results."""
    results = known(figures)
    draw_charts(results, figures)
    write_page(results, figures.name, page)
    return results


def main() -> None:
    chosen = arguments()
    options = Options(chosen.quick, chosen.rounds, str(UNCOUNTED), chosen.instructions)
    console = Console(log_path=False)
    page = OUT / "quick" / "benchmarks.md" if options.quick else PAGE
    figures = page.parent / FIGURES.name
    figures.mkdir(parents=True, exist_ok=True)
    parts = [] if chosen.report else chosen.parts or list(PARTS)
    for part in parts:
        result = measure_part(part, options, console)
        result.write(figures / f"{part}.json")
        publish(figures, page)
    results = publish(figures, page)
    shown = {part: found for part, found in results.items() if part in parts or not parts}
    table = verdicts(shown)
    if table.rows:
        console.print(table)
    console.print(f"wrote {page.relative_to(ROOT)} and {figures.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
