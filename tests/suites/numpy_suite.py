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
import subprocess
import sys
from collections.abc import Sequence
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
    "--all`: on NumPy's default handler, and with `memrt.enable()` in release mode and in checking "
    "mode, each with caches and without. A difference is a test that does not end as on the "
    "default, a process that crashes or hangs included; each process shows by memrt's counters "
    "that its tests were on memrt. Tests that their projects call slow are left out."
)


def row(verdicts: Sequence[Verdict]) -> list[object]:
    """One part on all sides."""
    stock, *others = verdicts
    counts = [f"{n:,} {word}" for word, n in stock.outcomes.most_common()]
    made = min(verdict.used for verdict in others)
    return [stock.part, ", ".join(counts), *(len(v.unexpected) for v in others), made]


def record(results: Results, chosen: Sequence[Piece]) -> None:
    verdicts = judge(results, chosen, SIDES)
    by_part = {v.part: [w for w in verdicts if w.part == v.part] for v in verdicts}
    whole = [piece for piece in chosen if all(results.read(side, piece) for side in SIDES)]
    packages = ("numpy", "scipy", "scikit-image", "pytest", "python", "memrt")
    facts = {
        "versions": ", ".join(f"{name} {results.versions[name]}" for name in packages),
        "pieces with results on every side": f"{len(whole)} of {len(chosen)}",
        "tests on the default": sum(v.tests for v in verdicts if v.side is STOCK),
        "blocks made on memrt, all modes": sum(v.blocks for v in verdicts),
        "differences": sum(len(v.unexpected) for v in verdicts),
        "faults of a process, or a proof that lacks": sum(len(v.faults) for v in verdicts),
        **{f"expected to differ: {test}": reason for test, reason in EXPECTED.items()},
    }
    columns = ["part", "on the default", *(side.name for side in SIDES[1:]), "tests with blocks"]
    rows = [row(found) for found in by_part.values()]
    page.record("numpy-suite", "Other people's tests", ABOUT, facts, columns, rows)


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
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (default 1)")
    try:
        return 0 if dispatch(parser.parse_args()) else 1
    except StepError as error:
        print(f"numpy-suite: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
