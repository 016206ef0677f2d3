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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import musl_library
import musl_python
import system_rows
import wheel_audit
import wheel_builder
import wheel_smoke
from matrix import PYTHONS
from steps import StepError
from wheel_targets import TARGETS, WORK, X86_64, Target, step

FAILURES = (StepError, subprocess.CalledProcessError, OSError)


@dataclass(frozen=True)
class Row:
    """A line of the table at the end."""

    name: str
    outcome: str
    detail: str
    system: system_rows.System | None = None
    """Row of the record; None: nothing was tested."""


def expect_equal_bytes(
    first: Path, source: Path, python: wheel_builder.Python, target: Target
) -> None:
    """Build a wheel again in another folder. Raises StepError if the bytes differ."""
    second = wheel_builder.wheel(source, python, target, turn="-again")
    if wheel_builder.digest(first) != wheel_builder.digest(second):
        raise StepError(f"two builds differ: {first} and {second}")


def make_wheel(source: Path, python: wheel_builder.Python, target: Target, again: bool) -> Path:
    """Build and check one wheel, and return the finished wheel."""
    made = wheel_builder.wheel(source, python, target)
    if again:
        expect_equal_bytes(made, source, python, target)
    wheel = wheel_audit.repair(made, target, python)
    wheel_audit.check(wheel)
    return wheel


def find_python(version: str, target: Target) -> wheel_builder.Python | None:
    if target.libc == "musl":
        return musl_python.find(version)
    return wheel_builder.find_python(version)


def row_of_wheel(version: str, target: Target, source: Path, again: bool) -> Row:
    """Build, check and use one wheel."""
    name = f"Python {version}, {target.name}"
    where = None
    try:
        python = find_python(version, target)
        if python is None:
            return Row(name, "skipped", "no such Python here")
        where = wheel_smoke.system_of(python, target)
        wheel = make_wheel(source, python, target, again)
        numpy = wheel_smoke.run(wheel, python, target) if where else ""
    except FAILURES as error:
        return Row(
            name, "FAILED", str(error), record_row(where, version, target, f"FAILED: {error}")
        )
    if where is None:
        return Row(name, "built", f"{wheel.name}, not used: no such Python for this processor here")
    system = record_row(where, version, target, f"passed, NumPy {numpy}, {wheel.name}")
    return Row(name, "passed", f"{wheel.name}, {where}", system)


def record_row(
    where: str | None, version: str, target: Target, result: str
) -> system_rows.System | None:
    """Return the row of the record; None without a system."""
    if where is None:
        return None
    facts = (target.processor, version, "newest", "on", "smoke", result)
    return system_rows.System(f"{where}, wheel", *facts)


def row_of_quick_wheel(source: Path) -> Row:
    """Build the wheel of the running Python twice, check it, and use it on this machine."""
    python = wheel_builder.Python(wheel_smoke.THIS_VERSION, sys.executable)
    try:
        wheel = make_wheel(source, python, X86_64, again=True)
        return Row("quick", "passed", f"{wheel.name}, {wheel_smoke.run_here(wheel)}")
    except FAILURES as error:
        return Row("quick", "FAILED", str(error))


def row_of_musl() -> Row:
    try:
        return Row("C library, musl", "passed", musl_library.run_abi_tests())
    except FAILURES as error:
        return Row("C library, musl", "FAILED", str(error))


def rows(options: argparse.Namespace, source: Path) -> Iterator[Row]:
    """Yield a row for each wheel and for the C library."""
    if options.quick:
        yield row_of_quick_wheel(source)
        return
    targets = options.target or list(TARGETS)
    for target in map(TARGETS.__getitem__, targets):
        versions = options.python if target.libc == "gnu" else [musl_python.VERSION]
        for version in versions:
            yield row_of_wheel(version, target, source, again=version == versions[0])
    if "musl" in targets:
        yield row_of_musl()


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
        step(f"{row.name}: {row.outcome}, {row.detail}")
        table.append(row)
    width = max(len(row.name) for row in table)
    for row in table:
        print(f"{row.name:{width}}  {row.outcome:8} {row.detail}")
    if options.record:
        system_rows.record([row.system for row in table if row.system is not None])
    outcomes = {row.outcome for row in table}
    return 0 if "FAILED" not in outcomes and "passed" in outcomes else 1


if __name__ == "__main__":
    sys.exit(main())
