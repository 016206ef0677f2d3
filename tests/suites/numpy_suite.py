"""Run NumPy's own tests on memrt: the work behind `./dev suites numpy`.

    ./dev suites numpy           the part that the gate runs, in two modes of memrt
    ./dev suites numpy PATTERN   test files with PATTERN in their paths, in all modes
    ./dev suites numpy --all     all selected parts of NumPy, SciPy and scikit-image; writes the
                                outcomes into docs/reliability.md; takes hours, and continues
                                after an interruption
    ./dev suites numpy --record  write the existing results into docs/reliability.md, run no tests

The tests run on NumPy's default handler and on memrt, and the outcomes are compared. Results lie
under build/numpy-suite. Results of the default are kept per set of versions, results of memrt per
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
from pathlib import Path

import environment
from environment import ROOT, StepError
from expected import EXPECTED
from pieces import run_all
from projects import Piece, pieces, quick_pieces
from results import Results
from sides import QUICK_SIDES, SIDES, STOCK, Side
from verdict import Verdict, judge, report

sys.path.append(str(ROOT / "tests" / "reliability"))
import page

WORK = ROOT / "build" / "numpy-suite"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def make_results() -> Results:
    requirements = REQUIREMENTS.read_text(encoding="utf-8").split()
    wheel = environment.newest(ROOT / "build" / "wheel")
    python = environment.ensure(WORK / "venv", sys.executable, requirements, wheel, "numpy-suite")
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.check_output([python, "-c", where], text=True).strip()
    return Results(python, Path(site), WORK)


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
    "Tests in the packages of NumPy, SciPy and scikit-image, by `./dev suites numpy --all`. The "
    "tests run on NumPy's default handler, and with `memrt.enable()` in release mode with caches, "
    "in release mode without caches, and in checking mode without caches. A difference is a test "
    "with another outcome than on the default handler, or a process that crashed or hung. The "
    "counters of memrt prove that the tests of each process ran on memrt. Tests marked as slow by "
    "the projects are left out. The column of a mode has the number of differences."
)


def rows(verdicts: Sequence[Verdict], chosen: Sequence[Piece]) -> Iterator[list[object]]:
    """Yield a row per part: the outcomes on the default, and the differences of each side.

    If a side has not run the whole part, its cell also gives the number of tests that ran.
    """
    pieces_of = Counter(piece.part for piece in chosen)
    found = {(verdict.part, verdict.side): verdict for verdict in verdicts}
    for part, wanted in pieces_of.items():
        if (part, STOCK) in found:
            ended = found[part, STOCK].outcomes.most_common()
            sides = (found.get((part, side)) for side in SIDES[1:])
            yield [
                part,
                ", ".join(f"{count:,} {word}" for word, count in ended),
                *(differences_of(verdict, wanted) for verdict in sides),
            ]


def differences_of(verdict: Verdict | None, wanted: int) -> str:
    if verdict is None:
        return "not run"
    differences = str(len(verdict.unexpected) + len(verdict.faults))
    return differences if verdict.pieces == wanted else f"{differences} in {verdict.tests:,} tests"


def record(results: Results, chosen: Sequence[Piece]) -> None:
    verdicts = judge(results, chosen, SIDES)
    packages = ("numpy", "scipy", "scikit-image", "pytest", "python", "memrt", "build")
    facts = {
        "versions": ", ".join(f"{name} {results.versions[name]}" for name in packages),
        **{f"tests, {side.name}": total(verdicts, side, "tests") for side in SIDES},
        **{f"tests with blocks on memrt, {side.name}": total(verdicts, side, "used")
           for side in SIDES[1:]},
        "blocks counted by memrt": sum(verdict.blocks for verdict in verdicts),
        "differences": sum(len(verdict.unexpected) for verdict in verdicts),
        "processes that crashed, hung or did not use memrt": sum(len(v.faults) for v in verdicts),
        **{f"expected difference, {test}": reason for test, reason in EXPECTED.items()},
    }  # fmt: skip
    columns = ["part", "default handler", *(side.name for side in SIDES[1:])]
    title = "Tests of NumPy, SciPy and scikit-image"
    page.record("numpy-suite", title, ABOUT, facts, columns, rows(verdicts, chosen))


def total(verdicts: Sequence[Verdict], side: Side, figure: str) -> int:
    return sum(getattr(verdict, figure) for verdict in verdicts if verdict.side is side)


def dispatch(options: argparse.Namespace) -> bool:
    results = make_results()
    if options.record:
        record(results, pieces(results.site))
        return True
    if options.all:
        good = check(results, pieces(results.site), SIDES, options.jobs)
        record(results, pieces(results.site))
        return good
    if options.pattern:
        chosen = pieces(results.site, options.pattern)
        if not chosen:
            raise StepError(
                f"PATTERN must be part of the path of a test file, got {options.pattern!r}"
            )
        return check(results, chosen, SIDES, options.jobs)
    return check(results, quick_pieces(results.site), QUICK_SIDES, options.jobs)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev suites numpy",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true")
    what.add_argument("--record", action="store_true")
    what.add_argument("pattern", nargs="?")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the child processes as well
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time, default 1")
    try:
        return 0 if dispatch(parser.parse_args()) else 1
    except StepError as error:
        print(f"numpy-suite: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
