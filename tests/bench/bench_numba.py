"""Measure jitted functions on memrt against the same on Numba's own runtime.

Usage: python tests/bench/bench_numba.py [--rounds N]

Each round runs one process on each runtime, in turn first and second, both with the same machine
code from Numba's cache. Figures are ratios of one round's two processes. Writes
build/bench/numba.json and docs/benchmarks-numba.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from bench import OUT, ROOT, machine

KERNELS = Path(__file__).with_name("kernels.py")
SIDES = ("stock", "memrt")
BOUND = 1.03  # what memrt may take at most, against 1 on Numba's own runtime


def run(side: str) -> dict[str, float]:
    """Nanoseconds of each kernel, from one process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(OUT / "numba-cache")}
    command = [sys.executable, str(KERNELS), side]
    return json.loads(subprocess.check_output(command, env=environment, text=True))


def run_rounds(rounds: int) -> dict[str, dict[str, list[float]]]:
    """By kernel and side, a figure of each round."""
    run("stock")  # fills the cache
    times: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        for side in SIDES if number % 2 == 0 else SIDES[::-1]:
            for name, figure in run(side).items():
                times.setdefault(name, {s: [] for s in SIDES})[side].append(figure)
    return times


def summarize(own: dict[str, list[float]]) -> dict[str, float]:
    """Median nanoseconds on each side, and median and quartiles of the ratios."""
    ratios = [b / a for a, b in zip(own["stock"], own["memrt"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    sides = {side: statistics.median(own[side]) for side in SIDES}
    return {**sides, "ratio": middle, "ratio_low": low, "ratio_high": high}


def page(report: dict) -> str:
    """The report as a page."""
    lines = [
        "# Benchmarks: Numba on memrt",
        "",
        "Written by `./dev bench numba`; do not edit. Jitted functions that make and drop buffers",
        "in a loop, in processes on Numba's own runtime and on memrt in turn, with the same",
        f"machine code. A figure is processor time, the median of {report['rounds']} rounds;",
        "the ratio is memrt's to Numba's in one round, its median with quartiles. Numba's",
        "statistics are off, as they are by default; memrt's are always on.",
        "",
        *(f"- {key}: {value}" for key, value in report["machine"].items()),
        "",
        "| one iteration | on its own runtime | on memrt | ratio |",
        "|---|---:|---:|---:|",
    ]
    for name, own in report["kernels"].items():
        spread = f"{own['ratio_low']:.2f} to {own['ratio_high']:.2f}"
        lines.append(
            f"| {name} | {own['stock']:,.0f} ns | {own['memrt']:,.0f} ns "
            f"| {own['ratio']:.2f} ({spread}) |"
        )
    slower = [name for name, own in report["kernels"].items() if own["ratio"] > BOUND]
    verdict = ", ".join(slower) if slower else "nothing"
    lines += ["", f"Slower than on its own runtime by more than 3 %: {verdict}.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="processes of each (default 9)")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    times = run_rounds(options.rounds)
    kernels = {name: summarize(own) for name, own in times.items()}
    report = {"machine": machine(), "rounds": options.rounds, "kernels": kernels}
    (OUT / "numba.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    text = page(report)
    print(text)
    (ROOT / "docs" / "benchmarks-numba.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
