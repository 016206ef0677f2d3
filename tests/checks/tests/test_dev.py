"""Test the command ./dev: test folders, and the lock of its commands."""

import re
import shutil
import subprocess
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


def test_second_dev_command_waits_for_the_first(tmp_path: Path):
    shutil.copy(ROOT / "dev", tmp_path)
    probe = (
        'cd "$1"; source ./dev help >/dev/null; exec 9<dev; acquire; acquire; release;'
        " echo begin >>order; sleep 0.2; echo end >>order; release"
    )
    runs = [subprocess.Popen(["bash", "-c", probe, "bash", tmp_path]) for _ in range(4)]
    assert [run.wait() for run in runs] == [0] * 4
    assert (tmp_path / "order").read_text().split() == ["begin", "end"] * 4
