"""The rules of exchange list the existing tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "exchange_reference.py"


def test_exchange_reference_matches_the_rules_and_tests():
    command = [sys.executable, SCRIPT, "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
