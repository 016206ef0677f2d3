"""Programs that need more memory than their control group has.

Usage: python full_group.py [ROUNDS]

Print how often NumPy alone ends by SIGKILL, and how often the limit of memrt prevents the signal.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from limited_group import limited_group, run_inside

NUMPY = (sys.executable,)
MEMRT = (sys.executable, "-m", "memrt", "run", "--quiet", "--limit", "auto")

LINE = "    tables.append(np.ones(500_000))"
FILL = f"""
import numpy as np

tables = []
while len(tables) < 100:
{LINE}
print("filled")
"""
HANDLE = f"""
import numpy as np

tables = []
try:
    while len(tables) < 100:
    {LINE}
except MemoryError:
    total = sum(table.sum() for table in tables)
    assert total == 500_000 * len(tables)
    print("saved")
"""


def outcome(result: subprocess.CompletedProcess[str]) -> str:
    """Return how a program ended: by SIGKILL, by the MemoryError of LINE, or another way."""
    if result.returncode == -signal.SIGKILL:
        return "SIGKILL"
    refused = LINE.strip() in result.stderr and "MemoryError: " in result.stderr
    if result.returncode == 1 and refused:
        return "MemoryError at the line"
    return f"{result.returncode} {result.stdout}{result.stderr}".strip()


def outcomes(interpreter: Sequence[str], program: str, rounds: int) -> list[str]:
    """Run a program several times, each time in a new control group."""
    ends = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(program)
        for _ in range(rounds):
            with limited_group() as group:
                ends.append(outcome(run_inside(group, *interpreter, str(path))))
    return ends


PROGRAMS = {
    "NumPy alone": (NUMPY, FILL, "SIGKILL"),
    "limit of memrt": (MEMRT, FILL, "MemoryError at the line"),
    "limit of memrt, and a handler": (MEMRT, HANDLE, "0 saved"),
}


def run_rounds(rounds: int) -> bool:
    """Run all programs and print the outcomes. Returns whether every outcome is as expected."""
    passed = True
    for name, (interpreter, program, expected) in PROGRAMS.items():
        ends = outcomes(interpreter, program, rounds)
        print(f"{name}: {expected} in {ends.count(expected)} of {rounds} runs", flush=True)
        for other in sorted(set(ends) - {expected}):
            print(other)
            passed = False
    return passed


if __name__ == "__main__":
    sys.exit(not run_rounds(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
