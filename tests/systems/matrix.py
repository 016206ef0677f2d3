"""Run the Python tests on every pair of Python and NumPy that is installed or has wheels.

Usage: python tests/systems/matrix.py [--python 3.12] [--numpy 2.0] [--record] [pytest arguments]

Each Python gets a single wheel of memrt, which must work with all versions of NumPy in the list.
Wheels, environments, reports and logs are stored below build/matrix.

No library covers the pairs: nox makes environments, but knows neither the wheels of NumPy nor the
counts of tests.
"""

from __future__ import annotations

import argparse
import glob
import os
import platform
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import system_rows

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "suites"))
import steps  # noqa: E402  (a script has only its own folder in the search path)
from environment import TEST_PACKAGES  # noqa: E402
from steps import StepError  # noqa: E402

WORK = ROOT / "build" / "matrix"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
NUMPYS = {
    "1.26.4": "numpy==1.26.4",
    "2.0": "numpy==2.0.*",
    "2.2": "numpy==2.2.*",
    "2.4": "numpy==2.4.*",
    "newest": "numpy",
}


@dataclass
class Row:
    """The outcome of the tests for one pair of Python and NumPy."""

    python: str
    numpy: str
    outcome: str
    detail: str = ""


def run(name: str, *command: str | Path, check: bool = True) -> int:
    """Run a step with its log below WORK, as steps.run() does."""
    return steps.run(WORK / f"{name}.log", *command, check=check)


def works(python: str, version: str) -> bool:
    """Return True if the command is a Python of this version and can make virtual environments."""
    code = f"import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != {version!r})"
    result = subprocess.run([python, "-c", code], capture_output=True, check=False)
    return result.returncode == 0


def find_python(version: str) -> str | None:
    """Return an interpreter of a version: from pyenv, from the path, or the running interpreter.

    Returns None if there is no such interpreter.
    """
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    kept = sorted(glob.glob(f"{pyenv}/versions/{version}.*/bin/python"))
    candidates = [*kept, shutil.which(f"python{version}"), sys.executable]
    return next((path for path in candidates if path and works(path, version)), None)


def build_wheel(version: str, python: str) -> Path:
    """Build the wheel of memrt for one Python and return the path of the wheel."""
    folder = WORK / f"wheel-{version}"
    shutil.rmtree(folder, ignore_errors=True)
    run(f"wheel-{version}", python, "-m", "pip", "wheel", "--no-deps", "-w", folder, ROOT)
    return next(folder.glob("memrt-*.whl"))


def make_environment(name: str, python: str, requirement: str) -> Path | None:
    """Make an environment with a version of NumPy and return the path of its Python.

    Returns None if NumPy has no wheel for the Python.
    """
    folder = WORK / f"venv-{name}"
    inside = folder / "bin" / "python"
    run(f"venv-{name}", python, "-m", "venv", "--clear", folder)
    install = [inside, "-m", "pip", "install", "--only-binary=:all:"]
    if run(f"numpy-{name}", *install, requirement, check=False) != 0:
        return None
    return inside


def numpy_version(python: Path) -> str:
    code = "import numpy; print(numpy.__version__)"
    return subprocess.check_output([python, "-c", code], text=True).strip()


def count(report: Path) -> str:
    """Return the figures of a JUnit report as text, or "" if the report has no test."""
    suites = list(ElementTree.parse(report).iter("testsuite")) if report.exists() else []
    tests, failed, errors, skipped = (
        sum(int(suite.get(key, "0")) for suite in suites)
        for key in ("tests", "failures", "errors", "skipped")
    )
    if tests == 0:
        return ""
    return (
        f"{tests - failed - errors - skipped} passed, {failed + errors} failed, {skipped} skipped"
    )


def run_tests(name: str, python: Path, wheel: Path, arguments: list[str]) -> tuple[str, str]:
    """Run the Python tests in an environment, and return outcome and figures."""
    run(f"install-{name}", python, "-m", "pip", "install", wheel, *TEST_PACKAGES)
    report = WORK / f"report-{name}.xml"
    report.unlink(missing_ok=True)
    chosen = arguments or ["tests/python"]
    workers = ("-n", "auto", "--dist", "worksteal")
    command = [python, "-m", "pytest", "-q", *workers, f"--junit-xml={report}", *chosen]
    status = run(f"pytest-{name}", *command, check=False)
    figures = count(report)
    outcome = "passed" if status == 0 and figures else "FAILED"
    return outcome, figures or f"no test ran: see build/matrix/pytest-{name}.log"


def run_pair(version: str, python: str, wheel: Path, numpy: str, arguments: list[str]) -> Row:
    """Make the environment of one pair and run the tests in it."""
    name = f"{version}-{numpy}"
    inside = make_environment(name, python, NUMPYS[numpy])
    if inside is None:
        return Row(version, numpy, "skipped", f"NumPy has no wheel for Python {version}")
    found = numpy_version(inside)
    if numpy == "newest" and any(f"{found}.".startswith(f"{older}.") for older in NUMPYS):
        return Row(version, numpy, "skipped", f"newest version is {found}, already in a row")
    return Row(version, found, *run_tests(name, inside, wheel, arguments))


def run_python(version: str, numpys: list[str], arguments: list[str]) -> list[Row]:
    """Run the tests for all versions of NumPy with one Python, and return the rows."""
    python = find_python(version)
    if python is None:
        return [Row(version, "all", "skipped", f"Python {version} is not installed")]
    print(f"→ building the wheel for Python {version}", flush=True)
    wheel = build_wheel(version, python)
    rows = []
    for numpy in numpys:
        print(f"→ Python {version} with NumPy {numpy}", flush=True)
        try:
            rows.append(run_pair(version, python, wheel, numpy, arguments))
        except StepError as error:
            rows.append(Row(version, numpy, "FAILED", str(error)))
    return rows


def table(rows: list[Row]) -> str:
    """Format the rows as a text table with a heading."""
    lines = [f"{'Python':8}{'NumPy':10}{'outcome':10}"]
    lines += [f"{row.python:8}{row.numpy:10}{row.outcome:10}{row.detail}" for row in rows]
    return "\n".join(lines)


def record(rows: list[Row]) -> None:
    """Write the rows of pairs that were tested into the table of tested systems."""
    system = f"{platform.freedesktop_os_release()['PRETTY_NAME']}, wheel from this machine"
    system_rows.record(
        [
            system_rows.System(
                system, platform.machine(), row.python, row.numpy, "on", "Python", result(row)
            )
            for row in rows
            if row.outcome != "skipped"
        ]
    )


def result(row: Row) -> str:
    return system_rows.outcome(row.outcome == "passed", row.detail)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--python", choices=PYTHONS, action="append", help="test only this version of Python"
    )
    parser.add_argument(
        "--numpy", choices=NUMPYS, action="append", help="test only this version of NumPy"
    )
    parser.add_argument("--record", action="store_true", help="write the results into the docs")
    options, arguments = parser.parse_known_args()
    WORK.mkdir(parents=True, exist_ok=True)
    rows = []
    for version in options.python or PYTHONS:
        try:
            rows += run_python(version, options.numpy or list(NUMPYS), arguments)
        except StepError as error:
            rows.append(Row(version, "all", "FAILED", str(error)))
    print(table(rows))
    if options.record:
        record(rows)
    outcomes = {row.outcome for row in rows}
    return 0 if "FAILED" not in outcomes and "passed" in outcomes else 1


if __name__ == "__main__":
    sys.exit(main())
