"""Build and test the wheels, the source distribution and the C library for musl.

Each wheel is built from the source distribution by compilers for an old C library, checked by
auditwheel and check-wheel-contents, and used on a bare Debian without a compiler. Two builds must
give the same bytes. The finished files are in build/wheels/dist.

No library replaces the tool: cibuildwheel needs containers, which not every machine has.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import musl_library
import system_rows
import wheel_audit
import wheel_builder
import wheel_smoke
from wheel_targets import TARGETS, WORK, X86_64, Target, step

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")


@dataclass(frozen=True)
class Row:
    """A line of the table at the end."""

    name: str
    outcome: str
    detail: str


def expect_equal_bytes(
    first: Path, source: Path, python: wheel_builder.Python, target: Target
) -> None:
    """Build a wheel again in another folder. Raises StepError if the bytes differ."""
    second = wheel_builder.wheel(source, python, target, turn="-again")
    if wheel_builder.digest(first) != wheel_builder.digest(second):
        raise wheel_builder.StepError(f"two builds differ: {first} and {second}")


def make_wheel(version: str, target: Target, source: Path, again: bool) -> str:
    """Build, check and use one wheel, and return a sentence for the table."""
    python = wheel_builder.find_python(version)
    if python is None:
        return "skipped: no such Python here"
    made = wheel_builder.wheel(source, python, target)
    if again:
        expect_equal_bytes(made, source, python, target)
    wheel = wheel_audit.repair(made, target)
    wheel_audit.check(wheel)
    return f"{wheel.name}, {wheel_smoke.run(wheel, python, target)}"


def make_quick_wheel(source: Path) -> str:
    """Build the wheel of the running Python twice, check it, and use it on this machine."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = wheel_builder.Python(version, sys.executable)
    made = wheel_builder.wheel(source, python, X86_64)
    expect_equal_bytes(made, source, python, X86_64)
    wheel = wheel_audit.repair(made, X86_64)
    wheel_audit.check(wheel)
    return f"{wheel.name}, {wheel_smoke.run_here(wheel)}"


def attempt(name: str, work) -> Row:
    """Do some work, and return the line for the table."""
    try:
        detail = work()
    except (wheel_builder.StepError, subprocess.CalledProcessError) as error:
        return Row(name, "FAILED", str(error))
    outcome, _, reason = detail.partition(": ")
    return Row(name, *(outcome, reason)) if outcome == "skipped" else Row(name, "passed", detail)


def rows(options: argparse.Namespace, source: Path):
    """Yield a row for each wheel and for the C library."""
    if options.quick:
        yield attempt("quick", lambda: make_quick_wheel(source))
        return
    for name in options.target or TARGETS:
        target = TARGETS[name]
        for version in options.python:
            again = version == options.python[0]
            yield attempt(
                f"Python {version}, {name}",
                lambda: make_wheel(version, target, source, again),  # noqa: B023 (called at once)
            )
    if not options.target:
        yield attempt("C library, musl", musl_library.test_musl)


def record(table: list[Row]) -> None:
    """Write the rows of wheels into the table of tested systems."""
    found = []
    for row in table:
        name, _, processor = row.name.partition(", ")
        if name.startswith("Python ") and row.outcome != "skipped":
            wheel, _, where = row.detail.partition(", ")
            python = name.removeprefix("Python ")
            result = f"passed, {wheel}" if row.outcome == "passed" else f"FAILED: {row.detail}"
            found.append(
                system_rows.System(
                    f"{where}, wheel", processor, python, "newest", "on", "smoke", result
                )
            )
    system_rows.record(found)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev wheels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--python", nargs="+", default=PYTHONS, metavar="VERSION")
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--record", action="store_true", help="write the results into the docs")
    parser.add_argument("--quick", action="store_true", help="one wheel, used on this machine")
    options = parser.parse_args()
    os.environ.setdefault("SOURCE_DATE_EPOCH", wheel_builder.commit_time())
    shutil.rmtree(WORK / "dist", ignore_errors=True)
    table = []
    for row in rows(options, wheel_builder.source_distribution()):
        step(f"{row.name}: {row.outcome}")
        table.append(row)
    width = max(len(row.name) for row in table)
    for row in table:
        print(f"{row.name:{width}}  {row.outcome:8} {row.detail}")
    if options.record:
        record(table)
    outcomes = {row.outcome for row in table}
    return 0 if "FAILED" not in outcomes and "passed" in outcomes else 1


if __name__ == "__main__":
    sys.exit(main())
