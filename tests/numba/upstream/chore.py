"""Test Numba on memrt: the work behind `./dev suites numba`.

    ./dev suites numba             our tests without slow ones, and the part of Numba's own tests
                                   that uses every helper
    ./dev suites numba PATTERN     Numba's own tests in classes with PATTERN in their names
    ./dev suites numba --all       our slow tests, and all of Numba's own tests; takes hours;
                                   continues after an interruption; records the result in
                                   docs/reliability.md
    ./dev suites numba --matrix    our tests and a small part of Numba's tests on every version in
                                   matrix.json, or on the versions that begin with the given number
    ./dev suites numba --refprune  Numba's own tests only: the part, a PATTERN, --all or --matrix,
                                   with memrt's refcount pruner in place of the pass of llvmlite
    ./dev suites numba --every N   each N-th piece, of at most 25 tests, of a PATTERN, of
                                   --refprune or of --all
    ./dev suites numba --free-threaded
                                   the part on CPython 3.14 with the GIL off, three times on each
                                   runtime, and our tests
    ./dev suites numba --launches  count the instructions of launches of jitted functions, for
                                   docs/decisions/0030-policies-without-the-gil.md

Numba's own tests run on Numba's runtime and on memrt, and the outcomes are compared. Without
arguments, and with --all, tests that pass on memrt do not run on Numba's runtime. Results lie under
build/numba. Results of Numba's runtime are kept per set of versions, results of memrt per build of
memrt.

No library compares two runtimes on one suite: tox and nox only make environments.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from rows import ROOT, TOOLS, Row, rows

sys.path.insert(0, str(ROOT / "tests" / "systems"))
sys.path.insert(0, str(ROOT / "tests" / "suites"))
sys.path.insert(0, str(ROOT / "tests" / "reliability"))
import comparison
import environment
import free_threaded
import matrix
import page
from environment import StepError
from suite import CI_PART, Suite, passed, run

WORK = ROOT / "build" / "numba"
IMPORT = re.compile(r"^import numba$", re.MULTILINE)
SMALL_PART = ("test_nrt.*", "test_nrt_refct.*", "test_buffer_protocol.TestMemoryView")


def numba_examples() -> list[str]:
    """Return the tests of the pages that need Numba. ./dev test runs the other pages."""
    pages = [page for page in sorted(ROOT.glob("docs/**/*.md")) if IMPORT.search(page.read_text())]
    test = "tests/docs/test_examples.py::test_examples_work_as_written"
    return [f"{test}[{page.relative_to(ROOT)}]" for page in pages]


def run_our_tests(python: Path, jobs: int, chosen: str = "slow or not slow") -> bool:
    """Run the tests that a mark expression chooses, and the examples of the documentation."""
    limit = "timeout=900"  # a test may wait 300 s for each child process
    options = ("-q", "-n", str(jobs), "--dist", "worksteal", "-o", limit)
    codes = [
        subprocess.run([python, "-m", "pytest", *options, *tests], cwd=ROOT, check=False).returncode
        for tests in (["-m", chosen, "tests/numba"], numba_examples())
    ]
    return not any(codes)


def run_numbas_tests(
    suite: Suite, patterns: tuple[str, ...], jobs: int, every: int = 1, quick: bool = False
) -> comparison.Comparison:
    """Run the pieces without results, compare all pieces, and print the report.

    With `quick`, pieces whose tests all pass on memrt do not run on Numba's runtime.
    """
    pieces = suite.pieces(patterns)[::every]
    if not pieces:
        raise StepError(f"no class of Numba's tests matches {' or '.join(patterns)}")
    if quick:
        run(suite, pieces, jobs, ("memrt",))
    left = [each for each in pieces if not (quick and passed(suite.results("memrt", each)))]
    run(suite, left, jobs)
    found = comparison.compare(suite, pieces)
    print(comparison.report(suite, found), flush=True)
    return found


def check_part(python: Path, jobs: int) -> bool:
    """Run our tests without slow ones, and the part of Numba's tests that uses every helper."""
    ours = run_our_tests(python, jobs, "not slow")
    suite = Suite(python, WORK)
    found = run_numbas_tests(suite, CI_PART, jobs, quick=True)
    missing = comparison.missing_helpers(suite, found)
    if missing:
        print(f"helpers without a test: {', '.join(sorted(missing))}")
    return ours and found.is_good and not missing


ABOUT = """Tests of Numba for the CPU, by `./dev suites numba --all`. The tests run on memrt,
in pieces of at most 25 tests of a class. A piece with another outcome than "ok" also runs on
Numba's own runtime. Each process, including children, verifies at exit that Numba's calls reached
memrt. A difference is a test with another outcome on memrt. With `--every N`, each N-th piece
ran."""


def check_all(python: Path, jobs: int, every: int) -> bool:
    """Run our slow tests and each N-th piece of Numba's suite, and record the result."""
    ours = run_our_tests(python, jobs, "slow")
    suite = Suite(python, WORK)
    found = run_numbas_tests(suite, ("*",), jobs, every, quick=True)
    facts = {
        "versions": ", ".join(f"{name} {version}" for name, version in suite.versions.items()),
        "tests": found.tests,
        "tests of the whole suite": sum(len(piece.tests) for piece in suite.pieces(("*",))),
        "processes on memrt": found.processes,
        "blocks counted by memrt": found.blocks,
        "differences": len(found.differences),
        "pieces without proof": len(found.unproven),
    }
    columns = ("outcome", "on Numba's runtime", "on memrt")
    rows = comparison.outcome_rows(found)
    page.record("suites/numba", "Tests of Numba", ABOUT, facts, columns, rows)
    return ours and found.is_good


def check_free_threaded(jobs: int) -> bool:
    """Run our tests, and the part of Numba's tests three times on each runtime, without the GIL."""
    interpreter = free_threaded.Interpreter("3.14", races=False)
    interpreter.build()
    interpreter.make_environment()
    requirements = [f"numba=={rows()[-1].numba}", "numpy", *TOOLS]
    folder = ROOT / "build" / "numba-free-threaded-venv"
    python = environment.ensure(
        folder, interpreter.program, requirements, interpreter.build_wheel()
    )
    os.environ["PYTHON_GIL"] = "0"
    good = [run_our_tests(python, jobs)]
    for turn in (1, 2, 3):
        print(f"→ turn {turn} of 3", flush=True)
        suite = Suite(python, WORK / f"free-threaded-{turn}")
        good.append(run_numbas_tests(suite, CI_PART, jobs).is_good)
    return all(good)


def count_launches(python: Path) -> bool:
    """Count the instructions of launches by callgrind. Return whether the count succeeded."""
    command = [python, ROOT / "tests" / "bench" / "launches.py"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def check_row(row: Row, options: argparse.Namespace) -> bool:
    base = matrix.find_python(row.python)
    if base is None:
        raise StepError(f"Python {row.python} is not installed")
    matrix.WORK.mkdir(parents=True, exist_ok=True)
    wheel = matrix.build_wheel(row.python, base)
    python = environment.ensure(
        ROOT / "build" / f"numba-{row.numba}-venv", base, row.requirements(), wheel
    )
    ours = options.refprune or run_our_tests(python, options.jobs)
    suite = Suite(python, WORK, options.refprune)
    return run_numbas_tests(suite, SMALL_PART, options.jobs).is_good and ours


def check_matrix(options: argparse.Namespace) -> bool:
    chosen = [row for row in rows() if row.numba.startswith(options.matrix)]
    if not chosen:
        raise StepError(f"matrix.json has no Numba {options.matrix}")
    verdicts = []
    for row in chosen:
        print(f"→ Numba {row.numba}, NumPy {row.numpy}, Python {row.python}", flush=True)
        try:
            verdicts.append(check_row(row, options))
        except StepError as error:
            print(error)
            verdicts.append(False)
    for row, verdict in zip(chosen, verdicts, strict=True):
        print(f"Numba {row.numba:8} {'passed' if verdict else 'FAILED'}")
    return all(verdicts)


def newest_python() -> Path:
    """Return the Python of an environment with the newest row and the newest wheel.

    The environment is based on the Python that runs this program.
    """
    wheel = environment.newest(ROOT / "build" / "wheel")
    folder = ROOT / "build" / "numba-venv"
    return environment.ensure(folder, sys.executable, rows()[-1].requirements(), wheel)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev suites numba",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true")
    what.add_argument("--matrix", nargs="?", const="", metavar="VERSION")
    what.add_argument("--free-threaded", action="store_true")
    what.add_argument("--launches", action="store_true")
    what.add_argument("pattern", nargs="?")
    parser.add_argument("--refprune", action="store_true")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    options = parser.parse_args()
    try:
        return 0 if dispatch(options) else 1
    except StepError as error:
        print(f"numba: {error}", file=sys.stderr)
        return 1


def dispatch(options: argparse.Namespace) -> bool:
    if options.matrix is not None:
        return check_matrix(options)
    if options.free_threaded:
        return check_free_threaded(options.jobs)
    python = newest_python()
    if options.launches:
        return count_launches(python)
    if options.refprune or options.pattern:
        patterns = (f"*{options.pattern}*",) if options.pattern else CI_PART
        suite = Suite(python, WORK, options.refprune)
        chosen = ("*",) if options.all else patterns
        return run_numbas_tests(suite, chosen, options.jobs, options.every).is_good
    if options.all:
        return check_all(python, options.jobs, options.every)
    return check_part(python, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
