"""Parts of the live view: names of programs, growth, tree, layout, keys and recordings."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import subprocess
import sys

import memrt
import pytest
from memrt._telemetry.stats_pages import Row, Snapshot
from memrt.commands.live_view import asked_sites, family, tables
from memrt.commands.live_view.history import History, rate_text
from memrt.commands.live_view.keyboard import keys_in
from memrt.commands.live_view.layout import Lines, cut, fold, plain_text, text_width
from memrt.commands.live_view.process_names import command_words, program_of
from memrt.commands.live_view.record_file import FIELDS, RecordFile
from memrt.commands.live_view.state import State
from memrt.commands.live_view.tables import Choice, Figures, Table, list_of_processes
from memrt.commands.live_view.view import _View
from memrt.commands.output.errors import CommandError
from rich.console import Console

EMPTY = memrt.stats() - memrt.stats()


def stats(live=0, **others):
    return type(EMPTY)(**{**EMPTY.to_dict(), "live": live, **others})


def snapshot(pid, command="python a.py", *, live=0, runs=False, time=100.0):
    return Snapshot(
        pid=pid, runs=runs, command=command, begun=1.0, time=time, resident=4096, stats=stats(live),
        policies={0: Row("default", stats(live))}, scopes={("outer",): stats(1)}, left_out=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("/usr/bin/python3.11 /srv/app/service.py --port 8000", "service.py --port 8000"),
        ("python -u -X dev -W error -Bs job.py a b", "job.py a b"),
        ("python3.13t -m http.server 80", "-m http.server 80"),
        ("python -Im pkg.tool x", "-m pkg.tool x"),
        ("python -c pass", "-c pass"),
        ("python - x", "- x"),
        ("/venv/bin/python /venv/bin/gunicorn app:app", "gunicorn app:app"),
        ("python -m memrt run --share --html o.html t/train.py --large", "train.py --large"),
        ("python /venv/bin/memrt leaks -m pkg x", "-m pkg x"),
        ("python -m memrt trace -o f.trace", "-m memrt trace -o f.trace"),
        ("python -m memrt top", "-m memrt top"),
        ("/opt/bin/simulate --fast", "simulate --fast"),
        ("python", "python"),
        ("", ""),
    ],
)
def test_program_name_starts_with_the_script(command, program):
    assert program_of(command.split(" ")) == program


def test_words_of_a_running_process_keep_their_blanks():
    code = "import sys\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "two words\x1b"], stdin=subprocess.PIPE
    ) as it:
        one = snapshot(it.pid, "cut", runs=True)
        while command_words(one)[1:2] != ["-c"]:  # until the child has called exec
            pass
        words = command_words(one)
        it.stdin.close()
    assert words[1:] == ["-c", "import sys sys.stdin.read()", "two words\ufffd"]
    assert command_words(snapshot(2**22 + 1, "a b", runs=True)) == ["a", "b"]


def test_history_gives_growth_and_bars_of_each_row():
    history = History()
    for second in range(20):
        history.update({"grows": (second, second * 2048), "stays": (second, 5), "none": (0, 0)})
    assert history.rate("grows") == 2048
    assert history.rate("stays") == 0
    assert history.rate("none") is history.rate("unknown") is None
    assert history.bars("grows") == "▄▄▅▅▆▆▆▇▇███"
    assert history.bars("stays", ascii_only=True) == "@" * 12
    assert history.bars("none") == "▁"
    assert history.bars("unknown") == ""
    history.update({"grows": (60, 0)})
    assert history.rate("grows") == -19 * 2048 / 41
    assert history.rate("stays") is None


@pytest.mark.parametrize(
    ("rate", "text"),
    [(None, ""), (0.2, "0"), (1536.0, "+1.5 KiB/s"), (-3.0, "-3 B/s")],
)
def test_rate_is_shown_with_sign_and_unit(rate, text):
    assert rate_text(rate) == text


def test_tree_puts_children_below_listed_ancestors(monkeypatch):
    parents = {10: 1, 11: 500, 500: 10, 12: 10, 13: 12}
    monkeypatch.setattr(family, "parent_of", lambda pid: parents.get(pid, 0))
    seen = [snapshot(pid, runs=pid != 9) for pid in (13, 12, 9, 11, 10)]
    assert [(branch, one.pid) for branch, one in family.in_tree(seen)] == [
        ("", 9), ("", 10), ("├ ", 12), ("│ └ ", 13), ("└ ", 11),
    ]  # fmt: skip
    parents[10] = 13  # a reused process id: no endless loop
    assert [one.pid for _, one in family.in_tree(seen)] == [9]


def test_parent_of_a_process_is_read():
    assert family.parent_of(os.getpid()) == os.getppid()
    assert family.parent_of(2**22 + 1) == 0


def rows_of(choice, *snapshots, history=None):
    first, *_ = list_of_processes(list(snapshots), [], choice, Figures(history))
    return [row.cells[0] for row in first.rows]


def test_list_is_filtered_and_sorted():
    seen = [snapshot(1, "python b.py x", live=5), snapshot(2, "python a.py", live=9),
            snapshot(33, "job", live=1)]  # fmt: skip
    assert rows_of(Choice(), *seen) == ["a.py", "b.py x", "job"]
    assert rows_of(Choice("name"), *seen) == ["a.py", "b.py x", "job"]
    assert rows_of(Choice(text="PY"), *seen) == ["a.py", "b.py x"]
    assert rows_of(Choice(text="33"), *seen) == ["job"]
    assert rows_of(Choice(tree=True), *seen) == ["a.py", "b.py x", "job"]
    title = list_of_processes(seen, [], Choice(text="PY"), Figures())[0].title
    assert title == "0 running, 3 dead; 2 of 3 contain 'PY'"


def test_rate_is_a_sort_key():
    history = History()
    for time in (1.0, 2.0):
        seen = [snapshot(1, "small", live=int(time) * 10, time=time),
                snapshot(2, "large", live=1000, time=time)]  # fmt: skip
        history.update(tables.points_of(seen))
    assert rows_of(Choice("rate"), *seen, history=history) == ["small", "large"]
    assert rows_of(Choice("live"), *seen, history=history) == ["large", "small"]


def test_unreadable_pages_are_listed():
    found = list_of_processes([], ["page 7 is damaged"], Choice(), Figures())
    title, errors = plain_text(found, "live").split("\n\n")
    assert title.startswith("no process of this user shares statistics")
    assert errors == "unreadable pages\nreason\npage 7 is damaged"


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140, 250])
@pytest.mark.parametrize("sort", ["live", "failed"])
def test_lines_fit_into_the_window(width, sort):
    history = History()
    names = ["python long" + "/name" * 40 + ".py", "python 数据.py " + "数" * 90, "short"]
    seen = [snapshot(4_000_000 + i, name, live=1023 << 20) for i, name in enumerate(names)]
    history.update(tables.points_of(seen))
    first, *_ = list_of_processes(seen, [], Choice(), Figures(history))
    lines = Lines(first, width, sort)
    assert all(text_width(line) <= width for line in (lines.header, *lines.lines))
    assert sort in lines.header
    assert all("1023.0 MiB" in line for line in lines.lines)


def test_names_in_a_tiny_window_have_one_column():
    rows = [tables.Row(["python", "1"]), tables.Row(["f", "2"])]
    lines = Lines(Table("", ["name", "live"], rows), 1, "live")
    shown = [line.split() for line in (lines.header, *lines.lines)]
    assert shown == [["…", "live"], ["…", "1"], ["f", "2"]]


def test_long_texts_are_cut_or_folded():
    assert cut("数据数据", 5) == "数据…"
    assert cut("short", 5) == "short"
    assert fold("one two  three", 8) == ["one two", "three"]
    assert fold("x" * 10, 4) == ["xxxx", "xxxx", "xx"]
    assert fold("", 4) == [""]


def test_table_without_rows_is_a_line_of_plain_text():
    assert plain_text([Table("a title"), Table("", ["x", "y"], [tables.Row(["1", "2"])])], "x") == (
        "a title\n\nx  y\n1  2"
    )


def test_keys_are_named():
    assert keys_in("\x1b[A\x1bOBq\x1b[5~\x1b\r\x7fä") == [
        "up", "down", "q", "page up", "escape", "enter", "backspace", "ä",
    ]  # fmt: skip
    assert keys_in("\x1b[1;5P") == ["\x1b[1;5P"]


def press(state, *keys):
    for key in keys:
        state.press(key)
    return state


def test_selection_stays_with_its_process_and_opens_it():
    state = press(State(pids=[5, 6, 7], height=2), "down", "down", "up")
    assert (state.selected, state.row()) == (6, 1)
    state.pids = [6, 5, 7]
    assert state.row() == 0
    assert press(state, "page down").selected == 7
    assert press(state, "page up", "k").selected == 6
    assert press(state, "enter").pid == 6
    assert press(state, "j", "page down", "up").offset == 2
    assert (press(state, "escape").pid, state.offset) == (None, 0)
    state.pids = []
    assert press(state, "down", "enter").pid is None


def test_window_follows_the_selected_row():
    console = Console(width=40, height=8, file=io.StringIO())
    state = State(pids=list(range(10)))
    view = _View(console, state, lambda snapshots: None)
    view.tables = [Table("title", ["pid"], [tables.Row([str(pid)]) for pid in state.pids])]
    seen = []
    for _ in range(5):
        seen.append(str(view.draw()).splitlines()[0])
        press(state, "down")
    assert seen == ["title; rows 1 to 4"] * 4 + ["title; rows 2 to 5"]


def test_sites_are_asked_for_once_for_each_key(monkeypatch):
    asked, row = [], tables.Row(["load at a.py:3"])

    def ask_for_sites(pid):
        asked.append(pid)
        return Table("allocation sites of the tracked buffers", ["site"], [row])

    monkeypatch.setattr(asked_sites, "ask_for_sites", ask_for_sites)
    monkeypatch.setattr(
        "memrt.commands.live_view.view.read_all", lambda: ([snapshot(6), snapshot(7)], [])
    )
    state = State(pid=7)
    shown = _View(Console(width=100, height=40), state, lambda _: None)
    shown.update()
    assert asked == []
    assert "allocation sites: python -m memrt attach 7 --report" in str(shown.draw())
    press(state, "a")
    shown.update()
    shown.update()
    assert asked == [7]
    text = str(shown.draw())
    assert text.index("load at a.py:3") < text.index("default #0")
    assert "attach 7 --report" not in text
    press(state, "escape")
    shown.update()
    press(state, "a")  # no meaning in the list
    state.pid = 7
    shown.update()
    assert (asked, state.asked) == ([7], False)
    assert "load at a.py:3" not in str(shown.draw())


def test_filter_is_typed_kept_and_removed():
    state = press(State(), "/", *"qs", "up", "backspace", "t", "enter")
    assert (state.text, state.typing, state.ended, state.tree) == ("qt", False, False, False)
    assert press(state, "escape").text == ""
    assert press(state, "/", "x", "escape").text == ""
    assert press(state, "t").tree
    assert press(state, "Q").ended


def test_recording_has_a_row_for_each_new_snapshot(tmp_path):
    path = tmp_path / "load.jsonl"
    file = RecordFile(str(path), force=False)
    assert file.add([snapshot(1, "python a.py", live=5), snapshot(2)], whole=False) == 2
    assert file.add([snapshot(1), snapshot(2, time=101.0)], whole=False) == 1
    rows = [json.loads(line) for line in path.read_text().splitlines()]  # complete while it grows
    file.close()
    assert [(row["pid"], row["time"]) for row in rows] == [(1, 100.0), (2, 100.0), (2, 101.0)]
    assert tuple(rows[0]) == FIELDS
    assert (rows[0]["program"], rows[0]["live"], rows[0]["kind"]) == ("a.py", 5, "process")


def test_csv_recording_has_policies_and_scopes(tmp_path):
    path = tmp_path / "load.csv"
    path.write_text("old")
    file = RecordFile(str(path), force=True)
    assert file.add([snapshot(1, live=5)], whole=True) == 3
    file.close()
    with path.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert [(row["kind"], row["name"], row["live"]) for row in rows] == [
        ("process", "", "5"), ("policy", "default #0", "5"), ("scope", "outer", "1"),
    ]  # fmt: skip
    assert tuple(rows[0]) == FIELDS


def test_unwritable_recording_is_refused(tmp_path):
    (tmp_path / "old").write_text("old")
    with pytest.raises(CommandError, match="exists already: name another file, or add --force"):
        RecordFile(str(tmp_path / "old"), force=False)
    with pytest.raises(CommandError, match="not a regular file"):
        RecordFile(str(tmp_path), force=True)
    with pytest.raises(CommandError, match="No such file or directory"):
        RecordFile(str(tmp_path / "none" / "file"), force=False)


def test_full_disk_ends_a_recording_with_a_reason(tmp_path):
    file = RecordFile(str(tmp_path / "file"), force=False)

    def refuse(text):
        raise OSError(errno.ENOSPC, "No space left on device")

    real, file._file = file._file, type("Full", (), {"write": staticmethod(refuse)})()
    with pytest.raises(CommandError, match=r"cannot write .*No space left on device"):
        file.add([snapshot(1)], whole=False)
    real.close()
