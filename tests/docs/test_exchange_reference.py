"""The rules of exchange stand with the tests that there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "exchange_reference.py"


def test_each_rule_has_tests_and_the_page_is_as_they_are():
    command = [sys.executable, SCRIPT, "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
