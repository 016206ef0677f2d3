"""The page of figures says what the chores left, and nothing else."""

import page
import pytest


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "FIGURES", tmp_path / "figures")
    return tmp_path


def test_what_is_recorded_stands_on_the_page(elsewhere):
    page.record("stress", "Stress", "By ./dev soak.", {"blocks": 12345}, ["seed"], [[7], ["a|b"]])
    text = (elsewhere / "page.md").read_text()
    for line in ("## Stress", "- blocks: 12,345", "| seed |", "| 7 |", "| a\\|b |"):
        assert line in text.splitlines()
    assert "- commit: " in text


def test_sections_keep_their_order_and_replace_their_figures(elsewhere):
    page.record("stress", "Second", "b")
    page.record("sanitizers", "First", "a")
    page.record("stress", "Third", "c")
    text = (elsewhere / "page.md").read_text()
    assert text.index("## First") < text.index("## Third")
    assert "## Second" not in text


def test_a_section_without_a_place_is_refused(elsewhere):
    with pytest.raises(ValueError, match="SECTIONS"):
        page.record("luck", "Luck", "none")


def test_a_page_that_was_edited_is_told(elsewhere, monkeypatch, capsys):
    page.record("stress", "Stress", "a")
    monkeypatch.setattr("sys.argv", ["page.py", "--check"])
    assert page.main() == 0
    (elsewhere / "page.md").write_text("better")
    assert page.main() == 1
    assert "run " in capsys.readouterr().err
