"""Counts of reference operations through the function table."""

import memrt
import pytest

PROGRAM = """
import memrt, numpy as np
policy, other = memrt.Policy(name="counted"), memrt.Policy(name="other")
with policy:
    array = np.empty(1000)
process = memrt.debug.reference_counts()
kept = [memrt.meminfo(array) for _ in range(3)]
print(*memrt.debug.reference_counts(policy))
del kept
print(*memrt.debug.reference_counts(policy))
print(*memrt.debug.reference_counts(other))
now = memrt.debug.reference_counts()
print(now.acquired - process.acquired, now.released - process.released)
"""


@pytest.mark.parametrize("check", ["0", "1"])
def test_references_count_by_policy_with_the_option(run_python, check):
    result = run_python(PROGRAM, env={"MEMRT_REFERENCES": "1", "MEMRT_CHECK": check})
    assert result.stdout.splitlines() == ["3 0", "3 3", "0 0", "3 3"]


def test_result_is_none_without_the_option(run_python):
    code = "import memrt; print(memrt.debug.reference_counts())"
    assert run_python(code, env={"MEMRT_REFERENCES": "0"}).stdout == "None\n"


def test_only_policies_are_accepted():
    with pytest.raises(TypeError, match="policy"):
        memrt.debug.reference_counts("default")
