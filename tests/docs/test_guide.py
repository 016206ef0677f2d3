"""Pages of the guide are short."""

from __future__ import annotations

from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
LINES_MAX = 250
PAGES = sorted(GUIDE.glob("**/*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(GUIDE)))
def test_guide_page_has_at_most_250_lines(page):
    assert len(page.read_text(encoding="utf-8").splitlines()) <= LINES_MAX
