"""Run the stress program repeatedly, with consecutive seeds and under every setting.

The program is tests/stress/stress.c. Threads share, resize, chain and drop buffers, and verify
every word of every buffer. Meanwhile policies, options and threads change. A soak of five minutes
or more without a failure writes figures to docs/reliability.md.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.progress import Progress
from runs import BUILD, ROOT, FailedRunError, Report, Run, lines_of, number

SETTINGS = ROOT / "tests" / "settings.txt"
TEST = "random_use_keeps_buffers_intact_and_statistics_balanced"
LONGEST = 20  # seconds of one run; the Check framework ends a test after 60 seconds
GRACE = 60  # seconds beyond the planned time until a run counts as hung
RECORDED = 300  # minimum seconds of a soak for recorded figures


def settings() -> list[str]:
    """Return "" (the unchanged environment), then each line of settings.txt."""
    lines = SETTINGS.read_text(encoding="utf-8").splitlines()
    return ["", *(line for line in lines if not line.startswith("#"))]


def run_of(program: Path, setting: str, seed: int, seconds: int, threads: int) -> Run:
    """Return a run of the program under the environment settings of a line; "" for none."""
    variables = dict((pair.split("=", 1) for pair in setting.split()), CK_RUN_CASE=TEST)
    stress = {"SEED": seed, "SECONDS": seconds, "THREADS": threads}
    variables.update({f"STRESS_{name}": str(value) for name, value in stress.items()})
    return Run(f"seed {seed}", [str(program)], seconds + GRACE, variables)


def seconds_of_run(minutes: float) -> int:
    return max(1, min(LONGEST, round(minutes * 60 / len(settings()))))


def plan(options: argparse.Namespace) -> Iterator[Run]:
    """Yield runs of `minutes` in all, but at least a run under each setting."""
    under, seconds = settings(), seconds_of_run(options.minutes)
    for i in range(max(len(under), round(options.minutes * 60 / seconds))):
        setting = under[i % len(under)]
        yield run_of(options.program, setting, options.seed + i, seconds, options.threads)


def counts_of(run: Run) -> Mapping[str, int]:
    """Start a run and return the counts in its last line of JSON.

    A failed, hung or idle run raises FailedRunError.
    """
    lines = list(lines_of(run))
    found = [json.loads(line) for line in lines if line.startswith("{")]
    if not found or not found[-1].get("deeds"):
        raise FailedRunError(run, "did nothing", "\n".join(lines))
    return {name: count for name, count in found[-1].items() if name != "seed"}


def perform(options: argparse.Namespace, progress: Progress) -> Report:
    """Start all runs in sequence and report the sums of the counts."""
    planned, total = list(plan(options)), Counter()
    for run in progress.track(planned, description="soak"):
        total.update(counts_of(run))
    line = ", ".join(f"{count:,} {name}" for name, count in total.items()) + " and no failure"
    seconds = seconds_of_run(options.minutes)
    return Report(
        line,
        "stress" if seconds * len(planned) >= RECORDED else "",
        "Stress",
        "Random use of the whole table by threads that start and end, under each setting of "
        "`tests/settings.txt` in turn: `./dev stress soak`. The threads verify every word of every "
        "buffer. No run failed.",
        {
            "seeds": f"{options.seed} to {options.seed + len(planned) - 1}, {seconds} s each",
            "threads at once": options.threads,
            **{f"{name} in all" if name == "threads" else name: total[name] for name in total},
        },
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("minutes", nargs="?", type=number(float, 0.001), default=10,
                        help="minutes in all, default 10")  # fmt: skip
    parser.add_argument("--seed", type=number(int, 0), default=1, metavar="N",
                        help="seed of the first run, default 1")  # fmt: skip
    parser.add_argument("--threads", type=number(int, 1, 64), default=4, metavar="N",
                        help="threads at once, default 4, at most 64")  # fmt: skip
    parser.add_argument("--program", type=Path, default=BUILD / "stress",
                        help="program to run, default build/dev/stress")  # fmt: skip
