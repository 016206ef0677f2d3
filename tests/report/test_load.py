"""A million events: recording, reading, pages and conversion stay usable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import memrt
import pytest

BLOCKS = 510_000
PROGRAM = f"""
import numpy as np
kept = []
for i in range({BLOCKS}):
    array = np.empty(100 + i % 1000)
    if i % 50 == 0:
        kept.append(array)
"""
LIVE = BLOCKS // 50 + 1  # includes the last array
EVENTS = 2 * BLOCKS - LIVE


# Make the C library keep freed memory, as other allocators do.
KEEPING = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "1000000000"}


def command(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "memrt", *map(str, arguments)]
    result = subprocess.run(
        line, capture_output=True, text=True, timeout=240, env={**os.environ, **environment}
    )
    assert result.returncode == 0, result.stderr
    return result


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("load") / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture(scope="module")
def traced(script):
    path = script.with_suffix(".memtrace")
    assert "lost" not in command("trace", "-o", path, script).stderr
    return path


def test_trace_of_a_million_events_is_complete(traced):
    trace = memrt.debug.Trace(traced)
    assert trace.is_complete
    assert EVENTS <= len(trace) < EVENTS + 1000
    assert LIVE * 8 * 100 <= trace.live[-1] <= trace.peak


def lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def test_a_million_events_are_converted_to_each_format(traced):
    table = traced.with_suffix(".csv")
    command("convert", traced, "--to", "csv", "-o", table)
    assert lines(table) == len(memrt.debug.Trace(traced)) + 1
    track = traced.with_suffix(".pftrace")
    command("convert", traced, "--to", "perfetto", "-o", track)
    assert 0 < track.stat().st_size < traced.stat().st_size
    flame = traced.with_suffix(".json")
    command("convert", traced, "--to", "speedscope", "-o", flame)
    peak = json.loads(flame.read_text())["profiles"][0]
    assert peak["endValue"] == memrt.debug.Trace(traced).peak


def test_a_million_events_are_replayed_by_each_allocator(traced):
    tried = json.loads(command("replay", "--json", traced, **KEEPING).stdout)
    assert [each["allocator"] for each in tried] == ["memrt", "malloc", "numpy"]
    for each in tried:
        assert (each["error"], each["refused"]) == (None, 0)
        assert each["peak"] == memrt.debug.Trace(traced).peak
        assert each["peak_resident"] > 0.95 * each["peak"], (
            "memory of an earlier allocator was reused"
        )


def test_trace_does_not_differ_from_itself(traced):
    assert command("diff", traced, traced).stdout.count("nothing differs") == 2


def test_page_counts_all_blocks_and_live_buffers(script, visit):
    path = script.with_suffix(".html")
    command("run", "--quiet", "--html", path, script)
    page = visit(path)
    assert page.locator("#live-table .count").inner_text() == f"1 to 25 of {LIVE:,}"
    assert f"{BLOCKS:,}" in page.locator("#overview").inner_text()
