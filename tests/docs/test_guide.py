"""Pages of the guide are short, and the table of extras agrees with the package."""

from __future__ import annotations

import re
from importlib.metadata import metadata, requires
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
LINES_MAX = 250
PAGES = sorted(GUIDE.glob("**/*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(GUIDE)))
def test_guide_page_has_at_most_250_lines(page):
    assert len(page.read_text(encoding="utf-8").splitlines()) <= LINES_MAX


def normalized(name: str) -> str:
    """Return a package name in the spelling of the package index."""
    return re.sub(r"[-_.]+", "-", name).lower()


def packages_of_extras() -> dict[str, set[str]]:
    """Return the required packages of each extra of pyproject.toml; "" has those of memrt."""
    extras = {name: set() for name in ["", *metadata("memrt").get_all("Provides-Extra")]}
    for line in requires("memrt"):
        extra = re.search(r"extra == ['\"]([\w-]+)", line)
        extras[extra[1] if extra else ""].add(normalized(re.match(r"[\w.-]+", line)[0]))
    return extras


def test_table_of_extras_names_every_extra_and_its_packages():
    page = (GUIDE / "install.md").read_text(encoding="utf-8")
    listed = {}
    for install, adds in re.findall(r"^\| (`memrt.*?) \| (.+?) \|", page, re.MULTILINE):
        names = re.findall(r"`memrt(?:\[(\w+)\])?`", install)
        listed.update({key: {normalized(name) for name in adds.split(", ")} for key in names})
    expected = packages_of_extras()
    assert listed.keys() == expected.keys()
    tools = {"dev", "docs", "wheels"}  # the table has no list of these
    assert {name: listed[name] for name in listed.keys() - tools} == {
        name: expected[name] for name in expected.keys() - tools
    }
