"""Test that stress runs everything planned, and shows how to repeat a failed run."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import exits
import pytest
import soak
import stress
from runs import ROOT, FailedRunError, Run, lines_of, output_of

GOOD = """echo '{"seed": '$STRESS_SEED', "deeds": 10, "threads": '$STRESS_THREADS'}'"""
BAD_SEED = """[ "$STRESS_SEED$MEMRT_DECAY" = 90 ] && echo "stress.c:96: required" && exit 1
echo '{"seed": 0, "deeds": 10}'"""
IDLE = "echo '100%: Checks: 0, Failures: 0, Errors: 0'"
NO_DEEDS = """echo '{"seed": 1, "deeds": 0}'"""
PYTHON = [test for test in exits.TESTS if exits.is_of_python(test)]


@pytest.fixture
def program(tmp_path):
    """Return a function that makes a program of a shell script."""

    def make(script: str, name: str = "program") -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return make


# Runs.


@pytest.mark.parametrize(
    ("end", "limit", "outcome"), [("exec sleep 1000", 1, "hangs"), ("exit 3", 60, "fails")]
)
def test_failed_run_shows_its_output_and_command(end, limit, outcome, program):
    path = program(f"printf 'begun \\377'\n{end}")
    run = Run("seed 4", [str(path)], limit, {"STRESS_SEED": "4"})
    with pytest.raises(FailedRunError, match="begun \ufffd") as failed:
        output_of(run)
    text = str(failed.value)
    assert text.endswith(f"\n\nseed 4 {outcome}; to repeat:\nSTRESS_SEED=4 {path}")


def test_lines_arrive_while_the_program_runs(program):
    path = program("echo first\nprintf sec; sleep 0.1; echo ond\nexec sleep 1000")
    found = lines_of(Run("", [str(path)], 2000))
    assert [next(found), next(found)] == ["first", "second"]
    found.close()  # ends the program


def test_last_line_may_lack_its_end(program):
    assert output_of(Run("", [str(program("printf 'a\\nb'"))], 60)) == "a\nb"


def test_run_inherits_no_removed_variables(program, monkeypatch):
    monkeypatch.setenv("MEMRT_CHECK", "1")
    path = program('echo "$MEMRT_CHECK $ADDED"')
    run = Run("", [str(path)], 60, {"ADDED": "2"})
    assert output_of(run) == "1 2"
    assert output_of(Run("", [str(path)], 60, removed=("MEMRT_",))) == " "


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["soak", "0"], "must be 0.001 or more, got 0.0"),
        (["soak", "nan"], "must be 0.001 or more, got nan"),
        (["soak", "--threads", "65"], "must be from 1 to 64, got 65"),
        (["churn", "-1"], "must be 0.001 or more, got -1.0"),
        (["exits", "0"], "must be 1 or more, got 0"),
        (["exits", "x"], "invalid number value: 'x'"),
    ],
)
def test_number_outside_its_limits_is_refused(arguments, message, capsys):
    with pytest.raises(SystemExit):
        stress.main(arguments)
    assert message in capsys.readouterr().err


# Soak.


@pytest.fixture
def run_soak(program, capsys):
    """Return a function that soaks a script briefly, and returns exit status and output."""

    def run(script: str, *arguments: str) -> tuple[int, str]:
        status = stress.main(["soak", "0.01", "--program", str(program(script)), *arguments])
        return status, capsys.readouterr().out

    return run


def test_soak_runs_every_setting_and_sums_the_counts(run_soak):
    status, said = run_soak(GOOD, "--threads", "3")
    count = len(soak.settings())
    assert status == 0
    assert said.startswith(f"{10 * count} deeds, {3 * count} threads")


def test_failing_seed_is_shown_with_a_command_to_repeat(run_soak):
    first = 9 - soak.settings().index("MEMRT_CACHE_LIMIT=0 MEMRT_DECAY=0 MEMRT_PEAK=exact")
    status, said = run_soak(BAD_SEED, "--seed", str(first))
    assert status == 1
    assert "stress.c:96: required" in said
    assert "seed 9 fails" in said
    again = subprocess.run(said.splitlines()[-1], shell=True, capture_output=True)
    assert again.returncode == 1


@pytest.mark.parametrize("script", [IDLE, NO_DEEDS])
def test_idle_soak_fails(script, run_soak):
    status, said = run_soak(script)
    assert status == 1
    assert "seed 1 did nothing" in said


def test_hanging_soak_fails(run_soak, monkeypatch):
    monkeypatch.setattr(soak, "GRACE", 0)
    status, said = run_soak("exec sleep 1000")
    assert status == 1
    assert "seed 1 hangs" in said


def test_short_soak_records_nothing(run_soak, monkeypatch):
    monkeypatch.setattr(stress.page, "record", lambda *_, **__: pytest.fail("recorded"))
    assert run_soak(GOOD)[0] == 0


def test_long_soak_records_its_figures(run_soak, monkeypatch):
    recorded = []
    monkeypatch.setattr(stress.page, "record", lambda *section: recorded.append(section))
    monkeypatch.setattr(soak, "RECORDED", 1)
    assert run_soak(GOOD)[0] == 0
    [(section, _title, _about, facts, *_table)] = recorded
    assert section == "stress"
    assert facts["minutes"] == 0
    assert facts["deeds"] == 10 * len(soak.settings())


# Exits.


@pytest.mark.parametrize("test", exits.TESTS)
def test_tests_of_the_clauses_exist(test):
    file, name = test.split("::")
    if exits.is_of_python(test):
        assert f"def {name}(" in exits.file_of(test).read_text()
    else:
        [path] = (path for path in (ROOT / "tests").rglob(f"{file}.c"))
        assert f"({name}" in path.read_text()


def test_missing_test_fails_the_round(monkeypatch):
    monkeypatch.setattr(exits, "run_c", lambda test, number: None)
    monkeypatch.setattr(exits, "run_python", Counter)
    assert exits.run_round(1) == Counter(exits.TESTS)
    monkeypatch.setattr(exits, "run_python", lambda tests: Counter(tests[1:]))
    with pytest.raises(FailedRunError, match=PYTHON[0]):
        exits.run_round(1)


@pytest.mark.parametrize(
    ("script", "outcome"), [("exit 3", "fails"), ("echo '0%: Checks: 0'", "did not run")]
)
def test_failing_or_empty_program_fails_the_round(script, outcome, program, monkeypatch, tmp_path):
    program(script, "forks")
    monkeypatch.setattr(exits, "BUILD", tmp_path)
    with pytest.raises(FailedRunError, match=f"forks::anything {outcome}"):
        exits.run_c("forks::anything", 1)


def test_hung_program_fails_the_round(program, monkeypatch, tmp_path):
    program("exec sleep 1000", "forks")
    monkeypatch.setattr(exits, "BUILD", tmp_path)
    monkeypatch.setattr(exits, "LONGEST", 1)
    with pytest.raises(FailedRunError, match="hangs; to repeat:\nSTRESS_FORKS=60 STRESS_SEED=1"):
        exits.run_c("forks::anything", 1)


def test_five_rounds_record_the_passes_of_each_clause(monkeypatch, capsys):
    recorded = []
    monkeypatch.setattr(stress.page, "record", lambda *section: recorded.append(section))
    monkeypatch.setattr(exits, "run_round", lambda number: Counter(exits.TESTS))
    assert stress.main(["exits", "4"]) == 0
    assert recorded == []
    assert stress.main(["exits", "5"]) == 0
    [(section, _title, _about, facts, _columns, rows)] = recorded
    assert section == "exits"
    assert facts["forks of each C test"] == 5 * exits.FORKS
    assert [count for _clause, _tests, count in rows] == [5 * tests for _clause, tests, _ in rows]
    assert f"{5 * len(exits.TESTS)} tests passed" in capsys.readouterr().out
