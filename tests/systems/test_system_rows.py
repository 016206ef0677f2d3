"""The table of tested systems: one row per system, the latest result."""

from __future__ import annotations

import pytest
import system_rows


def row(python: str, result: str) -> list[str]:
    return ["Debian", "x86_64", python, "2.4", "on", "all", result, "abc", "2026-01-01"]


def test_new_row_replaces_row_of_the_same_system():
    rows = [row("3.11", "1 passed"), row("3.12", "2 passed")]
    merged = system_rows.merged(rows, [row("3.12", "3 passed"), row("3.10", "4 passed")])
    assert [each[6] for each in merged] == ["4 passed", "1 passed", "3 passed"]


def test_result_without_a_test_is_a_failure():
    assert system_rows.outcome(True, "1 passed") == "1 passed"
    assert system_rows.outcome(True, "") == "FAILED: no test ran"
    assert system_rows.outcome(False, "1 failed") == "FAILED: 1 failed"


def test_too_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr(system_rows, "read", list)
    rows = [system_rows.System("Debian", "x", str(n), "2", "on", "all", "-") for n in range(41)]
    with pytest.raises(ValueError, match="at most 40 rows, got 41"):
        system_rows.record(rows)
