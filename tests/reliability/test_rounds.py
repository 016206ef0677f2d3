"""Test that a round of `./dev stress exits` runs all tests of the clauses."""

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
def test_tests_of_the_clauses_exist(test):
    name = test.split("::")[1]
    assert f"{'def ' if exits.is_of_python(test) else '('}{name}" in source_of(test)


def test_missing_test_fails_the_round(monkeypatch):
    monkeypatch.setattr(exits, "run_c", lambda test, number: None)
    monkeypatch.setattr(exits, "run_python", Counter)
    assert exits.run_round(1) == Counter(TESTS)
    monkeypatch.setattr(exits, "run_python", lambda tests: Counter(tests[1:]))
    with pytest.raises(exits.FailedError, match=PYTHON[0]):
        exits.run_round(1)


def test_failing_or_empty_program_fails_the_round(monkeypatch, tmp_path):
    monkeypatch.setattr(exits, "BUILD", tmp_path)
    program = tmp_path / "forks"
    for script, why in [
        ("exit 3", "fails"),
        ("echo '0%: Checks: 0'", "did not run"),
        ("printf '\\377'; exit 3", "\ufffd\nfails"),
    ]:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        with pytest.raises(exits.FailedError, match=why):
            exits.run_c("forks::anything", 1)


def test_a_hung_program_fails_the_round_and_shows_its_output(monkeypatch, tmp_path):
    program = tmp_path / "forks"
    program.write_text("#!/bin/sh\nprintf 'begun \\377'\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setattr(exits, "BUILD", tmp_path)
    monkeypatch.setattr(exits, "LONGEST", 1)
    with pytest.raises(exits.FailedError, match="begun \ufffd\nhangs: "):
        exits.run_c("forks::anything", 1)
