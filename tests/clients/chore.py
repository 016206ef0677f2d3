"""Tests with libraries that share memory, switch greenlets, start workers: `./dev suites clients`.

    ./dev suites clients [ARGUMENT ...]    tests/clients and tests/clusters; ARGUMENT: of pytest
    ./dev suites clients --record          only the table of memrt, memray and tracemalloc

The tests run in the environment build/clients-venv with the libraries of requirements.txt.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "suites"))
import environment
from environment import ROOT

EXAMPLES = [
    f"tests/docs/test_examples.py::test_examples_work_as_written[docs/guide/{page}.md]"
    for page in ("exchange/arrow", "exchange/buffers", "services/clusters")
]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev suites clients",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="record the reports of three profilers about planted problems",
    )
    options, arguments = parser.parse_known_args()
    try:
        python = environment.clients()
    except environment.StepError as error:
        print(f"clients: {error}", file=sys.stderr)
        return 1
    if options.record:
        table = [python, "tests/clients/verdicts/profilers.py"]
        return subprocess.run(table, cwd=ROOT, check=False).returncode
    tests = ("tests/clients", "tests/clusters", *EXAMPLES)
    command = [python, "-m", "pytest", "-q", *tests, *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
