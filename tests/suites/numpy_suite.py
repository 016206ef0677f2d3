"""NumPy's own tests on memrt: the work behind `./dev numpy-suite`.

    ./dev numpy-suite           the part that the gate runs, in two modes of memrt
    ./dev numpy-suite PATTERN   files of tests with PATTERN in their paths, in all modes
    ./dev numpy-suite --all     all of NumPy's, and parts of SciPy's and scikit-image's; writes what
                                came of it into docs/reliability.md; takes hours, goes on where it
                                stopped
    ./dev numpy-suite --record  write what there is of it into docs/reliability.md, and run nothing

The tests run on NumPy's default and on memrt, and what they end in is compared. Results lie under
build/numpy-suite: those of the default for each set of versions, those of memrt for each build.
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
    """A project after the other, and of each a side after the other."""
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
    "Tests of NumPy, SciPy and scikit-image as their packages ship them, by `./dev numpy-suite "
    "--all`: on NumPy's default handler, and with `memrt.enable()` in release mode, with caches "
    "and without, and in checking mode, which has none. A difference is a test that does not end "
    "as on the default, a process that crashes or hangs included; each process shows by memrt's "
    "counters that its tests were on memrt. Tests that their projects call slow are left out. A "
    "column has the differences of a mode."
)


def rows(verdicts: Sequence[Verdict], chosen: Sequence[Piece]) -> Iterator[list[object]]:
    """For each part what it ended in on the default, and the differences of each side.

    A side that has not run all of a part says of how much of it that is.
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
        **{f"of these made blocks on memrt, {side.name}": total(verdicts, side, "used")
           for side in SIDES[1:]},
        "blocks that memrt counted": sum(verdict.blocks for verdict in verdicts),
        "differences": sum(len(verdict.unexpected) for verdict in verdicts),
        "processes that crashed, hung or were not on memrt": sum(len(v.faults) for v in verdicts),
        **{f"expected to differ: {test}": reason for test, reason in EXPECTED.items()},
    }  # fmt: skip
    columns = ["part", "on the default", *(side.name for side in SIDES[1:])]
    title = "NumPy's own tests, and others'"
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
            raise StepError(f"no file of tests has {options.pattern!r} in its path")
        return check(results, chosen, SIDES, options.jobs)
    return check(results, quick_pieces(results.site), QUICK_SIDES, options.jobs)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev numpy-suite", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true")
    what.add_argument("--record", action="store_true")
    what.add_argument("pattern", nargs="?")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that its processes end, too
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (default 1)")
    try:
        return 0 if dispatch(parser.parse_args()) else 1
    except StepError as error:
        print(f"numpy-suite: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
