"""Leaks found by the pytest plugin beside pytest-rerunfailures, which repeats failed tests."""

import subprocess
import sys

import pytest

TESTS = """
import numpy as np
import pytest

pytestmark = pytest.mark.memrt_no_leaks
kept = []

def test_twice():
    if len(kept) < 2:
        kept.append(np.ones(9))

def test_always():
    kept.append(np.ones(9))
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_leaking_test_is_repeated_and_fails_once(tmp_path, workers):
    (tmp_path / "test_leaks.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "--reruns=2", f"-n{workers}"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    assert "\n1 failed, 1 passed, 4 rerun in " in result.stdout, result.stdout
