"""The page of figures shows exactly the figures recorded by the chores."""

import json
import subprocess

import page
import pytest


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(page, "uncommitted", list)
    return tmp_path


def test_recorded_figures_are_on_the_page(elsewhere):
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


@pytest.mark.parametrize("name", page.SUMMARY)
def test_facts_of_the_summary_are_recorded(name):
    file = page.FIGURES / f"{name}.json"
    facts = json.loads(file.read_text())["facts"] if file.exists() else page.SUMMARY[name]
    assert set(page.SUMMARY[name]) <= set(facts)


def test_unknown_section_is_refused(elsewhere):
    with pytest.raises(ValueError, match="SECTIONS"):
        page.record("luck", "Luck", "none")


def test_edited_page_fails_the_check(elsewhere, monkeypatch, capsys):
    page.record("stress", "Stress", "a")
    monkeypatch.setattr("sys.argv", ["page.py", "--check"])
    assert page.main() == 0
    (elsewhere / "page.md").write_text("better")
    assert page.main() == 1
    assert "run " in capsys.readouterr().err


def test_figures_of_a_dirty_tree_are_not_recorded(elsewhere, monkeypatch, capsys):
    monkeypatch.setattr(page, "uncommitted", lambda: [" M runtime/runtime.c"])
    page.record("stress", "Stress", "a")
    assert not (elsewhere / "page.md").exists()
    assert "stress: not recorded, 1 files have uncommitted changes" in capsys.readouterr().out


def test_commits_of_results_keep_the_source_commit(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
        subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True)

    git("init", "-q")
    (tmp_path / "runtime.c").write_text("int one;\n")
    git("add", ".")
    git("commit", "-qm", "source")
    monkeypatch.setattr(page, "ROOT", tmp_path)
    source = page.commit()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "reliability.md").write_text("figures\n")
    assert page.uncommitted() == []
    git("add", ".")
    git("commit", "-qm", "record")
    assert page.commit() == source
    (tmp_path / "runtime.c").write_text("int two;\n")
    assert page.uncommitted() == ["M runtime.c"]


def test_summary_links_to_sections_with_main_figures(elsewhere):
    page.record("fuzzing", "Fuzzing", "a", {"minutes": 8, "inputs": 74167})
    text = (elsewhere / "page.md").read_text()
    assert "| [Fuzzing](#fuzzing) | minutes: 8; inputs: 74,167 |" in text


def test_chart_of_coverage_adds_up_files_of_a_folder(elsewhere):
    rows = [["runtime/os/a.c", 8, 6], ["runtime/os/linux/b.c", 2, 2], ["api/c.c", 4, 4]]
    page.record("coverage", "Coverage", "a", {}, ["file", "branches", "taken"], rows)
    assert "80.0% of 10" in (elsewhere / "figures" / "coverage.svg").read_text()
    assert "(reliability/coverage.svg)" in (elsewhere / "page.md").read_text()


def test_long_table_is_folded(elsewhere):
    page.record("stress", "Stress", "a", {}, ["n"], [[n] for n in range(31)])
    assert "<details><summary>Table of 31 rows</summary>" in (elsewhere / "page.md").read_text()
