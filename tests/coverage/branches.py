"""Count the branches of the core that the C tests take: `./dev coverage`.

    ./dev coverage            run the C tests, compare with tests/coverage/uncovered.txt
    ./dev coverage --record   the same, and write the figures of docs/reliability.md

Every branch without a test must be listed in uncovered.txt with a reason. The check fails for a
branch that is neither taken nor listed. The check also fails for a listed branch that is taken or
does not exist, unless the list marks the branch as taken by chance.

No library replaces the list: gcovr's markers exclude all branches of a line, also tested branches,
and cannot state that only some runs take a branch.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "coverage"
LISTED = Path(__file__).parent / "uncovered.txt"
LEAST = 95.0
TURNS = 6
COMMENT = re.compile(r"\s*/\*[^*]*\*/\s*$")  # behind code

# Runs of the C tests: environment variables, and a regular expression for the names of the tests.
RUNS = (
    ({}, "."),
    (
        {"MEMRT_CHECK": "1"},
        "test_(block_api|checking_table|creators|guard|live_set|lookup|operation_log|plain_table"
        "|policy|reference_table)$",
    ),
    ({"MEMRT_GUARD_SAMPLE": "1"}, "test_(block|block_api|creators|guard_pages|lookup|resizable)$"),
    ({"MEMRT_GUARD_SAMPLE": "1", "MEMRT_CACHE": "0"}, "test_block$"),
    ({"MEMRT_GUARD_SAMPLE": "1", "MEMRT_CHECK": "1"}, "test_block$"),
    (
        {"MEMRT_CACHE": "0"},
        "test_(block|block_api|creators|large_cache|mapped|policy|purger|tiny)$",
    ),
)


@dataclass(frozen=True, order=True)
class Branch:
    """A branch of a line of code, identified by text: line numbers change more often."""

    file: str
    code: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}: branch {self.number} of: {self.code}"


@dataclass(frozen=True)
class Count:
    """The number of times that each branch was taken."""

    taken: dict[Branch, int]

    @property
    def missed(self) -> set[Branch]:
        return {branch for branch, times in self.taken.items() if times == 0}

    @property
    def percent(self) -> float:
        return 100 * (1 - len(self.missed) / len(self.taken))


class ListError(Exception):
    """The list of branches without a test is malformed, or no branch was counted."""


@dataclass(frozen=True)
class Listing:
    """Contents of uncovered.txt: a reason for each branch, and the branches taken by chance."""

    reasons: dict[Branch, str]
    by_chance: set[Branch]


def entries(text: str) -> Iterator[list[str]]:
    """Yield the paragraphs of a text as lines, without comments."""
    for paragraph in text.split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith("#")]
        if lines:
            yield lines


def read_listing(text: str) -> Listing:
    """Parse the text of uncovered.txt. Raises ListError if a branch or a reason is missing.

    A paragraph has a file name, a line of code, and lines of branches. A line of branches has
    numbers, a question mark if the branches are taken by chance, a colon, and the reason.
    """
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
    """Return the counts of a gcovr report. Raises ListError if the report has no branch.

    If lines of a file have equal text, "again: " precedes the text of the second line, and so on.
    """
    taken: dict[Branch, int] = {}
    for file in report["files"]:
        source = (root / file["file"]).read_text(encoding="utf-8").splitlines()
        for line in file["lines"]:
            code = COMMENT.sub("", source[line["line_number"] - 1]).strip()
            for number, branch in enumerate(line["branches"]):
                key = Branch(file["file"], code, number)
                while key in taken:  # an earlier line has the same text
                    key = Branch(key.file, "again: " + key.code, number)
                taken[key] = branch["count"]
    if not taken:
        raise ListError("the gcovr report has no branch")
    return Count(taken)


def faults(count: Count, listing: Listing) -> Iterable[str]:
    for branch in sorted(count.missed - listing.reasons.keys()):
        yield f"not taken and not listed: {branch}"
    for branch in sorted(listing.reasons.keys() - count.missed - listing.by_chance):
        what = "is taken" if branch in count.taken else "does not exist"
        yield f"listed branch {what}: {branch}"
    if count.percent < LEAST:
        yield f"branches taken must be {LEAST:.0f} % or more, got {count.percent:.1f} %"


def begin_at_zero() -> None:
    """Remove all counter files, and the compiler's notes about sources that do not exist now."""
    for counters in BUILD.rglob("*.gcda"):
        counters.unlink()
    objects = BUILD / "CMakeFiles" / "memrt_objects.dir"
    for notes in objects.rglob("*.gcno"):
        if not (ROOT / notes.relative_to(objects).with_suffix("")).is_file():
            notes.unlink()


def run_tests() -> bool:
    """Run the C tests in all RUNS, and return True if all pass. Counters add up over runs."""
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
    """Return the branch counts of the counter files, read by gcovr.

    Threads cut off by a fork or an exit leave inconsistent counters. gcovr reads a negative count
    as 0. Sums of statistics read some words billions of times, which gcovr takes for an error.
    """
    out = BUILD / "branches.json"
    command = [sys.executable, "-m", "gcovr", "--root", str(ROOT), "--json", str(out)]
    command += ["--filter", "runtime/", "--filter", "api/", "--exclude-unreachable-branches"]
    command += ["--gcov-ignore-parse-errors=negative_hits.warn"]
    command += ["--gcov-suspicious-hits-threshold=0"]
    command += [str(BUILD / "CMakeFiles" / "memrt_objects.dir")]
    subprocess.run(command, cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    return read_count(json.loads(out.read_text(encoding="utf-8")), ROOT)


def count_anew(listing: Listing) -> Count | None:
    """Run the tests and return the counts, or None if a test fails.

    Some branches depend on addresses and threads. While a branch is neither taken nor listed, the
    tests run again, up to TURNS times in all.
    """
    begin_at_zero()
    for turn in range(TURNS):
        if not run_tests():
            return None
        count = count_branches()
        unlisted = sorted(count.missed - listing.reasons.keys())
        if not unlisted or turn == TURNS - 1:
            break
        print("→ again, for branches that are not listed:", *unlisted, sep="\n    ", flush=True)
    return count


def by_file(count: Count) -> list[tuple[str, int, int]]:
    """Return for each file the number of branches and of taken branches."""
    files: dict[str, list[int]] = {}
    for branch, times in count.taken.items():
        row = files.setdefault(branch.file, [0, 0])
        row[0] += 1
        row[1] += times != 0
    return [(file, branches, taken) for file, (branches, taken) in sorted(files.items())]


def leave_figures(count: Count, listing: Listing) -> None:
    import page

    about = "Branches of the core taken by the C tests, counted by gcov. By `./dev coverage`."
    facts = {
        "branches": len(count.taken),
        "taken": f"{count.percent:.1f} %",
        "not taken, each listed with a reason": len(count.missed),
    }
    page.record("coverage", "Coverage", about, facts, ("file", "branches", "taken"), by_file(count))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write the figures of the docs")
    parser.add_argument("--again", action="store_true", help="check the last run, run nothing")
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
