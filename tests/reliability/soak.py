"""Run the stress program repeatedly, with consecutive seeds and under every setting.

The program is tests/stress/stress.c. Threads share, resize, chain and drop buffers, and verify
every word of every buffer. Meanwhile policies, options and threads change. A failing run is printed
with the command to repeat the run. A soak of five minutes or more without a failure writes
figures to docs/reliability.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import page
from rich.console import Console
from rich.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "tests" / "settings.txt"
PROGRAM = ROOT / "build" / "dev" / "stress"
TEST = "random_use_keeps_buffers_intact_and_statistics_balanced"
LONGEST = 20  # seconds of one run; the Check framework ends a test after 60 seconds
GRACE = 60  # seconds beyond the planned time until a run counts as hung
RECORDED = 300  # minimum seconds of a soak for recorded figures


@dataclass(frozen=True)
class Run:
    """One run of the program: an environment setting, or "", and the values of STRESS_*."""

    program: Path
    setting: str
    seed: int
    seconds: int
    threads: int

    @property
    def variables(self) -> list[str]:
        """The environment variables added by the run."""
        stress = {"SEED": self.seed, "SECONDS": self.seconds, "THREADS": self.threads}
        setting = [self.setting] if self.setting else []
        return [*setting, f"CK_RUN_CASE={TEST}", *(f"STRESS_{k}={v}" for k, v in stress.items())]

    @property
    def command(self) -> str:
        """The shell command to repeat the run."""
        return " ".join([*self.variables, str(self.program)])


class FailedRunError(Exception):
    """A run failed, hung or did nothing. The message has the output and the command."""

    def __init__(self, run: Run, outcome: str, output: str) -> None:
        super().__init__(
            f"{output.rstrip()}\n\nseed {run.seed} {outcome}; to repeat:\n{run.command}"
        )


def settings() -> list[str]:
    """Return "" (the unchanged environment), then each setting of settings.txt."""
    lines = SETTINGS.read_text(encoding="utf-8").splitlines()
    return ["", *(line for line in lines if not line.startswith("#"))]


def runs(minutes: float, seed: int, threads: int, program: Path) -> Iterator[Run]:
    """Yield runs of `minutes` in all, but at least a run under each setting."""
    under = settings()
    seconds = max(1, min(LONGEST, round(minutes * 60 / len(under))))
    count = max(len(under), round(minutes * 60 / seconds))
    for i in range(count):
        yield Run(program, under[i % len(under)], seed + i, seconds, threads)


def figures(output: str) -> Mapping[str, int]:
    """Return the counts in the last line of JSON of the output, or {}."""
    found = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return found[-1] if found else {}


def perform(run: Run) -> Mapping[str, int]:
    """Start a run and return the counts. A failed, hung or idle run raises FailedRunError."""
    environment = {**os.environ, **dict(variable.split("=", 1) for variable in run.variables)}
    try:
        result = subprocess.run(
            [run.program],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=run.seconds + GRACE,
        )
    except subprocess.TimeoutExpired as hung:
        raise FailedRunError(run, "hangs", (hung.stdout or b"").decode(errors="replace")) from hung
    if result.returncode != 0:
        raise FailedRunError(run, "fails", result.stdout)
    done = figures(result.stdout)
    if not done.get("deeds"):
        raise FailedRunError(run, "did nothing", result.stdout)
    return done


def soak(planned: list[Run], progress: Progress) -> Counter[str]:
    """Start all runs in sequence and return the sums of the counts."""
    total: Counter[str] = Counter()
    task = progress.add_task("", total=sum(run.seconds for run in planned))
    for run in planned:
        progress.update(task, description=f"seed {run.seed} {run.setting or 'default'}")
        done = perform(run)
        total.update({name: count for name, count in done.items() if name != "seed"})
        progress.advance(task, run.seconds)
    return total


def record(planned: list[Run], total: Counter[str], seconds: float) -> None:
    first = planned[0]
    page.record(
        "stress",
        "Stress",
        "Random use of the whole table by threads that start and end, under each setting of "
        "`tests/settings.txt` in turn: `./dev stress soak`. The threads verify every word of every "
        "buffer. No run failed.",
        {
            "minutes": round(seconds / 60),
            "seeds": f"{first.seed} to {planned[-1].seed}, {first.seconds} s each",
            "threads at once": first.threads,
            **{f"{name} in all" if name == "threads" else name: total[name] for name in total},
        },
    )


def arguments() -> argparse.Namespace:
    summary, about = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(prog="./dev stress soak", description=summary, epilog=about)
    parser.add_argument(
        "minutes", nargs="?", type=float, default=10, help="minutes in all, default 10"
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of the first run, default 1"
    )
    parser.add_argument("--threads", type=int, default=4, metavar="N",
                        help="threads at once, default 4, at most 64")  # fmt: skip
    parser.add_argument(
        "--program", type=Path, default=PROGRAM, help="program to run, default build/dev/stress"
    )
    parsed = parser.parse_args()
    if not (parsed.minutes > 0 and 0 < parsed.threads <= 64 and parsed.seed >= 0):
        parser.error(
            "minutes must be more than 0, threads from 1 to 64, and seed 0 or more, got "
            f"{parsed.minutes}, {parsed.threads} and {parsed.seed}"
        )
    return parsed


def main() -> int:
    chosen = arguments()
    planned = list(runs(chosen.minutes, chosen.seed, chosen.threads, chosen.program))
    begin = time.monotonic()
    try:
        with Progress(console=Console(stderr=True)) as progress:
            total = soak(planned, progress)
    except FailedRunError as error:
        print(error)
        return 1
    print(", ".join(f"{count:,} {name}" for name, count in total.items()), "and no failure")
    if sum(run.seconds for run in planned) >= RECORDED:
        record(planned, total, time.monotonic() - begin)
    return 0


if __name__ == "__main__":
    sys.exit(main())
