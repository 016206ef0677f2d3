"""Test that fuzzing starts from existing inputs, prints finds, and fails for idle fuzzers."""

from __future__ import annotations

import subprocess

import fuzz
import pytest

GOOD = """#!/bin/sh
echo '#5 DONE cov: 40 ft: 50'
echo 'stat::number_of_executed_units: 5'
"""
BAD = """#!/bin/sh
echo "table.c:1: does not hold: $MEMRT_CACHE"
echo "Test unit written to /there/crash-1"
exit 77
"""
IDLE = """#!/bin/sh
exit 0
"""
HANGS = """#!/bin/sh
printf 'begun \\377'
exec sleep 1000
"""
JOB = fuzz.Job("table", "MEMRT_CACHE=1", 1)


@pytest.fixture
def fuzzer(tmp_path, monkeypatch):
    """Return a function to replace the fuzzer `table` by a shell script."""
    monkeypatch.setattr(fuzz, "BUILD", tmp_path)
    monkeypatch.setattr(fuzz, "GRACE", 0)

    def put(script: str) -> None:
        program = tmp_path / "fuzz_table"
        program.write_text(script)
        program.chmod(0o755)

    return put


def test_result_has_executions_and_coverage_of_the_fuzzer(fuzzer):
    fuzzer(GOOD)
    assert fuzz.perform(JOB) == fuzz.Result(JOB, 5, 40)


def test_find_is_shown_with_a_command_to_repeat(fuzzer, tmp_path):
    fuzzer(BAD)
    with pytest.raises(fuzz.FindError) as found:
        fuzz.perform(JOB)
    *_, command = str(found.value).splitlines()
    assert "does not hold: 1" in str(found.value)
    assert command == f"MEMRT_CACHE=1 {tmp_path}/fuzz_table /there/crash-1"
    assert subprocess.run(command, shell=True, capture_output=True).returncode == 77


@pytest.mark.parametrize(
    ("script", "why"), [(IDLE, "ran nothing"), (HANGS, "begun \ufffd\nhangs: ")]
)
def test_idle_or_hanging_fuzzer_fails_with_its_output(script, why, fuzzer):
    fuzzer(script)
    with pytest.raises(fuzz.FindError, match=why):
        fuzz.perform(JOB)


@pytest.mark.parametrize("target", fuzz.FAULTS)
def test_c_fuzzer_has_inputs_and_a_seeded_bug(target, tmp_path):
    fuzz.unpack(target, tmp_path)
    assert all(path.stat().st_size > 0 for path in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) > 5
    fault = fuzz.FAULTS[target]
    assert (fuzz.ROOT / fault.path).read_text().count(fault.right) == 1
    assert (fuzz.ROOT / "tests" / "fuzz" / f"{target}.c").exists()


SETTINGS = """
from hypothesis import settings
settings.register_profile("long", max_examples=7)
"""
EXAMPLES = """
from hypothesis import given, strategies
@given(strategies.integers())
def test_anything(number):
    assert number != {}
"""


def test_hypothesis_examples_are_counted_and_finds_are_shown(tmp_path, monkeypatch):
    (tmp_path / "conftest.py").write_text(SETTINGS)
    path = tmp_path / "test_examples.py"
    monkeypatch.setitem(fuzz.HYPOTHESIS, "examples", str(path))
    job = fuzz.Job("examples", "MEMRT_CACHE=1", 0)
    path.write_text(EXAMPLES.format("'a text'"))
    assert fuzz.perform(job).executed == 7
    path.write_text(EXAMPLES.format(0))
    with pytest.raises(fuzz.FindError, match=r"MEMRT_CACHE=1 .*--hypothesis-seed=\d+"):
        fuzz.perform(job)


def test_jobs_include_every_fuzzer_and_share_the_time():
    sources = {path.stem for path in (fuzz.ROOT / "tests" / "fuzz").glob("*.c")}
    assert sources == set(fuzz.FAULTS)
    planned = fuzz.jobs(10, fuzz.SETTINGS)
    assert {job.target for job in planned} == sources | set(fuzz.HYPOTHESIS)
    assert sum(job.seconds for job in planned) == pytest.approx(20 * 60, rel=0.01)
