"""The Python reference is as the package is and misses nothing that is public."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import memrt
import memrt.testing
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "python_reference.py"
PAGE = ROOT / "docs" / "python-reference.md"
NAMES = [name for name in memrt.__all__ if not inspect.ismodule(getattr(memrt, name))]


def test_the_page_is_as_the_package_is():
    command = [sys.executable, SCRIPT, "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", [*NAMES, *memrt.cuda.__all__, *memrt.testing.__all__])
def test_the_page_has_every_public_name(name):
    assert f"### {name}\n" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", ["run", "report", "info", "stats"])
def test_the_page_has_every_command(verb):
    assert f"### python -m memrt {verb}\n" in PAGE.read_text(encoding="utf-8")
