"""Make and drop memory for a while, from C and from NumPy, and report whether memory stays flat.

Two programs run side by side: blocks.c calls the table, arrays.py goes through NumPy's handler and
memrt.empty. Both choose the sizes and lifetimes of blocks at random, in threads that start and end.
Each program prints a line per round, and the samples go to build/churn.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import memrt
from flatness import MIB, Sample, faults
from rich.progress import Progress
from runs import ROOT, GrowthError, Report, Run, lines_of, number

PROGRAMS = Path(__file__).resolve().parent / "programs"
OUT = ROOT / "build" / "churn"
ROUNDS = 40
GRACE = 300  # seconds beyond the planned time until a program counts as hung
LEAKS = ("none", "blocks", "pages")
REMOVED = ("MEMRT_", "MALLOC_", "LD_")  # settings that change the memory of a process


def compiled(folder: Path) -> Path:
    """Compile blocks.c against the installed libmemrt and return the path of the program."""
    folder.mkdir(parents=True, exist_ok=True)
    library, program = Path(memrt.get_library()), folder / "blocks"
    command = ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
    where = [f"-I{memrt.get_include()}", f"-Wl,-rpath,{library.parent}"]
    subprocess.run([*command, *where, PROGRAMS / "blocks.c", library, "-o", program], check=True)
    return program


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the command line of each program, by name."""
    return {
        "blocks": [str(compiled(folder))],
        "arrays": [sys.executable, str(PROGRAMS / "arrays.py")],
    }


def run_of(name: str, command: list[str], seconds: float, rounds: int, leak: str) -> Run:
    whole = [*command, str(seconds), str(rounds), leak]
    return Run(name, whole, seconds + GRACE, removed=REMOVED)


def show(name: str, sample: Sample) -> None:
    figures = {field: getattr(sample, field) / MIB for field in ("peak", "resident", "cached")}
    sizes = ", ".join(f"{field} {size:.1f} MiB" for field, size in figures.items())
    print(f"{name} {sample.seconds:5.0f} s: {sizes}, {sample.made:,} allocated", flush=True)


def watch(run: Run, rounds: int, progress: Progress) -> list[Sample]:
    """Run a program, show each sample as soon as it is printed, and return all samples."""
    found = []
    for line in progress.track(lines_of(run), total=rounds + 1, description=run.name):
        if line.startswith("{"):
            found.append(Sample(**json.loads(line)))
            show(run.name, found[-1])
    return found


def write(found: list[Sample], path: Path) -> None:
    lines = [json.dumps(vars(sample)) for sample in found]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def perform(options: argparse.Namespace, progress: Progress) -> Report:
    """Run both programs at once. Raises GrowthError if the memory of a program grows."""
    seconds = options.minutes * 60
    with ThreadPoolExecutor() as pool:
        running = {
            name: pool.submit(
                watch, run_of(name, command, seconds, ROUNDS, options.leak), ROUNDS, progress
            )
            for name, command in commands(OUT).items()
        }
    verdicts = {}
    for name, run in running.items():
        found = run.result()
        write(found, OUT / f"{name}.jsonl")
        verdicts[name] = "; ".join(faults(found)) or "flat"
    report = Report("\n".join(f"{name}: {verdict}" for name, verdict in verdicts.items()))
    if set(verdicts.values()) != {"flat"}:
        raise GrowthError(report.line)
    return report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("minutes", nargs="?", type=number(float, 0.001), default=60,
                        help="minutes to run, default 60")  # fmt: skip
    parser.add_argument(
        "--leak", choices=LEAKS, default="none", help="leak memory on purpose, default none"
    )
