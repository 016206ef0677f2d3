"""Run other projects' own tests on memrt: `./dev suites numpy` and `./dev suites projects`.

    ./dev suites numpy           the part of NumPy's tests that the gate runs, in two modes of memrt
    ./dev suites numpy PATTERN   test files with PATTERN in their paths, in all modes
    ./dev suites numpy --all     all parts; writes the outcomes into docs/reliability.md; takes
                                hours, and continues after an interruption
    ./dev suites numpy --record  write the existing results into docs/reliability.md, run no tests

    ./dev suites projects PATTERN | --all | --record
                                the same for SciPy, pandas, scikit-learn, xarray and scikit-image,
                                in release mode

The tests run on NumPy's default handler and on memrt, and the outcomes are compared. Results lie
under build/SUITE-suite. Results of the default are kept per set of versions, results of memrt per
build of memrt.

No library compares the outcome of each test between two runs: reports of pytest describe one run.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import environment
from environment import ROOT, StepError
from expected import EXPECTED
from pieces import run_all
from projects import NUMPY, PROJECTS, Piece, pieces, quick_pieces
from results import Results
from sides import QUICK_SIDES, SIDES, STOCK, Side
from verdict import Verdict, judge, report

sys.path.append(str(ROOT / "tests" / "reliability"))
import page


@dataclass(frozen=True)
class Suite:
    """The tests of one or more projects, and the configurations that run them."""

    name: str
    title: str
    parts: tuple[str, ...]
    packages: tuple[str, ...]
    sides: tuple[Side, ...]
    modes: str

    @property
    def work(self) -> Path:
        return ROOT / "build" / f"{self.name}-suite"

    @property
    def requirements(self) -> list[str]:
        file = Path(__file__).with_name(f"{self.name}.txt")
        return file.read_text(encoding="utf-8").split()


SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            "numpy",
            "Tests of NumPy",
            NUMPY,
            ("numpy", "pytest", "hypothesis"),
            SIDES,
            "in release mode with caches, in release mode without caches, and in checking mode "
            "without caches",
        ),
        Suite(
            "projects",
            "Tests of SciPy, pandas, scikit-learn, xarray and scikit-image",
            PROJECTS,
            ("numpy", "scipy", "scikit-image", "pandas", "scikit-learn", "xarray", "pytest"),
            SIDES[:2],
            "in release mode with caches",
        ),
    )
}


def make_results(suite: Suite) -> Results:
    wheel = environment.newest(ROOT / "build" / "wheel")
    folder, name = suite.work / "venv", f"{suite.name}-suite"
    python = environment.ensure(folder, sys.executable, suite.requirements, wheel, name)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.check_output([python, "-c", where], text=True).strip()
    return Results(python, Path(site), suite.work, suite.packages)


def run(results: Results, chosen: Sequence[Piece], sides: Sequence[Side], jobs: int) -> None:
    """Run the pieces, grouped by project and, within a project, by side."""
    projects = dict.fromkeys(piece.part.partition("/")[0] for piece in chosen)
    work = [
        (side, piece)
        for project in projects
        for side in sides
        for piece in chosen
        if piece.part.partition("/")[0] == project
    ]
    run_all(work, lambda item: results.run(*item), lambda item: item[1].size, jobs)


def check(results: Results, chosen: Sequence[Piece], sides: Sequence[Side], jobs: int) -> bool:
    run(results, chosen, sides, jobs)
    verdicts = judge(results, chosen, sides)
    print("\n".join(report(verdicts)))
    return bool(verdicts) and all(verdict.is_good for verdict in verdicts)


ABOUT = (
    "{title}, from their packages, by `./dev suites {name} --all`. The tests run on NumPy's "
    "default handler, and with `memrt.enable()` {modes}. A difference is a test with another "
    "outcome than on the default handler, or a process that crashed or hung. Some tests fail on all "
    "sides, because they need files that the packages lack, or the network. The counters of memrt "
    "prove that the tests of each process ran on memrt. Tests that the projects mark as slow, or "
    "as tests of the network, are left out. The column of a mode has the number of differences. "
    "Blocks are those that memrt counted in all modes."
)


def rows(
    suite: Suite, verdicts: Sequence[Verdict], chosen: Sequence[Piece]
) -> Iterator[list[object]]:
    """Yield a row per part: the outcomes on the default, the differences of each side, and blocks.

    If a side has not run the whole part, its cell also gives the number of tests that ran.
    """
    pieces_of = Counter(piece.part for piece in chosen)
    found = {(verdict.part, verdict.side): verdict for verdict in verdicts}
    for part, wanted in pieces_of.items():
        if (part, STOCK) in found:
            ended = found[part, STOCK].outcomes.most_common()
            sides = [found.get((part, side)) for side in suite.sides[1:]]
            yield [
                part,
                ", ".join(f"{count:,} {word}" for word, count in ended),
                *(differences_of(verdict, wanted) for verdict in sides),
                f"{sum(verdict.blocks for verdict in sides if verdict):,}",
            ]


def differences_of(verdict: Verdict | None, wanted: int) -> str:
    if verdict is None:
        return "not run"
    differences = str(len(verdict.unexpected) + len(verdict.faults))
    return differences if verdict.pieces == wanted else f"{differences} in {verdict.tests:,} tests"


def record(suite: Suite, results: Results, chosen: Sequence[Piece]) -> None:
    verdicts = judge(results, chosen, suite.sides)
    named = (*suite.packages, "python", "memrt", "build")
    ran = {difference.test for verdict in verdicts for difference in verdict.expected}
    facts = {
        "versions": ", ".join(f"{name} {results.versions[name]}" for name in named),
        **{f"tests, {side.name}": total(verdicts, side, "tests") for side in suite.sides},
        **{f"tests with blocks on memrt, {side.name}": total(verdicts, side, "used")
           for side in suite.sides[1:]},
        "blocks counted by memrt": sum(verdict.blocks for verdict in verdicts),
        "differences": sum(len(verdict.unexpected) for verdict in verdicts),
        "processes that crashed, hung or did not use memrt": sum(len(v.faults) for v in verdicts),
        **{f"expected difference, {test}": EXPECTED[test] for test in sorted(ran)},
    }  # fmt: skip
    columns = ["part", "default handler", *(side.name for side in suite.sides[1:]), "blocks"]
    about = ABOUT.format(title=suite.title, name=suite.name, modes=suite.modes)
    table = rows(suite, verdicts, chosen)
    page.record(f"{suite.name}-suite", suite.title, about, facts, columns, table)


def total(verdicts: Sequence[Verdict], side: Side, figure: str) -> int:
    return sum(getattr(verdict, figure) for verdict in verdicts if verdict.side is side)


def dispatch(suite: Suite, options: argparse.Namespace) -> bool:
    results = make_results(suite)
    every = pieces(results.site, suite.parts)
    if options.record:
        record(suite, results, every)
        return True
    if options.all:
        good = check(results, every, suite.sides, options.jobs)
        record(suite, results, every)
        return good
    if options.pattern:
        chosen = pieces(results.site, suite.parts, options.pattern)
        if not chosen:
            raise StepError(
                f"PATTERN must be part of the path of a test file, got {options.pattern!r}"
            )
        return check(results, chosen, suite.sides, options.jobs)
    if suite.name != "numpy":
        raise StepError(f"./dev suites {suite.name} needs PATTERN, --all or --record")
    return check(results, quick_pieces(results.site), QUICK_SIDES, options.jobs)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev suites",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("suite", choices=SUITES)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true")
    what.add_argument("--record", action="store_true")
    what.add_argument("pattern", nargs="?")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the child processes as well
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time, default 1")
    options = parser.parse_args()
    try:
        return 0 if dispatch(SUITES[options.suite], options) else 1
    except StepError as error:
        print(f"{options.suite}-suite: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
