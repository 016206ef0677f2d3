"""Test the time limit of tests, with and without the GIL, in one process and under xdist."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CONFTEST = ROOT / "tests" / "conftest.py"

# ctypes calls functions of a PyDLL with the GIL held. The second lock blocks, also after a signal.
HANGING = {
    "without the GIL": "import threading\ndef test_hangs(): threading.Event().wait()\n",
    "with the GIL": """
import ctypes
def test_hangs():
    mutex = ctypes.create_string_buffer(64)
    for _ in range(2):
        ctypes.PyDLL(None).pthread_mutex_lock(mutex)
""",
}
PASSING = "def test_passes(): assert True\n"
LONGER = """
import pytest, time
@pytest.mark.timeout(60)
def test_longer():
    end = time.monotonic() + 1
    while time.monotonic() < end: pass
"""
ALONE, PARALLEL = (), ("-n", "2", "--dist", "worksteal")
LIMIT = ("-o", "timeout=3")
WATCHDOG = ("-o", "timeout=3", "-o", "watchdog_grace=1")


def run_pytest(folder: Path, bodies: list[str], *options: str) -> subprocess.CompletedProcess:
    shutil.copy(CONFTEST, folder)
    (folder / "pytest.ini").write_text("[pytest]\ntimeout_method = signal\n")
    for number, body in enumerate(bodies):
        (folder / f"test_{number}.py").write_text(body)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, folder]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


@pytest.mark.parametrize("options", [ALONE, PARALLEL], ids=["alone", "parallel"])
def test_hanging_test_fails_and_other_tests_run(tmp_path, options):
    result = run_pytest(tmp_path, [HANGING["without the GIL"], PASSING], *LIMIT, *options)
    assert result.returncode == 1
    assert "1 failed, 1 passed" in result.stdout
    assert "Timeout" in result.stdout


def test_hanging_test_with_the_gil_ends_its_process(tmp_path):
    result = run_pytest(tmp_path, [HANGING["with the GIL"], PASSING], *WATCHDOG)
    assert result.returncode == 1
    assert "Timeout" in result.stderr
    assert "in test_hangs" in result.stderr


def test_hanging_test_with_the_gil_fails_under_xdist(tmp_path):
    result = run_pytest(tmp_path, [HANGING["with the GIL"], PASSING], *WATCHDOG, *PARALLEL)
    assert result.returncode == 1
    assert "1 failed, 1 passed" in result.stdout
    assert "in test_hangs" in result.stderr


def test_timeout_mark_gives_a_test_a_longer_limit(tmp_path):
    result = run_pytest(tmp_path, [LONGER], "-o", "timeout=0.5")
    assert result.returncode == 0, result.stdout + result.stderr


def test_watchdog_works_without_pytest_timeout(tmp_path):
    hidden = (
        "import importlib.util as util, sys\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'pytest_timeout' else "
        "find(name, *rest)\n"
        "import pytest\n"
        "sys.exit(pytest.main(sys.argv[1:]))\n"
    )
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 1\nwatchdog_grace = 1\n")
    (tmp_path / "test_it.py").write_text(HANGING["without the GIL"])
    command = [sys.executable, "-c", hidden, "-q", "--strict-config", "-p", "no:timeout", tmp_path]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert result.returncode == 1
    assert "in test_hangs" in result.stderr
