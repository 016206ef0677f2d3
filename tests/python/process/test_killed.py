"""Programs that the system kills when a control group is full end by MemoryError under memrt."""

import full_group
import limited_group
import pytest

ROUNDS = 2


@pytest.fixture(autouse=True)
def permission(libc_malloc):
    """Skip the tests where no control group can be made."""
    if not limited_group.can_limit():
        pytest.skip("only root can limit a control group")


@pytest.mark.parametrize("name", full_group.PROGRAMS)
def test_program_in_full_group_ends_as_expected(name):
    interpreter, program, expected = full_group.PROGRAMS[name]
    assert full_group.outcomes(interpreter, program, ROUNDS) == [expected] * ROUNDS
