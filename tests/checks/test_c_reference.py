"""The C reference is as the headers are and misses no slot of the table."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "c-reference.md"
SLOT = re.compile(r"\(\*(\w+)\)\(", re.MULTILINE)


def test_the_page_is_as_the_headers_are():
    command = [sys.executable, ROOT / "docs" / "c_reference.py", "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("slot", SLOT.findall((ROOT / "api/include/memrt/external.h").read_text()))
def test_the_page_has_every_function_of_the_table(slot):
    assert f"#### {slot}\n" in PAGE.read_text(encoding="utf-8")
