"""What the tests of installations share: programs of users, and commands that must succeed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CONSUMER = ROOT / "tests" / "install" / "consumer"
VERSION = re.search(r'"([0-9.]+)"', (ROOT / "api/include/memrt/version.h").read_text())[1]
EXPECTED = f"memrt {VERSION}: 1000 bytes live, then 0\n"
"""Output of the programs in CONSUMER."""


def run(*command: object, **environment: str) -> str:
    """Run a command and return its output. A failure shows the output and the error text."""
    result = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
