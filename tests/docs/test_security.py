"""Every claim of docs/internals/security.md names an existing test."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "internals" / "security.md").read_text(encoding="utf-8")
HELD = ("Guarantees in every mode", "Reports of checking mode")
TEST = re.compile(r"`(\w+)`")


def claims() -> list[str]:
    """Return the points of the sections that make claims."""
    parts = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")}
    points = [point for title in HELD for point in re.split(r"\n(?=- )", parts[title])[1:]]
    assert len(points) > 10
    return points


def names_of_tests() -> set[str]:
    """Return the names of the existing tests, in Python and in C."""
    python = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    c = "".join(path.read_text() for path in (ROOT / "tests" / "c").rglob("test_*.c"))
    return set(re.findall(r"^def (test_\w+)\(", python, re.MULTILINE)) | set(
        re.findall(r"^TEST(?:_EACH)?\((\w+)", c, re.MULTILINE)
    )


def test_every_claim_names_existing_tests():
    there = names_of_tests()
    for claim in claims():
        named = {name for name in TEST.findall(claim) if name.strip("_").count("_") >= 3}
        assert named, claim
        assert named <= there, claim


def test_every_test_named_on_the_page_exists():
    there = names_of_tests()
    named = {name for name in TEST.findall(PAGE) if name.startswith("test_")}
    assert len(named) > 20
    assert named <= there


def test_every_hardening_names_existing_tests():
    rows = PAGE.partition("## Hardening")[2].partition("\n## ")[0].splitlines()
    there = names_of_tests()
    tests = [TEST.findall(row.split("|")[3]) for row in rows if row.startswith("| a")]
    assert len(tests) == 4
    assert all(names and set(names) <= there for names in tests)
