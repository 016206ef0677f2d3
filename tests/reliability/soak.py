"""Run the stress program for long, with one seed after the other and under every setting.

The program is tests/stress/stress.c: threads that share, resize, chain and drop buffers, all of
whose words they verify, while policies, options and threads change. A run that fails is shown, with
the command that repeats it. A soak of five minutes or more, in which nothing failed, leaves its
figures in docs/reliability.md.
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
TEST = "buffers_stay_whole_and_the_account_balances_under_random_use_by_all_threads"
LONGEST = 20  # seconds of one run; Check ends a test after a minute
GRACE = 60  # more seconds until a run hangs
RECORDED = 300  # seconds from which on a soak says enough to be recorded


@dataclass(frozen=True)
class Run:
    """One run of the program: a setting of the environment, or none, and what STRESS_* say."""

    program: Path
    setting: str
    seed: int
    seconds: int
    threads: int

    @property
    def variables(self) -> list[str]:
        """All that differs from the environment as it is."""
        stress = {"SEED": self.seed, "SECONDS": self.seconds, "THREADS": self.threads}
        setting = [self.setting] if self.setting else []
        return [*setting, f"CK_RUN_CASE={TEST}", *(f"STRESS_{k}={v}" for k, v in stress.items())]

    @property
    def command(self) -> str:
        """What repeats it, in a shell."""
        return " ".join([*self.variables, str(self.program)])


class FailedRunError(Exception):
    """A run that did not end well, with what it said."""

    def __init__(self, run: Run, outcome: str, output: str) -> None:
        super().__init__(f"{output.rstrip()}\n\nseed {run.seed} {outcome}; again:\n{run.command}")


def settings() -> list[str]:
    """As the environment is, then each line of the list."""
    lines = SETTINGS.read_text(encoding="utf-8").splitlines()
    return ["", *(line for line in lines if not line.startswith("#"))]


def runs(minutes: float, seed: int, threads: int, program: Path) -> Iterator[Run]:
    """Runs that take so long together: at least one under each setting."""
    under = settings()
    seconds = max(1, min(LONGEST, round(minutes * 60 / len(under))))
    count = max(len(under), round(minutes * 60 / seconds))
    for i in range(count):
        yield Run(program, under[i % len(under)], seed + i, seconds, threads)


def figures(output: str) -> Mapping[str, int]:
    """What the program says that it did: its line of JSON."""
    found = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return found[-1] if found else {}


def perform(run: Run) -> Mapping[str, int]:
    """Do one run; raises FailedRunError if it fails, hangs or does nothing."""
    environment = {**os.environ, **dict(variable.split("=", 1) for variable in run.variables)}
    try:
        result = subprocess.run(
            [run.program],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=run.seconds + GRACE,
        )
    except subprocess.TimeoutExpired as hung:
        raise FailedRunError(run, "hangs", (hung.stdout or b"").decode()) from hung
    if result.returncode != 0:
        raise FailedRunError(run, "fails", result.stdout)
    done = figures(result.stdout)
    if not done.get("deeds"):
        raise FailedRunError(run, "did nothing", result.stdout)
    return done


def soak(planned: list[Run], progress: Progress) -> Counter[str]:
    """All runs, one after the other; what they did, added up."""
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
        "Random use of the whole table by threads that come and go, every word of every buffer "
        "verified, under each setting of `tests/settings.txt` in turn: `./dev soak`. No run "
        "failed.",
        {
            "minutes": round(seconds / 60),
            "seeds": f"{first.seed} to {planned[-1].seed}, {first.seconds} s each",
            "threads at once": first.threads,
            **{f"{name} in all" if name == "threads" else name: total[name] for name in total},
        },
    )


def arguments() -> argparse.Namespace:
    summary, about = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(prog="./dev soak", description=summary, epilog=about)
    parser.add_argument("minutes", nargs="?", type=float, default=10, help="default 10")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the first run")
    parser.add_argument("--threads", type=int, default=4, metavar="N", help="default 4, at most 64")
    parser.add_argument(
        "--program", type=Path, default=PROGRAM, help="in place of build/dev/stress"
    )
    parsed = parser.parse_args()
    if not (parsed.minutes > 0 and 0 < parsed.threads <= 64 and parsed.seed >= 0):
        parser.error("there must be time, a thread, and a seed of 0 or more")
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
    print(", ".join(f"{count:,} {name}" for name, count in total.items()), "and no fault")
    if sum(run.seconds for run in planned) >= RECORDED:
        record(planned, total, time.monotonic() - begin)
    return 0


if __name__ == "__main__":
    sys.exit(main())
