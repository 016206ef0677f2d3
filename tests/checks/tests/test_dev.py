"""Test that ./dev runs every test folder of pyproject.toml."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def folders(name: str) -> list[str]:
    """Return the items of an array of ./dev."""
    text = (ROOT / "dev").read_text(encoding="utf-8")
    return re.search(rf"^readonly {name}=\(([^)]*)\)", text, re.MULTILINE)[1].split()


def test_test_and_check_run_each_folder_once(pytestconfig: pytest.Config):
    run = folders("OWN_TESTS") + folders("TOOL_TESTS")
    assert sorted(run) == sorted(pytestconfig.getini("testpaths"))
