"""Numba on memrt, tested: the work behind `./dev numba`.

    ./dev numba             our tests, and the part of Numba's own that touches every helper
    ./dev numba PATTERN     Numba's own tests in classes with PATTERN in their names
    ./dev numba --all       all of Numba's leak-checked tests; takes hours, goes on where it stopped
    ./dev numba --matrix    our tests and a small part of Numba's on every version in matrix.json,
                            or on those that begin with the number that follows

Numba's own tests run on its own runtime and on memrt, and what they end in is compared. Results lie
under build/numba, those of Numba's own runtime for each set of versions; --all writes them into
docs/numba.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from rows import ROOT, Row, rows

sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "suites"))
import comparison
import environment
import matrix
from environment import StepError
from suite import CI_PART, Suite, run

WORK = ROOT / "build" / "numba"
PAGE = ROOT / "docs" / "numba.md"
SMALL_PART = ("test_nrt.*", "test_nrt_refct.*", "test_buffer_protocol.TestMemoryView")


def run_our_tests(python: Path) -> bool:
    command = [python, "-m", "pytest", "-q", "tests/numba", "tests/docs/test_examples.py"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def run_numbas_tests(suite: Suite, patterns: tuple[str, ...], jobs: int) -> comparison.Comparison:
    """Run what has no results yet, compare, and print the report."""
    pieces = suite.pieces(patterns)
    if not pieces:
        raise StepError(f"no class of Numba's leak-checked tests is called {' or '.join(patterns)}")
    run(suite, pieces, jobs)
    found = comparison.compare(suite, pieces)
    print(comparison.report(suite, found), flush=True)
    return found


def check_part(python: Path, jobs: int) -> bool:
    """Our tests and the part of Numba's that touches every helper."""
    ours = run_our_tests(python)
    suite = Suite(python, WORK)
    found = run_numbas_tests(suite, CI_PART, jobs)
    missing = comparison.missing_helpers(suite, found)
    if missing:
        print(f"no test touched these helpers: {', '.join(sorted(missing))}")
    return ours and found.is_good and not missing


def check_all(python: Path, jobs: int) -> bool:
    suite = Suite(python, WORK)
    found = run_numbas_tests(suite, ("*",), jobs)
    comparison.write_into(PAGE, comparison.report(suite, found))
    return found.is_good


def check_row(row: Row, jobs: int) -> bool:
    base = matrix.find_python(row.python)
    if base is None:
        raise StepError(f"Python {row.python} is not installed")
    matrix.WORK.mkdir(parents=True, exist_ok=True)
    wheel = matrix.build_wheel(row.python, base)
    python = environment.ensure(
        ROOT / "build" / f"numba-{row.numba}-venv", base, row.requirements(), wheel
    )
    ours = run_our_tests(python)
    return run_numbas_tests(Suite(python, WORK), SMALL_PART, jobs).is_good and ours


def check_matrix(version: str, jobs: int) -> bool:
    chosen = [row for row in rows() if row.numba.startswith(version)]
    if not chosen:
        raise StepError(f"matrix.json has no Numba {version}")
    verdicts = []
    for row in chosen:
        print(f"→ Numba {row.numba}, NumPy {row.numpy}, Python {row.python}", flush=True)
        try:
            verdicts.append(check_row(row, jobs))
        except (StepError, matrix.StepError) as error:
            print(error)
            verdicts.append(False)
    for row, verdict in zip(chosen, verdicts, strict=True):
        print(f"Numba {row.numba:8} {'passed' if verdict else 'FAILED'}")
    return all(verdicts)


def newest_python() -> Path:
    """Python of the environment with the newest row, on the Python and the wheel of .venv."""
    wheel = environment.newest(ROOT / "build" / "wheel")
    folder = ROOT / "build" / "numba-venv"
    return environment.ensure(folder, sys.executable, rows()[-1].requirements(), wheel)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev numba", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true")
    what.add_argument("--matrix", nargs="?", const="", metavar="VERSION")
    what.add_argument("pattern", nargs="?")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    options = parser.parse_args()
    try:
        return 0 if dispatch(options) else 1
    except StepError as error:
        print(f"numba: {error}", file=sys.stderr)
        return 1


def dispatch(options: argparse.Namespace) -> bool:
    if options.matrix is not None:
        return check_matrix(options.matrix, options.jobs)
    python = newest_python()
    if options.all:
        return check_all(python, options.jobs)
    if options.pattern:
        suite = Suite(python, WORK)
        return run_numbas_tests(suite, (f"*{options.pattern}*",), options.jobs).is_good
    return check_part(python, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
