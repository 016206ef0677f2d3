"""Each fault in the list of findings has a regression test."""

import json

import findings
import page
import pytest


@pytest.mark.parametrize("finding", findings.FINDINGS, ids=lambda each: each.test)
def test_every_finding_has_a_regression_test(finding):
    assert finding.is_there()


def test_missing_regression_test_is_detected():
    gone = findings.Finding("", "", "c/meminfo/test_dtor.c", "long_destructor_chain_ends")
    assert not gone.is_there()


def test_recorded_figures_have_all_findings():
    figures = json.loads((page.FIGURES / "findings.json").read_text(encoding="utf-8"))
    assert [row[0] for row in figures["rows"]] == [each.what for each in findings.FINDINGS]
