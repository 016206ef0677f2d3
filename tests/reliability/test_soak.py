"""Test that a soak runs every setting, sums the counts, and prints how to repeat a failed run."""

from __future__ import annotations

import os
import subprocess

import pytest
import soak

GOOD = """#!/bin/sh
echo '{"seed": '$STRESS_SEED', "deeds": 10, "threads": '$STRESS_THREADS'}'
"""
BAD_SEED = """#!/bin/sh
[ "$STRESS_SEED" = 9 ] && [ "$MEMRT_DECAY" = 0 ] && echo "stress.c:96: required" && exit 1
echo '{"seed": 0, "deeds": 10}'
"""
IDLE = """#!/bin/sh
echo '100%: Checks: 0, Failures: 0, Errors: 0'
"""
HANGS = """#!/bin/sh
printf 'begun \\377'
exec sleep 1000
"""
FAILS = """#!/bin/sh
printf 'begun \\377'
exit 3
"""


@pytest.fixture
def run_soak(tmp_path, monkeypatch, capsys):
    """Return a function to soak a script briefly, and returns exit status and output."""

    def run(script: str, *arguments: str) -> tuple[int, str]:
        program = tmp_path / "program"
        program.write_text(script)
        program.chmod(0o755)
        command = ["soak", "0.01", "--program", str(program), *arguments]
        monkeypatch.setattr("sys.argv", command)
        monkeypatch.setattr(soak, "GRACE", 0)
        status = soak.main()
        return status, capsys.readouterr().out

    return run


def test_soak_runs_every_setting_and_sums_the_counts(run_soak):
    status, said = run_soak(GOOD, "--threads", "3")
    count = len(soak.settings())
    assert status == 0
    assert said.startswith(f"{10 * count} deeds, {3 * count} threads")


def test_failing_seed_is_shown_with_a_command_to_repeat(run_soak):
    first = 9 - soak.settings().index("MEMRT_DECAY=0")
    status, said = run_soak(BAD_SEED, "--seed", str(first))
    assert status == 1
    assert "stress.c:96: required" in said
    assert "seed 9 fails" in said
    command = said.splitlines()[-1]
    again = subprocess.run(command, shell=True, capture_output=True, env={**os.environ})
    assert again.returncode == 1


@pytest.mark.parametrize(("script", "why"), [(HANGS, "hangs"), (FAILS, "fails")])
def test_output_that_is_not_utf8_is_shown(script, why, run_soak):
    status, said = run_soak(script)
    assert status == 1
    assert "begun \ufffd" in said
    assert f"seed 1 {why}" in said


@pytest.mark.parametrize(("script", "why"), [(IDLE, "did nothing"), (HANGS, "hangs")])
def test_idle_or_hanging_run_fails(script, why, run_soak):
    status, said = run_soak(script)
    assert status == 1
    assert f"seed 1 {why}" in said


def test_short_soak_records_nothing(run_soak, monkeypatch):
    monkeypatch.setattr(soak.page, "record", lambda *_, **__: pytest.fail("recorded"))
    assert run_soak(GOOD)[0] == 0


def test_long_soak_records_its_figures(run_soak, monkeypatch):
    recorded = []
    monkeypatch.setattr(
        soak.page, "record", lambda section, *rest: recorded.append((section, rest))
    )
    monkeypatch.setattr(soak, "RECORDED", 1)
    assert run_soak(GOOD)[0] == 0
    [(section, (*_, facts))] = recorded
    assert section == "stress"
    assert facts["deeds"] == 10 * len(soak.settings())
