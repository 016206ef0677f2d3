"""Dask clusters of several hosts, growth with workers, and the section of the benchmark."""

from __future__ import annotations

import json
import sys

import clusters
import dask_bench
import pytest
import section


def test_cluster_of_hosts_keeps_its_accounts_through_failures():
    found = clusters.scenario(sys.executable, kills=1)
    print(f"hosts are {found['kind']}", *found["notes"], sep="\n")
    assert clusters.problems(found) == []
    assert {"load", "total"} <= set(found["prefixes"])


def test_reading_of_many_workers_grows_in_proportion():
    few, many = (clusters.growth(sys.executable, workers) for workers in (2, 6))
    assert 2.5 < many["bytes"] / few["bytes"] < 3.5


def test_problems_of_a_scenario_are_named():
    found = {
        "right": [True, False],
        "managed": [True],
        "after mismatch": [True] * 2,
        "restarted": [True] * 2,
        "tasks after restart": {"is_managed": 2},
        "mismatch": "KeyError",
        "hosts": ["tcp://10.77.0.2"],
    }
    assert [each.split(" must")[0] for each in clusters.problems(found)] == [
        "right",
        "managed",
        "a mismatch",
        "workers",
    ]


def figures(survived: bool = True, memrt: float = 1.01) -> dict:
    """Return figures as dask_bench.py records them."""
    prefix = {"prefix": "mean_chunk", "ratio": 3.0, "failed": 2, "peak": 96 * 2**20}
    found = {"peak": 300 * 2**20, "restarts": 0, "prefixes": [prefix]}
    run = {"outcome": "done", "seconds": 2.0, "survived": survived}
    cases = [{**case, **found, "runs": [run] * case["runs"]} for case in dask_bench.cases(3072, 2)]
    return {
        "machine": {"date": "today", "dask": "1", "processor": "two cores"},
        "cases": cases,
        "cost": {"stock": [1.0] * 3, "memrt": [memrt] * 3, "own": 1e-5},
    }


def test_section_replaces_the_text_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{section.BEGIN}old\n{section.END}after\n")
    section.write(page, figures())
    text = page.read_text()
    assert text.startswith(f"before\n{section.BEGIN}Measured on today")
    assert text.endswith(f"\n{section.END}after\n")
    assert "| memrt | 384 MiB | done | 2.0 s | 300 MiB | 0 |" in text
    assert "2 of 2 runs" in text
    assert "peak of 96 MiB, 3.0 times its chunk" in text
    page.write_text("no marks")
    with pytest.raises(ValueError, match="must have the marks"):
        section.write(page, figures())


def test_missed_goals_are_named():
    assert section.missed(figures()) == []
    assert section.missed(figures(survived=False, memrt=1.05)) == [
        "survived runs must be 2, got 0",
        "cost of the graph must be at most 2%, got 5.0%",
    ]


def test_page_has_the_recorded_figures():
    page, figures_exist = dask_bench.PAGE.read_text(encoding="utf-8"), dask_bench.FIGURES.exists()
    text = "" if not figures_exist else section.text(json.loads(dask_bench.FIGURES.read_text()))
    assert f"{section.BEGIN}{text}{section.END}" in page
