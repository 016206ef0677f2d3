"""Run `./dev test` in a bare system of each Debian release: `./dev suites distributions`.

    ./dev suites distributions               all systems of the list below
    ./dev suites distributions trixie        one release, with Debian's default Python
    ./dev suites distributions forky:3.15    one release, with another Python of the release

The last commit is cloned into the system, and its own ./dev installs all tools there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import debian_systems
import system_rows
from debian_systems import ROOT, SYSTEMS

SUITES = ("bookworm", "trixie", "forky", "forky:3.15")
PACKAGES = "ca-certificates git"
COUNTS = re.compile(r"^(\d+ (?:failed|passed).*?) in [\d.]+s", re.MULTILINE)
VERSIONS = "import sys, numpy; print('%d.%d' % sys.version_info[:2], numpy.__version__)"


def make(release: str, python: str) -> Path:
    """Make a bare system. `python` is a version, or empty for Debian's default Python."""
    if not python:
        return debian_systems.make(f"{release}-bare", release, PACKAGES)
    packages = f"{PACKAGES} python{python}-dev python{python}-venv"
    return debian_systems.make(f"{release}-python{python}", release, packages)


def run_tests(root: Path, python: str) -> tuple[bool, str]:
    """Run the tests of the last commit in a system. Returns success and pytest's counts."""
    shutil.rmtree(root / "root/memrt", ignore_errors=True)
    subprocess.run(["git", "clone", "-q", ROOT, root / "root/memrt"], check=True)
    log = SYSTEMS / f"{root.name}-test.log"
    command = ["bash", "-c", "cd /root/memrt && ./dev test < /dev/null"]
    variables = {"PYTHON": f"python{python}"} if python else {}
    with log.open("w") as output:
        status = subprocess.run(
            debian_systems.inside(root, command, **variables),
            stdout=output,
            stderr=output,
            check=False,
        ).returncode
    counts = COUNTS.findall(log.read_text(errors="replace"))
    return status == 0 and bool(counts), counts[-1] if counts else f"no test ran, see {log}"


def versions(root: Path) -> list[str]:
    """Return the versions of Python and NumPy that the tests used."""
    command = ["/root/memrt/.venv/bin/python", "-c", VERSIONS]
    result = subprocess.run(
        debian_systems.inside(root, command), capture_output=True, text=True, check=False
    )
    return result.stdout.split() or ["?", "?"]


def run_system(suite: str) -> system_rows.System:
    """Make a system and run the tests in it."""
    release, _, chosen = suite.partition(":")
    root = make(release, chosen)
    passed, counts = run_tests(root, chosen)
    python, numpy = versions(root)
    outcome = system_rows.outcome(passed, counts)
    return system_rows.System(
        f"Debian {release}", os.uname().machine, python, numpy, "on", "C and Python", outcome
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev suites distributions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE[:PYTHON]", help=f"default: {' '.join(SUITES)}"
    )
    parser.add_argument("--record", action="store_true", help="write the results into the docs")
    options = parser.parse_args()
    rows = []
    for suite in options.suites or SUITES:
        begin = time.monotonic()
        rows.append(row := run_system(suite))
        print(
            f"{row.system}, Python {row.python}: {row.result}, {time.monotonic() - begin:.0f} s",
            flush=True,
        )
    if options.record:
        system_rows.record(rows)
    return 1 if any(row.result.startswith("FAILED") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
