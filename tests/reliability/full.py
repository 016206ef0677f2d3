"""Run the long chores at one clean commit and record the last result of each: `./dev full`.

    ./dev full               every chore without a pass at this commit, shortest first
    ./dev full soak exits    the named chores, also after a pass
    ./dev full --list        the last result of each chore; runs nothing

After an interruption, a new call continues with the next chore, also in another clone: the results
are in docs/reliability. Commit the new files after each call. A result stays valid while commits
change only results. A tree with other uncommitted changes is refused, because a result must name
the measured commit.

No library replaces the tool: make and doit compare files, and keep no outcome per commit.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import page

ABOUT = """Last result of each long chore, by `./dev full`. The gate runs a sample of each chore. A
chore with the name of a section in place of a result was last run by its own command, and the
section has the result."""

GROUPS = ("variants", "verify", "stress", "suites")  # the next word names the command


@dataclass(frozen=True)
class Chore:
    """A long chore: the arguments of ./dev, and its approximate minutes on two cores."""

    arguments: str
    minutes: int
    section: str = ""
    """Section of docs/reliability.md that the chore records by itself, if any."""

    @property
    def name(self) -> str:
        command, *others = self.arguments.split()
        if command in GROUPS:
            return others[0]
        of_bindings = any(word.strip("-") == "bindings" for word in others)
        return f"{command}-bindings" if of_bindings else command


# Shortest first, so that an interrupted call has most results. `models --record` needs GenMC.
CHORES = (
    Chore("coverage --record", 2, "coverage"),
    Chore("variants c11", 2),
    Chore("verify conformance", 2, "conformance"),
    Chore("verify checking", 3, "checking"),
    Chore("verify refprune", 2),
    Chore("suites clients --record", 3, "clients/profilers"),
    Chore("guest --all", 5),
    Chore("suites clusters", 6),
    Chore("verify fuzz 5", 6, "fuzzing"),
    Chore("stress soak 5", 6, "stress"),
    Chore("stress exits 5", 7, "exits"),
    Chore("stress churn 15", 15, "stress"),
    Chore("verify failures", 15, "failure-points"),
    Chore("variants free-threaded --python 3.14 --record", 20, "systems/tested"),
    Chore("coverage bindings --record", 20, "coverage-bindings"),
    Chore("verify models --record", 20, "weak-memory"),
    Chore("wheels --record", 25, "systems/tested"),
    Chore("mutate --sample 100 --record", 30, "mutation"),
    Chore("variants settings --all", 30),
    Chore("sanitize --all", 40, "sanitizers"),
    Chore("suites compilers --record", 40, "systems/compilers"),
    Chore("suites distributions --record", 40, "systems/tested"),
    Chore("suites matrix --record", 60, "systems/tested"),
    Chore("suites numpy --all --jobs 2", 60, "suites/numpy"),
    Chore("suites projects --all --jobs 2", 100, "suites/projects"),
    Chore("mutate --bindings --sample 300 --record", 120, "mutation-bindings"),
    Chore("suites numba --all", 200, "suites/numba"),
)


@dataclass(frozen=True)
class Result:
    """The outcome of one chore at one commit."""

    passed: bool
    commit: str
    date: str
    minutes: float


def read_results() -> dict[str, Result]:
    """Return the recorded results by name of the chore."""
    path = page.FIGURES / "full.json"
    if not path.exists():
        return {}
    names = {f"`{chore.arguments}`": chore.name for chore in CHORES}
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return {
        names[chore]: Result(outcome == "passed", commit, date, float(minutes))
        for chore, outcome, minutes, commit, date in rows
        if chore in names and outcome in ("passed", "failed")
    }


def recorded_later(chore: Chore, result: Result | None) -> str:
    """Return the title of the chore's section if the section is newer than the result, or ""."""
    path = page.FIGURES / f"{chore.section}.json"
    if not chore.section or not path.exists():
        return ""
    figures = json.loads(path.read_text(encoding="utf-8"))
    commit, date = figures["facts"]["commit"], figures["facts"]["date"]
    is_later = result is None or (commit != result.commit and date >= result.date)
    return figures["title"] if is_later else ""


def rows(results: dict[str, Result]) -> Iterable[Sequence[object]]:
    for chore in CHORES:
        name, result = f"`{chore.arguments}`", results.get(chore.name)
        if section := recorded_later(chore, result):
            yield name, f"see {section}", "", "", ""
        elif result is None:
            yield name, "not run", "", "", ""
        else:
            outcome = "passed" if result.passed else "failed"
            yield name, outcome, str(result.minutes), result.commit, result.date


def run_chore(chore: Chore) -> Result:
    print(f"\n=== ./dev {chore.arguments} (about {chore.minutes} minutes)", flush=True)
    begin, commit = time.monotonic(), page.commit()
    done = subprocess.run([page.ROOT / "dev", *chore.arguments.split()], cwd=page.ROOT)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    minutes = round((time.monotonic() - begin) / 60, 1)
    return Result(done.returncode == 0, commit, today, minutes)


def record(results: dict[str, Result]) -> None:
    columns = ("chore", "result", "minutes", "commit", "date")
    page.record("full", "Long chores", ABOUT, columns=columns, rows=rows(results))


def print_results(results: dict[str, Result]) -> None:
    for name, outcome, minutes, commit, date in rows(results):
        line = f"{str(name).strip('`'):46} {outcome:30} {minutes:>7} {commit:10} {date}"
        print(line.rstrip())


def choose(names: Sequence[str], results: dict[str, Result]) -> list[Chore]:
    """Return the named chores, or without names all chores without a pass at this commit."""
    if names:
        return [chore for chore in CHORES if chore.name in names]
    commit = page.commit()
    passed = {name for name, each in results.items() if each.passed and each.commit == commit}
    return [chore for chore in CHORES if chore.name not in passed]


def run(chores: Sequence[Chore], results: dict[str, Result]) -> bool:
    """Run chores in sequence, and save and record each result at once.

    Returns True if all chores passed.
    """
    for chore in chores:
        results[chore.name] = run_chore(chore)
        record(results)
    return all(results[chore.name].passed for chore in chores)


def main() -> int:
    names = [chore.name for chore in CHORES]
    parser = argparse.ArgumentParser(
        prog="./dev full", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "chores", nargs="*", metavar="CHORE", help=f"chore to run: {', '.join(names)}"
    )
    parser.add_argument("--list", action="store_true", help="show the last results, run nothing")
    options = parser.parse_args()
    results = read_results()
    if options.list:
        print_results(results)
        return 0
    if unknown := set(options.chores) - set(names):
        parser.error(f"CHORE must be one of {', '.join(names)}, got {', '.join(sorted(unknown))}")
    if changed := page.uncommitted():
        print("commit these changes first, so that each result names a commit:", *changed, sep="\n")
        return 1
    passed = run(choose(options.chores, results), results)
    print_results(results)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
