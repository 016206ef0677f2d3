"""Test that `./dev full` runs the long chores at one clean commit and keeps the last results."""

import json
import re

import full
import fuzz
import page
import pytest


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Make a project with chores, each recording the calls; the chore `soak` fails."""
    dev = tmp_path / "dev"
    dev.write_text('#!/bin/sh\necho "$@" >>calls\n[ "$2" != soak ]\n')
    dev.chmod(0o755)
    monkeypatch.setattr(page, "ROOT", tmp_path)
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(page, "uncommitted", list)
    monkeypatch.setattr(page, "commit", lambda: "abc1234")
    return tmp_path


def call(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["full.py", *arguments])
    return full.main()


def calls(project):
    path = project / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_second_call_runs_only_the_failed_chore(project, monkeypatch):
    assert call(monkeypatch) == 1
    assert calls(project) == [chore.arguments for chore in full.CHORES]
    (project / "calls").unlink()
    assert call(monkeypatch) == 1
    assert calls(project) == ["stress soak 5"]


def test_results_of_chores_that_changed_are_not_read(project, monkeypatch):
    call(monkeypatch, "exits")
    changed = [full.Chore("stress exits 6", 12), *full.CHORES]
    monkeypatch.setattr(full, "CHORES", changed)
    (result,) = full.read_results().values()
    assert (result.passed, result.commit, result.minutes) == (True, "abc1234", 0.0)
    monkeypatch.setattr(full, "CHORES", changed[:1])
    assert full.read_results() == {}


def test_new_commit_runs_all_chores_again(project, monkeypatch):
    call(monkeypatch)
    (project / "calls").unlink()
    monkeypatch.setattr(page, "commit", lambda: "def5678")
    call(monkeypatch)
    assert len(calls(project)) == len(full.CHORES)


def test_results_are_recorded_with_their_commit(project, monkeypatch):
    call(monkeypatch, "soak", "exits")
    text = (project / "page.md").read_text()
    assert "| `stress exits 5` | passed | 0.0 | abc1234 |" in text
    assert "| `stress soak 5` | failed | 0.0 | abc1234 |" in text
    assert "| `stress churn 15` | not run |" in text


@pytest.mark.parametrize(
    ("commit", "date", "shown"),
    [
        ("def5678", "2999-01-01", "see Stress"),  # by the command of the chore, later
        ("abc1234", "2999-01-01", "failed"),  # by the same run of the chore
        ("def5678", "2000-01-01", "failed"),
    ],
)
def test_result_gives_way_to_a_later_section(project, monkeypatch, commit, date, shown):
    call(monkeypatch, "soak")
    figures = {"title": "Stress", "facts": {"commit": commit, "date": date}}
    (project / "figures" / "stress.json").write_text(json.dumps(figures))
    found = {name: outcome for name, outcome, *_ in full.rows(full.read_results())}
    assert found["`stress soak 5`"] == shown
    assert found["`stress churn 15`"] == "see Stress"


def test_dirty_tree_is_refused(project, monkeypatch, capsys):
    monkeypatch.setattr(page, "uncommitted", lambda: [" M runtime/runtime.c"])
    assert call(monkeypatch) == 1
    assert calls(project) == []
    assert "M runtime/runtime.c" in capsys.readouterr().out


def test_unknown_chore_is_refused(project, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        call(monkeypatch, "soaks")
    assert "CHORE must be one of coverage" in capsys.readouterr().err


def test_chores_are_long_enough_for_recorded_figures():
    given = {chore.name: int(chore.arguments.split()[-1]) for chore in full.CHORES
             if chore.name in ("exits", "soak", "fuzz")}  # fmt: skip
    assert given["fuzz"] * 60 >= fuzz.RECORDED
    for name, unit in ("exits", 1), ("soak", 60):
        source = (page.ROOT / "tests" / "stress" / f"{name}.py").read_text()
        assert given[name] * unit >= int(re.search(r"^RECORDED = (\d+)", source, re.M)[1])
