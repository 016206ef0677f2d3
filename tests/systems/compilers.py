"""Run the C tests with each compiler of Debian's releases: `./dev suites compilers`.

    ./dev suites compilers                 all compilers
    ./dev suites compilers gcc-15 clang-21 some compilers
    ./dev suites compilers --record        all compilers, and write the results into the docs

A bare system of each release has the compilers. The library and its tests are built from the last
commit, and run in the system. The compiler may warn; warnings are counted.

No library does this: tox and nox choose versions of Python, and no compilers.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import debian_systems
from debian_systems import ROOT, SYSTEMS

sys.path.append(str(ROOT / "tests" / "reliability"))
import page

COMPILERS = {
    "bookworm": ("gcc-11", "gcc-12", "clang-14", "clang-15", "clang-16"),
    "trixie": ("gcc-13", "gcc-14", "clang-17", "clang-18", "clang-19"),
    "forky": ("gcc-15", "gcc-16", "clang-21", "clang-22"),
}
TOOLS = (
    "ca-certificates cmake ninja-build pkg-config check libatomic-ops-dev elfutils "
    "systemtap-sdt-dev valgrind libc6-dev make"
)
SUMMARY = re.compile(r"^(\d+)% tests passed, (\d+) tests failed out of (\d+)", re.MULTILINE)
WARNING = re.compile(r": warning: .*\[-W[\w-]+", re.MULTILINE)
ABOUT = (
    "The C tests with each compiler, in bare systems of Debian's releases, by "
    "`./dev suites compilers --record`. Warnings come from -Wall -Wextra -Wconversion -Wshadow "
    "-Wundef for the library and the tests."
)
COLUMNS = ("compiler", "system", "C library", "warnings", "C tests")


@dataclass(frozen=True)
class Result:
    """The outcome of the tests with one compiler."""

    compiler: str
    release: str
    libc: str
    warnings: str
    tests: str

    @property
    def passed(self) -> bool:
        return self.tests.endswith("passed")


def packages(release: str) -> str:
    """Return the packages of a system: tools and compilers."""
    names = [name.replace("gcc", "g++") for name in COMPILERS[release]]
    return " ".join([TOOLS, "g++", *COMPILERS[release], *(n for n in names if "g++" in n)])


def inside(root: Path, log: Path, *command: object) -> int:
    """Run a command in a system, append the output to a log, and return the exit status."""
    with log.open("a") as output:
        return subprocess.run(
            debian_systems.inside(root, command), stdout=output, stderr=output, check=False
        ).returncode


def first_line(root: Path, *command: object) -> str:
    done = subprocess.run(
        debian_systems.inside(root, command), capture_output=True, text=True, check=False
    )
    return (done.stdout.splitlines() or ["?"])[0]


def run_compiler(release: str, root: Path, compiler: str) -> Result:
    """Build the library and the C tests with a compiler, and run the tests."""
    log = SYSTEMS / f"{compiler}.log"
    log.unlink(missing_ok=True)
    plus = compiler.replace("gcc", "g++").replace("clang", "clang++")
    folder = f"/root/{compiler}"
    shutil.rmtree(root / folder.lstrip("/"), ignore_errors=True)
    version = first_line(
        root, compiler, "-dumpfullversion" if "gcc" in compiler else "-dumpversion"
    )
    libc = first_line(root, "ldd", "--version").rpartition(" ")[2]
    configure = ("cmake", "-S", "/root/memrt", "-B", folder, "-G", "Ninja", "-DMEMRT_TESTS=ON",
                 "-DMEMRT_DEBUG=ON", f"-DCMAKE_C_COMPILER={compiler}",
                 f"-DCMAKE_CXX_COMPILER={plus}")  # fmt: skip
    outcome = "does not build"
    if inside(root, log, *configure) == 0 and inside(root, log, "ninja", "-C", folder) == 0:
        jobs = (os.cpu_count() or 1) + 1
        status = inside(root, log, "ctest", "--test-dir", folder, "--output-on-failure",
                        "--no-tests=error", "-j", jobs)  # fmt: skip
        found = SUMMARY.search(log.read_text(errors="replace"))
        outcome = "no test ran"
        if found is not None:
            failed, every = int(found[2]), int(found[3])
            outcome = f"{every} passed" if status == 0 else f"{failed} of {every} FAILED"
    warnings = len(set(WARNING.findall(log.read_text(errors="replace"))))
    kind = compiler.partition("-")[0]
    return Result(f"{kind} {version}", f"Debian {release}", f"glibc {libc}", str(warnings), outcome)


def run_release(release: str, chosen: list[str]) -> list[Result]:
    """Run some compilers of a release, or all."""
    wanted = [name for name in COMPILERS[release] if not chosen or name in chosen]
    if not wanted:
        return []
    root = debian_systems.make(f"{release}-compilers", release, packages(release))
    shutil.rmtree(root / "root/memrt", ignore_errors=True)
    subprocess.run(["git", "clone", "-q", ROOT, root / "root/memrt"], check=True)
    results = []
    for compiler in wanted:
        begin = time.monotonic()
        results.append(result := run_compiler(release, root, compiler))
        print(f"{result.compiler}, {result.release}, {result.libc}: {result.tests}, "
              f"{result.warnings} warnings, {time.monotonic() - begin:.0f} s",
              flush=True)  # fmt: skip
    return results


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev suites compilers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = [name for names in COMPILERS.values() for name in names]
    parser.add_argument("compilers", nargs="*", metavar="COMPILER", help=f"of {' '.join(known)}")
    parser.add_argument("--record", action="store_true", help="write the results into the docs")
    options = parser.parse_args()
    unknown = [name for name in options.compilers if name not in known]
    if unknown:
        parser.error(f"COMPILER must be one of {' '.join(known)}, got {unknown[0]}")
    results = [each for release in COMPILERS for each in run_release(release, options.compilers)]
    if options.record:
        rows = [[r.compiler, r.release, r.libc, r.warnings, r.tests] for r in results]
        page.record("systems/compilers", "Compilers", ABOUT, columns=COLUMNS, rows=rows)
    return 0 if results and all(result.passed for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
