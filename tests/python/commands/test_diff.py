"""The command diff: differences between two event traces."""

import json

import memrt
import pytest
from command_line import run_memrt
from memrt._trace.events import ALLOC, FREE
from memrt.commands.diff import differences
from trace_writer import INLINE, Writer


def content(sizes, lines=(1, 2)):
    """Return a trace with two allocation sites, the second in a scope, and a buffer per size."""
    writer = Writer().text(1, "f").text(2, "f.py").text(3, "p").text(4, "s")
    writer.site(1, (1, 2, lines[0], 0)).site(2, (1, 2, lines[1], 0)).policy(1, 3).policy(2, 3, 4)
    for block, size in enumerate(sizes, 1):
        where = 1 + block % 2
        writer.events((block, ALLOC, block, size, INLINE, where, where))
    return writer.end().content


@pytest.fixture
def traces(tmp_path):
    paths = tmp_path / "a", tmp_path / "b"
    paths[0].write_bytes(content([100, 1000]))
    paths[1].write_bytes(content([100, 5000, 7]))
    return paths


def test_diff_sorts_allocation_sites_by_growth(traces):
    rows = differences(*map(memrt.debug.Trace, traces), "place")
    assert [(row.name, row.growth) for row in rows] == [("f at f.py:1", 4000), ("f at f.py:2", 7)]
    assert rows[1] == ("f at f.py:2", (1, 2), (100, 107), (100, 107), (100, 107))


def test_diff_compares_scopes(traces):
    rows = differences(*map(memrt.debug.Trace, traces), "scope")
    assert [(row.name, row.growth) for row in rows] == [("no scope", 4000), ("s", 7)]


def test_diff_keeps_unmatched_sites_unless_lines_are_ignored(tmp_path, traces):
    (tmp_path / "c").write_bytes(content([100, 1000], lines=(8, 9)))
    before, after = memrt.debug.Trace(traces[0]), memrt.debug.Trace(tmp_path / "c")
    assert len(differences(before, after, "place")) == 4
    (row,) = differences(before, after, "place", lines=False)
    assert (row.name, row.growth) == ("f at f.py", 0)


def test_diff_prints_tables_by_site_and_scope(traces):
    result = run_memrt("diff", *traces)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("peak: 1.1 KiB and 5.0 KiB, +3.9 KiB; events: 2 and 3\n")
    assert "By allocation site:" in result.stdout
    assert "By scope:" in result.stdout
    assert [line.split() for line in result.stdout.splitlines() if "f.py:1" in line] == [
        ["+3.9", "KiB", "1000", "B", "4.9", "KiB", "+3.9", "KiB", "+0", "f", "at", "f.py:1"]
    ]


def test_diff_of_equal_traces_reports_no_difference(traces):
    result = run_memrt("diff", traces[0], traces[0], "--by", "policy")
    assert "nothing differs" in result.stdout


def test_diff_limit_applies_to_tables_but_not_to_json(traces):
    result = run_memrt("diff", *traces, "--limit", "1", "--by", "place")
    assert "the first 1 of 2" in result.stdout
    assert "f.py:2" not in result.stdout
    found = json.loads(run_memrt("diff", *traces, "--limit", "1", "--json").stdout)
    assert found["peak"] == [1100, 5107]
    assert len(found["place"]) == len(found["scope"]) == 2


def test_diff_refuses_a_file_that_is_not_a_trace(traces, tmp_path):
    (tmp_path / "c").write_text("nothing")
    result = run_memrt("diff", traces[0], tmp_path / "c")
    assert (result.returncode, result.stdout) == (2, "")
    assert "is not a trace of memrt" in result.stderr


def test_diff_help_has_examples_and_exit_status():
    result = run_memrt("diff", "--help")
    assert "python -m memrt diff before.memtrace after.memtrace" in result.stdout
    assert "exit status: " in result.stdout


def test_diff_frees_after_the_peak_reduce_only_bytes_at_end(tmp_path):
    for name, size in (("a", 10), ("b", 20)):
        writer = Writer().events((1, ALLOC, 1, size), (2, FREE, 1, size))
        (tmp_path / name).write_bytes(writer.end().content)
    (row,) = differences(
        memrt.debug.Trace(tmp_path / "a"), memrt.debug.Trace(tmp_path / "b"), "place"
    )
    assert (row.at_peak, row.at_end) == ((10, 20), (0, 0))
