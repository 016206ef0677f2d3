"""Test that every difference between listed and counted branches is reported."""

import branches
import pytest
from branches import Branch, Count, ListError, faults, read_listing

LISTING = """# why

a.c
if (x) {
1: never
0 2?: by chance
"""


def test_listing_is_read_with_its_reasons():
    listing = read_listing(LISTING)
    assert listing.reasons == {
        Branch("a.c", "if (x) {", 1): "never",
        Branch("a.c", "if (x) {", 0): "by chance",
        Branch("a.c", "if (x) {", 2): "by chance",
    }
    assert {branch.number for branch in listing.by_chance} == {0, 2}


@pytest.mark.parametrize("text", ["a.c\nif (x) {\n", "a.c\nif (x) {\n1:\n", "a.c\ncode\n1\n"])
def test_branch_without_a_reason_is_refused(text):
    with pytest.raises(ListError):
        read_listing(text)


def counted(*times: int) -> Count:
    return Count({Branch("a.c", "if (x) {", n): t for n, t in enumerate(times)})


def test_untaken_branches_must_match_the_listing(monkeypatch):
    monkeypatch.setattr(branches, "LEAST", 0)
    listing = read_listing(LISTING)
    assert list(faults(counted(5, 0, 0, 5), listing)) == []
    assert ["not taken and not listed" in f for f in faults(counted(5, 0, 0, 0), listing)] == [True]
    assert ["is taken" in f for f in faults(counted(5, 1, 0, 5), listing)] == [True]
    assert ["does not exist" in f for f in faults(counted(1), listing)] == [True]


def test_too_few_branches_are_a_fault():
    listing = read_listing("a.c\nif (x) {\n1: never\n")
    assert [f for f in faults(counted(1, 0), listing) if "or more, got" in f]


def test_repeated_line_gets_a_distinct_text(tmp_path):
    (tmp_path / "a.c").write_text("if (x) {\n}\nif (x) {\n")
    lines = [{"line_number": n, "branches": [{"count": n}]} for n in (1, 3)]
    count = branches.read_count({"files": [{"file": "a.c", "lines": lines}]}, tmp_path)
    assert [(b.code, t) for b, t in count.taken.items()] == [
        ("if (x) {", 1),
        ("again: if (x) {", 3),
    ]
