"""Run every seeded bug that checking mode claims to find, and measure the cost of the mode.

Writes the section "checking" of docs/reliability.md, unless --quick is given.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from building import compile_c
from page import record
from plants import PLANTS, Plant, missing, run

SETTINGS = ("", "MEMRT_TRACK", "MEMRT_CHECK")

# Names of the measured costs: the rows that cost.c prints, then the rows that NUMPY prints.
ROWS = (
    "resident memory of a block of 100 bytes, bytes",
    "block of 100 bytes allocated and freed, ns",
    "block of 10,000 bytes allocated and freed, ns",
    "block of 4 MiB allocated and freed, ns",
    "reference acquired and released, ns",
    "`np.empty(10)` made and dropped, ns",
    "`a + b` of 1,000 elements, ns",
    "`a + b` of 1,000,000 elements, ns",
)

NUMPY = """
import sys, time, memrt, numpy as np
memrt.enable()
def cost(act, times):
    begin = time.process_time_ns()
    for _ in range(times):
        act()
    print((time.process_time_ns() - begin) / times)
times = int(sys.argv[1])
cost(lambda: np.empty(10), times)
a, b = np.ones(1_000), np.ones(1_000)
cost(lambda: a + b, times)
c, d = np.ones(1_000_000), np.ones(1_000_000)
cost(lambda: c + d, times // 100 + 1)
"""


def find_all(program: Path) -> int:
    """Run each seeded bug, print the outcomes, and return how many runs went wrong.

    A program without a bug runs last, and must end with status 0 and without a report.
    """
    lost = 0
    for plant in PLANTS:
        result = run(program, plant)
        parts = missing(plant, result)
        lost += bool(parts)
        print(f"{'not found' if parts else 'found'}: {plant.kind}: {plant}")
        if parts:
            print(f"  the report lacks {parts}:\n{result.stderr}")
    quiet = run(program, Plant("none", "none", ()))
    if quiet.returncode != 0 or quiet.stderr:
        print(f"report on a program without a bug, exit status {quiet.returncode}:\n{quiet.stderr}")
        lost += 1
    return lost


def numbers(command: list[str], setting: str) -> list[float]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("MEMRT_")}
    result = subprocess.run(
        command,
        env={**known, **({setting: "1"} if setting else {})},
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(line) for line in result.stdout.split()]


def cost(program: Path, setting: str, times: int) -> list[float]:
    """Return one measured number for each of ROWS."""
    c = numbers([str(program), str(times)], setting)
    return [*c, *numbers([sys.executable, "-c", NUMPY, str(times)], setting)]


def costs(program: Path, rounds: int, times: int) -> list[list[float]]:
    """Return the medians over all rounds, for each of SETTINGS. Settings take turns in a round."""
    samples: list[list[list[float]]] = [[] for _ in SETTINGS]
    for _ in range(rounds):
        for setting, sample in zip(SETTINGS, samples, strict=True):
            sample.append(cost(program, setting, times))
    return [[statistics.median(column) for column in zip(*sample, strict=True)]
            for sample in samples]  # fmt: skip


def write(measured: list[list[float]], rounds: int) -> None:
    kinds = Counter((plant.kind, plant.language) for plant in PLANTS)
    found = {
        f"{kind}, seeded and found": ", ".join(
            f"{kinds[kind, language]} in {language}"
            for language in ("C", "Python")
            if (kind, language) in kinds
        )
        for kind in dict.fromkeys(plant.kind for plant in PLANTS)
    }
    rows = [
        (name, *(f"{value:,.0f}" for value in values), f"{values[-1] / values[0]:.1f}")
        for name, *values in zip(ROWS, *measured, strict=True)
    ]
    record(
        "checking",
        "Checking mode",
        "Programs with seeded bugs run with `MEMRT_CHECK=1`. Each program ended with a report that "
        "names the call and, for a block, the address, size, name, policy, and the call stacks of "
        "allocation and free. A program without a bug ended without a report. "
        "The table shows the cost of the mode: medians of processor time over "
        f"{rounds} rounds. `./dev verify checking`",
        found,
        ("", "default", "`MEMRT_TRACK=1`", "`MEMRT_CHECK=1`", "ratio"),
        rows,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev verify checking", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="run few rounds, write no page")
    options = parser.parse_args()
    rounds, times = (1, 1000) if options.quick else (7, 20_000)
    with tempfile.TemporaryDirectory() as folder:
        lost = find_all(compile_c(Path(folder), "plants.c"))
        if lost:
            print(f"{lost} of {len(PLANTS) + 1} programs had an unexpected outcome")
            return 1
        measured = costs(compile_c(Path(folder), "cost.c"), rounds, times)
    if not options.quick:
        write(measured, rounds)
    for name, *values in zip(ROWS, *measured, strict=True):
        print(f"{name}: {', '.join(f'{value:,.0f}' for value in values)}")
    print(f"all {len(PLANTS)} seeded bugs were found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
