"""The GPU chores, and the examples of docs/guide/exchange/cuda.md, with the driver of the test
machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import recording

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "tests" / "cuda" / "gpu_bench.py"
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n```output\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGE = ROOT / "docs" / "guide" / "exchange" / "cuda.md"
EXAMPLES = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))


@pytest.fixture
def run(machine):
    """Return a function that runs Python with arguments and this machine's driver, or a named
    driver.
    """

    def call(*arguments: object, driver: str | None = None) -> subprocess.CompletedProcess:
        name = driver or ("libcuda.so.1" if machine.is_real else machine.path)
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            env={**os.environ, "MEMRT_CUDA_DRIVER": name},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return call


@pytest.mark.parametrize(("code", "output"), EXAMPLES)
def test_cuda_page_example_gives_same_output_with_driver(run, code, output):
    result = run("-c", code)
    assert (result.stderr, result.stdout) == ("", output)


def test_cuda_page_has_examples():
    assert len(EXAMPLES) >= 4


def test_gpu_bench_measures_memrt_and_driver(run):
    result = run(BENCH, "--seconds", "0.001")
    assert (result.returncode, result.stderr) == (0, "")
    rows = result.stdout.splitlines()[1:]
    assert any(row.startswith("exchange") for row in rows)
    assert any("the driver by ctypes" in row for row in rows)
    assert all(float(row.split()[-1]) > 0 for row in rows)


def test_gpu_bench_without_driver_exits_with_reason(run):
    result = run(BENCH, driver="/no/such/libcuda.so.1")
    assert result.returncode == 2
    assert result.stdout.startswith("no GPU can be used here, so nothing was measured: ")


@pytest.mark.parametrize("chore", [["gpu"], ["bench", "gpu"]])
def test_gpu_chore_without_gpu_exits_with_reason(machine, chore):
    if machine.is_real:
        pytest.skip("this machine has a GPU")
    result = subprocess.run(
        [ROOT / "dev", *chore], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 2
    assert "no GPU can be used here, so nothing was run" in result.stderr


def test_recorder_counts_passed_tests_by_rule(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "device_name", lambda: "a device")
    recorder = recording.Recorder(tmp_path / "gpu.json")
    c6 = [pytest.mark.rule("C6").mark]
    for marks, when in ((c6, "call"), (c6, "call"), (c6, "setup"), ([], "call")):
        item = SimpleNamespace(user_properties=[], iter_markers=lambda name, marks=marks: marks)
        recorder.pytest_itemcollected(item)
        report = SimpleNamespace(
            user_properties=item.user_properties, when=when, passed=True, failed=False
        )
        recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish()
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert (found["device"], found["rules"]) == ("a device", {"C6": {"passed": 2}})
    assert any(version.startswith("numpy ") for version in found["versions"])


def test_recorder_writes_nothing_after_failure(tmp_path):
    recorder = recording.Recorder(tmp_path / "gpu.json")
    report = SimpleNamespace(user_properties=[], when="call", passed=False, failed=True)
    recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish()
    assert not (tmp_path / "gpu.json").exists()
