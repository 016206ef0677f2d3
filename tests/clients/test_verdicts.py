"""The first finding of programs over other libraries names the planted line and the holder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "verdicts"))
from programs import HEALTHY, HERE, PLANTED, findings_of

# Programs whose first finding is not the expected one, with the rule of the first finding and the
# reason. The rules stay as they were before the programs.
MISSED = {
    "batches_on_device": ("lost", "JAX holds the arrays in C++, where no search can look"),
    "encoded_categories": ("temporaries", "temporaries of scikit-learn take more than wide codes"),
    "neighbors_with_copies": ("growth", "the trees hold most buffers, in memoryviews of Cython"),
}
# Healthy programs with a finding, and the rule of the finding.
FALSE_ALARMS = {"monthly_means": ("duplicates", "xarray copies a group in two steps of one call")}


def test_each_program_has_an_expectation():
    assert sorted(HERE.glob("planted/*.py")) == sorted(each.script for each in PLANTED)
    assert len(PLANTED) == 10


@pytest.mark.parametrize("program", PLANTED, ids=lambda each: each.name)
def test_first_finding_names_the_planted_line_and_holder(program, tmp_path):
    first = findings_of(program.script, tmp_path)[0]
    assert program.place in first["text"]
    assert program.is_found_by(first) == (program.name not in MISSED), first
    if program.name in MISSED:
        assert first["rule"] == MISSED[program.name][0]


@pytest.mark.parametrize("script", HEALTHY, ids=lambda path: path.stem)
def test_healthy_program_has_no_finding(script, tmp_path):
    expected = [FALSE_ALARMS[script.stem][0]] if script.stem in FALSE_ALARMS else []
    assert [each["rule"] for each in findings_of(script, tmp_path)] == expected
