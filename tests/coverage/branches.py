"""Count the branches of the core that the C tests take: the work behind `./dev coverage`.

    ./dev coverage            run the C tests, compare with tests/coverage/uncovered.txt
    ./dev coverage --record   the same, and leave the figures for docs/reliability.md

Every branch that no test takes stands in uncovered.txt with its reason. A branch that is not taken
and not listed is a fault, and so is one that is listed and taken.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "coverage"
LISTED = Path(__file__).parent / "uncovered.txt"
LEAST = 95.0
TURNS = 3

# Environment of a run of the C tests, and the names of those that it takes.
RUNS = (
    ({}, "."),
    ({"MEMRT_CHECK": "1"}, "test_(checking|creators|external|guard|live|owner|policy|raw)$"),
    ({"MEMRT_CACHE": "0"}, "test_(block|creators|mapped|policy|purger|raw|tiny|warm)$"),
)


@dataclass(frozen=True, order=True)
class Branch:
    """One way out of a line of code, by the text of the line, which moves less than its number."""

    file: str
    code: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}: branch {self.number} of: {self.code}"


@dataclass(frozen=True)
class Count:
    """What a run counted: how often each branch was taken."""

    taken: dict[Branch, int]

    @property
    def missed(self) -> set[Branch]:
        return {branch for branch, times in self.taken.items() if times == 0}

    @property
    def percent(self) -> float:
        return 100 * (1 - len(self.missed) / len(self.taken))


class ListError(Exception):
    """The list of branches without a test cannot be read."""


@dataclass(frozen=True)
class Listing:
    """What uncovered.txt says: a reason for each branch, and which are taken by chance."""

    reasons: dict[Branch, str]
    by_chance: set[Branch]


def entries(text: str) -> Iterator[list[str]]:
    """The paragraphs of a text, less comments."""
    for paragraph in text.split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith("#")]
        if lines:
            yield lines


def read_listing(text: str) -> Listing:
    """Paragraphs of a file's name, a line of its code, and then lines of branches and reason:
    numbers, a question mark where chance has a say, a colon, the reason."""
    reasons: dict[Branch, str] = {}
    by_chance = set()
    for file, code, *rest in entries(text):
        for line in rest:
            numbers, colon, reason = line.partition(": ")
            if not colon or not reason.strip():
                raise ListError(f"{file}: {code}: no reason in {line!r}")
            for number in numbers.rstrip("?").split():
                branch = Branch(file, code, int(number))
                reasons[branch] = reason
                if numbers.endswith("?"):
                    by_chance.add(branch)
        if not rest:
            raise ListError(f"{file}: {code}: no branch")
    return Listing(reasons, by_chance)


def read_count(report: dict, root: Path) -> Count:
    """From gcovr's report. Lines of one file with the same text count as one."""
    taken: dict[Branch, int] = {}
    for file in report["files"]:
        source = (root / file["file"]).read_text(encoding="utf-8").splitlines()
        for line in file["lines"]:
            code = source[line["line_number"] - 1].strip()
            for number, branch in enumerate(line["branches"]):
                key = Branch(file["file"], code, number)
                while key in taken:  # the same text again
                    key = Branch(key.file, "again: " + key.code, number)
                taken[key] = branch["count"]
    if not taken:
        raise ListError("no branch was counted")
    return Count(taken)


def faults(count: Count, listing: Listing) -> Iterable[str]:
    for branch in sorted(count.missed - listing.reasons.keys()):
        yield f"no test takes it, and it is not listed: {branch}"
    for branch in sorted(listing.reasons.keys() - count.missed - listing.by_chance):
        what = "is taken" if branch in count.taken else "is not there"
        yield f"it is listed, but {what}: {branch}"
    if count.percent < LEAST:
        yield f"{count.percent:.1f} % of branches are taken, fewer than {LEAST:.0f} %"


def begin_at_zero() -> None:
    for counters in BUILD.rglob("*.gcda"):
        counters.unlink()


def run_tests() -> bool:
    """All runs; what they count is added to what there is."""
    jobs = str(os.cpu_count())
    good = True
    for environment, names in RUNS:
        ctest = ["ctest", "--test-dir", str(BUILD), "--output-on-failure", "--no-tests=error"]
        command = [*ctest, "-j", jobs, "-R", names]
        print(f"→ {' '.join(f'{k}={v}' for k, v in environment.items())} {names}", flush=True)
        done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE)
        if done.returncode != 0:
            sys.stdout.buffer.write(done.stdout)
            good = False
    return good


def count_branches() -> Count:
    """Threads that a fork or an exit cuts off leave counts that do not add up: less than nothing
    reads as nothing."""
    out = BUILD / "branches.json"
    command = [sys.executable, "-m", "gcovr", "--root", str(ROOT), "--json", str(out)]
    command += ["--filter", "runtime/", "--filter", "api/", "--exclude-unreachable-branches"]
    command += ["--gcov-ignore-parse-errors=negative_hits.warn"]
    command += [str(BUILD / "CMakeFiles" / "memrt_objects.dir")]
    subprocess.run(command, cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    return read_count(json.loads(out.read_text(encoding="utf-8")), ROOT)


def count_anew(listing: Listing) -> Count | None:
    """What the tests take, in several turns where one is unlucky: addresses and threads decide on
    some branches. None: a test failed."""
    begin_at_zero()
    for turn in range(TURNS):
        if not run_tests():
            return None
        count = count_branches()
        if count.missed <= listing.reasons.keys() or turn == TURNS - 1:
            break
    return count


def by_file(count: Count) -> list[tuple[str, int, int]]:
    """Each file with its branches and how many of them are taken."""
    files: dict[str, list[int]] = {}
    for branch, times in count.taken.items():
        row = files.setdefault(branch.file, [0, 0])
        row[0] += 1
        row[1] += times != 0
    return [(file, branches, taken) for file, (branches, taken) in sorted(files.items())]


def leave_figures(count: Count, listing: Listing) -> None:
    import page

    about = "Branches of the core that the C tests take, as gcov counts them. By `./dev coverage`."
    facts = {
        "branches": len(count.taken),
        "taken": f"{count.percent:.1f} %",
        "not taken, each listed with its reason": len(count.missed),
    }
    page.record("coverage", "Coverage", about, facts, ("file", "branches", "taken"), by_file(count))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="leave the figures for the docs")
    parser.add_argument("--again", action="store_true", help="judge the last run, run nothing")
    options = parser.parse_args()
    listing = read_listing(LISTED.read_text(encoding="utf-8"))
    count = count_branches() if options.again else count_anew(listing)
    if count is None:
        return 1
    found = list(faults(count, listing))
    print(*found, f"{count.percent:.1f} % of {len(count.taken)} branches are taken", sep="\n")
    if options.record and not found:
        leave_figures(count, listing)
    return 1 if found else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "reliability"))
    sys.exit(main())
