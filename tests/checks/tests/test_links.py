"""Test that all links of the pages have targets and that the check finds broken links."""

from __future__ import annotations

from pathlib import Path

import links
import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_every_link_of_the_project_has_a_target():
    assert links.violations(ROOT) == []


@pytest.mark.parametrize(
    ("link", "wrong"),
    [
        ("gone.md", "has no target"),
        ("../README.md#gone", "names a missing heading"),
        ("#gone", "names a missing heading"),
    ],
)
def test_broken_link_is_found(tmp_path, link, wrong):
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# Title of it\n")
    (tmp_path / "docs" / "page.md").write_text(f"# Page\n[text]({link})\n")
    assert links.violations(tmp_path) == [f"docs/page.md: {link} {wrong}"]


def test_valid_links_pass(tmp_path):
    (tmp_path / "README.md").write_text("# Title of it\n[here](#title-of-it) [file](README.md)\n")
    assert links.violations(tmp_path) == []


def test_links_in_code_blocks_are_ignored(tmp_path):
    (tmp_path / "README.md").write_text("# Title\n```c\na[i](gone.md)\n```\n")
    assert links.violations(tmp_path) == []
