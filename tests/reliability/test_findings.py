"""Each fault that was found has its test."""

import json

import findings
import page
import pytest


@pytest.mark.parametrize("finding", findings.FINDINGS, ids=lambda each: each.test)
def test_what_was_found_has_a_test(finding):
    assert finding.is_there()


def test_a_test_that_is_gone_is_missed():
    gone = findings.Finding("", "", "c/test_dtor.c", "a_chain_of_a_million_destructors_ends")
    assert not gone.is_there()


def test_the_page_has_all_of_them():
    figures = json.loads((page.FIGURES / "findings.json").read_text(encoding="utf-8"))
    assert [row[0] for row in figures["rows"]] == [each.what for each in findings.FINDINGS]
