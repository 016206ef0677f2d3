"""Every link of the pages leads somewhere, and one that does not is found."""

from __future__ import annotations

from pathlib import Path

import links
import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_every_link_of_the_project_leads_somewhere():
    assert links.violations(ROOT) == []


@pytest.mark.parametrize(
    ("link", "wrong"),
    [
        ("gone.md", "leads nowhere"),
        ("../README.md#gone", "names a heading that is not there"),
        ("#gone", "names a heading that is not there"),
    ],
)
def test_a_bad_link_is_found(tmp_path, link, wrong):
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# Title of it\n")
    (tmp_path / "docs" / "page.md").write_text(f"# Page\n[text]({link})\n")
    assert links.violations(tmp_path) == [f"docs/page.md: {link} {wrong}"]


def test_good_links_pass(tmp_path):
    (tmp_path / "README.md").write_text("# Title of it\n[here](#title-of-it) [file](README.md)\n")
    assert links.violations(tmp_path) == []


def test_code_is_not_read_for_links(tmp_path):
    (tmp_path / "README.md").write_text("# Title\n```c\na[i](gone.md)\n```\n")
    assert links.violations(tmp_path) == []
