"""Checking mode finds each mistake that is planted, and says what it must of it."""

import pytest
from building import compile_c
from plants import PLANTS, Plant, missing, run


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("plants"), "plants.c")


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_a_planted_mistake_is_reported(plant, program):
    result = run(program, plant)
    assert missing(plant, result) == [], result.stderr


def test_a_program_without_a_mistake_is_not_reported(program):
    result = run(program, Plant("none", "none", ()))
    assert (result.returncode, result.stderr) == (0, "")
