"""Test that a skip fails the run only in CI, and only if the reason is not listed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[2] / "conftest.py"
RUN_TIME = 'import pytest\ndef test_it(): pytest.skip("no such machine")\n'
COLLECTION = 'import pytest\npytest.skip("no such machine", allow_module_level=True)\n'


def run_pytest(folder: Path, body: str, ci: str, allowed: str = "") -> subprocess.CompletedProcess:
    """Run a suite of two test files: `body`, and a file with a passing test."""
    shutil.copy(CONFTEST, folder)
    (folder / "pytest.ini").write_text(f"[pytest]\nallowed_skips =\n    {allowed}\n")
    (folder / "test_skipping.py").write_text(body)
    (folder / "test_passing.py").write_text("def test_it(): assert True\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "CI": ci}
    )


@pytest.mark.parametrize("body", [RUN_TIME, COLLECTION], ids=["run", "collection"])
def test_unlisted_skip_fails_in_ci(tmp_path, body):
    result = run_pytest(tmp_path, body, ci="true")
    assert result.returncode == 1
    assert "no such machine" in result.stdout


def test_listed_skip_passes_in_ci(tmp_path):
    assert run_pytest(tmp_path, RUN_TIME, ci="true", allowed="no such .*").returncode == 0


def test_skip_passes_outside_ci(tmp_path):
    assert run_pytest(tmp_path, RUN_TIME, ci="").returncode == 0
