"""A round of exits runs the tests that its clauses name, all of them."""

from __future__ import annotations

from collections import Counter

import exits
import pytest

TESTS = [test for clause in exits.CLAUSES.values() for test in clause]
PYTHON = [test for test in TESTS if exits.is_of_python(test)]


def source_of(test: str) -> str:
    file = test.split("::")[0]
    places = ("tests/python/{}.py", "tests/c/{}.c", "tests/stress/{}.c")
    paths = [exits.ROOT / place.format(file) for place in places]
    return next(path for path in paths if path.exists()).read_text()


@pytest.mark.parametrize("test", TESTS)
def test_the_tests_of_the_clauses_are_there(test):
    name = test.split("::")[1]
    assert f"{'def ' if exits.is_of_python(test) else '('}{name}" in source_of(test)


def test_a_test_that_did_not_run_fails_the_round(monkeypatch):
    monkeypatch.setattr(exits, "run_c", lambda test, number: None)
    monkeypatch.setattr(exits, "run_python", Counter)
    assert exits.run_round(1) == Counter(TESTS)
    monkeypatch.setattr(exits, "run_python", lambda tests: Counter(tests[1:]))
    with pytest.raises(exits.FailedError, match=PYTHON[0]):
        exits.run_round(1)


def test_a_program_that_fails_or_runs_no_test_fails_the_round(monkeypatch, tmp_path):
    monkeypatch.setattr(exits, "BUILD", tmp_path)
    program = tmp_path / "forks"
    for script, why in [("exit 3", "fails"), ("echo '0%: Checks: 0'", "did not run")]:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        with pytest.raises(exits.FailedError, match=why):
            exits.run_c("forks::anything", 1)
