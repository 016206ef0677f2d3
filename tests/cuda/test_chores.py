"""The chores for a GPU, and the examples of docs/cuda.md, where the driver is the one at hand."""

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
EXAMPLES = EXAMPLE.findall((ROOT / "docs" / "cuda.md").read_text(encoding="utf-8"))


@pytest.fixture
def run(machine):
    """Runs Python with arguments and this machine's driver, or the one named."""

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
def test_an_example_says_with_a_driver_what_it_says_without(run, code, output):
    result = run("-c", code)
    assert (result.stderr, result.stdout) == ("", output)


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


def test_the_bench_measures_what_memrt_does_and_what_the_driver_does(run):
    result = run(BENCH, "--seconds", "0.001")
    assert (result.returncode, result.stderr) == (0, "")
    rows = result.stdout.splitlines()[1:]
    assert any(row.startswith("exchange") for row in rows)
    assert any("the driver by ctypes" in row for row in rows)
    assert all(float(row.split()[-1]) > 0 for row in rows)


def test_the_bench_says_when_there_is_nothing_to_measure(run):
    result = run(BENCH, driver="/no/such/libcuda.so.1")
    assert result.returncode == 2
    assert result.stdout.startswith("no GPU can be used here, so nothing was measured: there is no")


@pytest.mark.parametrize("chore", [["gpu-test"], ["bench", "gpu"]])
def test_a_chore_says_when_there_is_no_gpu(machine, chore):
    if machine.is_real:
        pytest.skip("this machine has a GPU")
    result = subprocess.run(
        [ROOT / "dev", *chore], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 2
    assert "no GPU can be used here, so nothing was run" in result.stderr


def test_what_passed_on_a_gpu_is_recorded_by_rule(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "device_name", lambda: "a device")
    recorder = recording.Recorder(tmp_path / "gpu.json")
    for name, when in (("c06_x", "call"), ("c06_y[1]", "call"), ("c06_x", "setup"), ("x", "call")):
        report = SimpleNamespace(nodeid=f"a.py::test_{name}", when=when, passed=True, failed=False)
        recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish()
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert (found["device"], found["rules"]) == ("a device", {"C6": {"passed": 2}})
    assert any(version.startswith("numpy ") for version in found["versions"])


def test_a_run_with_a_failure_is_not_recorded(tmp_path):
    recorder = recording.Recorder(tmp_path / "gpu.json")
    report = SimpleNamespace(nodeid="a.py::test_c06_x", when="call", passed=False, failed=True)
    recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish()
    assert not (tmp_path / "gpu.json").exists()
