"""The Python reference matches the package and covers every public name."""

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
MODULES = (memrt, memrt.types, memrt.debug, memrt.telemetry, memrt.cuda, memrt.testing)
NAMES = [
    name
    for module in MODULES
    for name in module.__all__
    if not inspect.ismodule(getattr(module, name))
]


def test_python_reference_matches_the_package():
    command = [sys.executable, SCRIPT, "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", sorted(set(NAMES)))
def test_python_reference_has_every_public_name(name):
    assert f"### {name}\n" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", ["run", "report", "info", "stats"])
def test_python_reference_has_the_main_commands(verb):
    assert f"### python -m memrt {verb}\n" in PAGE.read_text(encoding="utf-8")
