"""Test that checking mode finds each seeded bug and prints the expected report."""

import pytest
from building import compile_c
from plants import PLANTS, Plant, missing, run


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("plants"), "plants.c")


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_seeded_bug_is_reported(plant, program):
    result = run(program, plant)
    assert missing(plant, result) == [], result.stderr


def test_program_without_a_bug_reports_nothing(program):
    result = run(program, Plant("none", "none", ()))
    assert (result.returncode, result.stderr) == (0, "")
