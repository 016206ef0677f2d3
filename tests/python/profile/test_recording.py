"""Recordings of programs: `run --record`, the file format, and effects on the program."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import memrt
import pytest
from command_line import run_memrt
from gil import needs_gil
from hypothesis import given
from hypothesis import strategies as st
from memrt._profile import listings, recorder
from memrt._profile import timeline as timelines
from memrt._profile.listings import MOST_LISTINGS, MOST_ROWS, Listings
from memrt._profile.moment import moment_of
from memrt._profile.recording import RecordingError, dumps, loads
from memrt._profile.timeline import (
    ACCOUNTS_GAP,
    ACCOUNTS_GRACE,
    ACCOUNTS_PART,
    FIRST_ACCOUNT,
    MOST_ACCOUNTS,
    MOST_COST,
    MOST_SAMPLES,
    ProcessTimeline,
    Sample,
    Timeline,
    largest,
)
from memrt.commands.output.errors import CommandError
from memrt.commands.output.target import Target

pytestmark = pytest.mark.slow

PROGRAM = """\
import numpy as np, memrt, time
def load():
    return np.ones(100_000)
with memrt.scope("outer"):
    kept = load()
    with memrt.scope("inner"):
        high = np.ones(500_000)
        time.sleep(0.2)
del high
"""


@pytest.fixture
def recorded(tmp_path):
    """Return a function that records a program. The result is the finished process and its
    document.
    """

    def record(code, *options, **others):
        script, file = tmp_path / "program.py", tmp_path / "recording"
        script.write_text(code)
        result = run_memrt("run", "--quiet", "--record", file, "--force", *options, script,
                               **others)  # fmt: skip
        return result, loads(file.read_bytes())[0]

    return record


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Return the bytes of a recording."""
    folder = tmp_path_factory.mktemp("recording")
    (folder / "program.py").write_text(PROGRAM)
    run_memrt("run", "--record", folder / "file", folder / "program.py")
    return (folder / "file").read_bytes()


def stat(document, name):
    return next(value for field, _, value in document["stats"] if field == name)


def place(document, number):
    return next((text for site, text, _ in document["sites"] if site == number), None)


# --- Contents of a recording. ---


def test_statistics_of_a_recording_have_their_units(recorded):
    _, document = recorded(PROGRAM)
    units = {name: unit for name, unit, _ in document["stats"]}
    assert (units["live"], units["peak"], units["alloc"], units["free"]) == (
        *("bytes", "bytes"),
        *("count", "count"),
    )


def test_recording_has_the_memory_of_the_process(recorded):
    _, document = recorded(PROGRAM)
    names = [name for name, _, _, _ in document["memory"]]
    assert names == list(memrt.debug.process_memory().parts())
    parts = {name: resident for name, _, resident, _ in document["memory"]}
    assert sum(parts.values()) >= document["timeline"]["resident"][-1] / 2
    assert parts["code"] >= 4 << 20


def test_recording_has_the_huge_pages_at_the_end(monkeypatch):
    memory = dataclasses.replace(memrt.debug.process_memory(), huge_asked=8 << 20, huge_got=None)
    monkeypatch.setattr(recorder, "process_memory", lambda: memory)
    found = recorder.Recorder({}, tracked=False)
    found.stop()
    assert found.finish("ended")["huge_pages"] == {"asked": 8 << 20, "got": None}


def test_recording_counts_the_huge_pages_of_an_array(recorded):
    _, document = recorded("import memrt\ntable = memrt.full(16 << 20, 1, 'u1')\n")
    huge = document["huge_pages"]
    assert huge["asked"] >= 16 << 20
    assert huge["got"] is None or 0 <= huge["got"] <= huge["asked"]


def test_parts_over_time_add_up_to_the_resident_bytes(recorded):
    _, document = recorded(PROGRAM)
    over_time, line = document["memory_over_time"], document["timeline"]
    parts = {part["name"]: part["resident"] for part in over_time["parts"]}
    assert list(parts) == list(memrt.debug.process_memory().parts())
    assert all(len(sizes) == len(over_time["t"]) for sizes in parts.values())
    assert over_time["t"] == sorted(over_time["t"])
    assert over_time["t"][-1] == pytest.approx(document["seconds"], abs=1e-5)
    assert {name: sizes[-1] for name, sizes in parts.items()} == {
        name: resident or 0 for name, _, resident, _ in document["memory"]
    }
    total = sum(sizes[-1] for sizes in parts.values())
    assert total == pytest.approx(line["resident"][-1], rel=0.1)


def account(*sizes):
    """Return an account of the memory of a process with two parts."""
    parts = {name: SimpleNamespace(resident=size) for name, size in zip("ab", sizes, strict=True)}
    return SimpleNamespace(parts=lambda: parts)


def test_accounts_are_bounded_and_keep_the_largest():
    kept = ProcessTimeline()
    for i in range(10 * MOST_ACCOUNTS + 1):
        kept.add(i, account(i, None if i % 2 else 1000 if i == 700 else 5))
    found = kept.to_dict()
    a, b = (part["resident"] for part in found["parts"])
    assert len(a) == len(b) == len(found["t"]) <= MOST_ACCOUNTS
    assert (found["t"][0], found["t"][-1]) == (a[0], 10 * MOST_ACCOUNTS)
    assert 1000 in b
    assert ProcessTimeline().to_dict() == {"t": [], "parts": []}


def test_account_of_the_caller_replaces_later_readings():
    kept = ProcessTimeline()
    for t, size in ((1, 10), (3, 30), (4, 40), (2, 20)):
        kept.add(t, account(size, 0))
    assert kept.to_dict() == {
        "t": [1, 2],
        "parts": [{"name": "a", "resident": [10, 20]}, {"name": "b", "resident": [0, 0]}],
    }


@pytest.mark.parametrize(
    ("seconds", "due"),
    [
        (0.0, 2.0 + ACCOUNTS_GAP),
        (0.09, (2 * 0.09 - ACCOUNTS_GRACE) / ACCOUNTS_PART),
        (2 * MOST_COST, None),  # so expensive that no other account follows
        (OSError(), None),
    ],
)
def test_accounts_have_pauses_and_a_limit_of_time(monkeypatch, seconds, due):
    clock = [0.0]

    def read():
        if isinstance(seconds, OSError):
            raise seconds
        clock[0] += seconds
        return account(1, 2)

    monkeypatch.setattr(timelines, "process_memory", read)
    monkeypatch.setattr(timelines, "thread_time", lambda: clock[0])
    kept = ProcessTimeline()
    assert not kept.is_due(FIRST_ACCOUNT / 2)
    assert kept.is_due(FIRST_ACCOUNT)
    kept.read(2.0)
    assert kept.spent == clock[0]
    assert len(kept.to_dict()["t"]) == (0 if isinstance(seconds, OSError) else 1)
    if due is None:
        assert not kept.is_due(1e9)
    else:
        assert kept.is_due(due + 1e-6)
        assert not kept.is_due(due - 1e-6)


@pytest.mark.parametrize("field", ["memory", "huge_pages", "memory_over_time"])
def test_recording_without_memory_of_the_process_is_read(recording, field):
    (document,) = loads(recording)
    del document[field]
    assert loads(dumps([document]).encode()) == [document]


def test_recorder_without_the_memory_map_has_no_memory(monkeypatch):
    def refuse():
        raise OSError("no /proc")

    monkeypatch.setattr(recorder, "process_memory", refuse)
    found = recorder.Recorder({}, tracked=False)
    found.stop()
    document = found.finish("ended")
    assert (document["memory"], document["memory_over_time"]["t"]) == ([], [])


def test_highest_moment_has_rows_by_site_and_scope(recorded):
    result, document = recorded(PROGRAM)
    assert (result.returncode, result.stderr) == (0, "")
    rows = {}  # the largest row of each scope
    for site, scope, _, size in reversed(document["highest"]["rows"]):
        rows[scope] = (place(document, site), size)
    assert rows["outer"] == (f"load at {document['program'][0]}:3", 800_000)
    assert rows["outer/inner"] == (f"<module> at {document['program'][0]}:7", 4_000_000)
    assert document["highest"]["bytes"] == sum(row[3] for row in document["highest"]["rows"])
    assert 4_800_000 <= document["highest"]["bytes"] <= stat(document, "peak")


def test_timeline_records_the_peak_and_exclusive_scope_bytes(recorded):
    _, document = recorded(PROGRAM)
    line = document["timeline"]
    top = max(range(len(line["live"])), key=line["live"].__getitem__)
    scoped = {line["scopes"][scope]: size for scope, size in line["scoped"][top]}
    assert scoped.keys() == {"outer", "outer/inner"}
    few = 100  # a sample taken inside of ones() includes its scalar
    assert 800_000 <= scoped["outer"] < 800_000 + few
    assert 4_000_000 <= scoped["outer/inner"] < 4_000_000 + few
    assert line["live"][top] >= 4_800_000
    assert line["t"] == sorted(line["t"])
    assert min(line["resident"]) > 0


@needs_gil
def test_recording_lists_live_buffers_with_holders_at_the_end(recorded):
    _, document = recorded(PROGRAM)
    columns = document["live"]["columns"]
    rows = [dict(zip(columns, row, strict=True)) for row in document["live"]["rows"]]
    (row,) = [row for row in rows if row["nbytes"] == 800_000]
    assert row["scope"] == "outer"
    assert place(document, row["site"]).startswith("load at ")
    assert "__main__.kept" in "\n".join(document["holders"][0]["lines"])
    assert sum(each["bytes"] for each in document["held"]) == sum(row["nbytes"] for row in rows)
    assert document["lost"] == []


@needs_gil
def test_lost_buffers_are_all_counted_among_larger_buffers(recorded):
    _, document = recorded(
        "import ctypes, numpy as np\n"
        "kept = [np.ones(50_000) for _ in range(120)]\n"
        "def lose():\n"
        "    array = np.ones(1000)\n"
        "    ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))\n"
        "for _ in range(110): lose()\n"
    )
    (lost,), (held,) = document["lost"], document["held"]
    assert (lost["buffers"], held["buffers"]) == (110, 120)
    assert "120 x `__main__.kept[...]`" in held["lines"]


@needs_gil
def test_recording_has_lost_buffers_and_wasted_bytes(recorded):
    _, document = recorded(
        "import ctypes, numpy as np\n"
        "lost = np.ones(20_000)\n"
        "ctypes.pythonapi.Py_IncRef(ctypes.py_object(lost))\n"
        "del lost\n"
        "head = np.ones(50_000)[:10]\n"
    )
    (lost,) = document["lost"]
    assert (lost["bytes"], lost["buffers"]) == (160_000, 1)
    assert lost["place"].endswith("program.py:2")
    assert document["retention"]["count"] == 1
    assert document["retention"]["wasted"] == 400_000 - 80


@needs_gil
def test_recording_has_the_100_largest_groups_of_buffers(recorded):
    lines = [f"kept.append(np.ones({1000 - number}))\n" for number in range(102)]
    _, document = recorded("import numpy as np\nkept = []\n" + "".join(lines))
    assert [each["bytes"] for each in document["held"]] == [8 * (1000 - n) for n in range(100)]


def test_total_counts_all_allocations_by_site(recorded):
    _, document = recorded(
        "import numpy as np\nfor _ in range(100):\n    x = np.empty(1000, np.uint8)\n"
    )
    totals = {place(document, site): (count, size) for site, count, size in document["total"]}
    assert totals[f"<module> at {document['program'][0]}:3"] == (100, 100_000)


def test_sampling_estimates_the_bytes_from_fewer_rows(recorded):
    code = "import numpy as np\nkept = [np.ones(125) for _ in range(20_000)]\n"
    _, document = recorded(code, "--sample", "64K")
    assert len(document["live"]["rows"]) < 2000
    assert 15_000_000 < document["highest"]["bytes"] < 25_000_000


def test_scopes_beyond_the_limit_are_summed_without_a_name():
    assert largest([("a", 1), ("b", 0)]) == [("a", 1)]
    many = largest([(f"s{i}", i) for i in range(1, 21)])
    assert many[0] == ("s20", 20)
    assert many[-1] == ("", 1 + 2 + 3 + 4)
    assert sum(size for _, size in many) == sum(range(21))


@given(st.lists(st.integers(0, 1000), max_size=50), st.integers(1, 300))
def test_timeline_is_bounded_and_keeps_its_maximum(lives, times):
    timeline = Timeline()
    every = lives * times
    for t, live in enumerate(every):
        timeline.add(Sample(t, live, 0, 0, []))
    kept = timeline.samples
    assert len(kept) <= MOST_SAMPLES
    assert [each.t for each in kept] == sorted({each.t for each in kept})
    assert max((each.live for each in kept), default=0) == max(every, default=0)
    assert all(every[int(each.t)] == each.live for each in kept)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 3)), max_size=400), st.booleans())
def test_listings_are_bounded_and_keep_maximum_and_allocations(steps, close):
    kept, total = Listings(), []
    for i, (live, site) in enumerate(steps):
        total = [*total, *[(0, 0)] * (site + 1 - len(total))]
        total[site] = (total[site][0] + 1, total[site][1] + 10)
        if close and i == len(steps) - 1:
            kept.gap = 0.0
        kept.add(0.01 * i, {(1, None): (1, live)}, total)
    assert len(kept.kept) <= MOST_LISTINGS
    times = [each.t for each in kept.kept]
    assert times == sorted(set(times))
    lives = [live for live, _ in steps]
    assert max((each.nbytes for each in kept.kept), default=0) == max(lives, default=0)
    came = {}
    for each in kept.kept:
        came = listings.added(came, each.came)
    if close and steps:
        assert came == {site: row for site, row in enumerate(total, 1) if row[0]}
        assert times[-1] == 0.01 * (len(steps) - 1)
    assert all(came[site][1] <= total[site - 1][1] for site in came)


def test_listing_sums_small_rows_under_site_0():
    by_place = {(site, "s"): (1, site) for site in range(1, 1001)}
    kept = Listings()
    kept.add(0.0, by_place, [(2, 2 * site) for site in range(1, 1001)])
    (document,) = kept.to_dict(lambda site: site)
    assert (document["bytes"], len(document["rows"])) == (500_500, MOST_ROWS)
    assert document["rows"][0] == [1000, "s", 1, 1000]
    assert document["rows"][-1] == [0, None, 801, sum(range(802))]
    assert document["came"][-1] == [0, 1602, 2 * sum(range(802))]
    assert set(kept.sites()) == {0, *range(802, 1001)}


def test_listings_show_what_was_live_and_what_came_between(recorded):
    _, document = recorded(
        "import gc, numpy as np, time\n"
        "kept = np.empty(100_000)\n"
        "time.sleep(0.1)\n"
        "for _ in range(50):\n"
        "    np.empty(200_000, 'u1')\n"
        "    time.sleep(0.002)\n"
        "high = np.empty(300_000)\n"
        "(sampler,) = [o for o in gc.get_objects() if type(o).__name__ == 'Sampler']\n"
        "while max((each.nbytes for each in sampler.listings.kept), default=0) < 3_200_000:\n"
        "    time.sleep(0.01)\n"
        "del high\n"
    )
    path, found = document["program"][0], document["listings"]
    highest = max(found, key=lambda each: each["bytes"])
    assert highest["bytes"] >= 3_200_000
    (last,) = found[-1]["rows"]
    assert (place(document, last[0]), last[3]) == (f"<module> at {path}:2", 800_000)
    came = {}
    for each in found:
        for site, count, size in each["came"]:
            before = came.get(place(document, site), (0, 0))
            came[place(document, site)] = (before[0] + count, before[1] + size)
    assert came[f"<module> at {path}:5"] == (50, 10_000_000)
    assert came[f"<module> at {path}:7"] == (1, 2_400_000)


def test_recording_without_listings_is_read(recording):
    (document,) = loads(recording)
    assert document["listings"]
    del document["listings"]
    assert loads(dumps([document]).encode()) == [document]


def test_moment_multiplies_samples_by_sampling_weight():
    row = [1, 100, 1, None, 0.1, 1, "p", "block", 0, "s", 7, 2.5, False]
    named = [2, 10, 1, "n", 0.1, 1, "p", "block", 0, None, 8, 0, False]
    moment = moment_of(1.5, [row, row, named])
    assert moment.by_site == {(7, "s"): (5.0, 500.0)}
    assert moment.by_size == {7: (5.0, 500.0)}
    assert moment.to_dict()["rows"] == [[7, "s", 5, 500]]


# --- No effects on the program. ---

ENDINGS = {
    "normally": ("", 0, "ended"),
    "sys.exit(3)": ("import sys; sys.exit(3)", 3, "ended with status 3"),
    "a text": ("import sys; sys.exit('why')", 1, "ended with status 1"),
    "an exception": ("1 / 0", 1, "ended by ZeroDivisionError"),
    "Ctrl-C": (
        "import os, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "os.kill(os.getpid(), signal.SIGINT)\ninput()",
        -signal.SIGINT,
        "ended by KeyboardInterrupt",
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_each_way_to_end_is_recorded_and_keeps_the_exit_status(ending, recorded):
    code, status, said = ENDINGS[ending]
    code = f"import numpy as np; kept = np.ones(1000)\n{code}\n"
    result, document = recorded(code, stdin=subprocess.PIPE)
    assert (result.returncode, document["ended"]) == (status, said)
    assert 8000 in [row[1] for row in document["live"]["rows"]]


def test_sampler_is_invisible_to_the_program(recorded):
    result, _ = recorded(
        "import threading, sys, time\n"
        "threading.settrace(lambda *a: print('traced'))\n"
        "time.sleep(0.1)\n"
        "print(threading.active_count(), threading.enumerate())\n"
        "print([name for name in sys.modules if name in ('jinja2', 'matplotlib')])\n"
    )
    assert result.stdout.startswith("1 [<_MainThread")
    assert result.stdout.endswith("[]\n")


def test_recording_continues_in_the_parent_after_forks(recorded):
    result, document = recorded(
        "import os, numpy as np, time\n"
        "for _ in range(20):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        kept = np.ones(1000)\n"
        "        raise SystemExit(5)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5\n"
        "kept = np.empty(100_000)\n"
        "time.sleep(0.05)\n",
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert document["ended"] == "ended"
    assert max(document["timeline"]["live"]) >= 800_000


def test_recorded_program_still_receives_its_signals(recorded):
    result, _ = recorded(
        "import os, signal, time\n"
        "seen = []\n"
        "signal.signal(signal.SIGALRM, lambda *a: seen.append(1))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)\n"
        "until = time.monotonic() + 0.3\n"
        "while time.monotonic() < until: time.sleep(0.05)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "print(len(seen) > 5)\n"
    )
    assert result.stdout == "True\n"


def test_failed_sampler_reading_is_noted_in_the_recording(recorded):
    result, document = recorded(
        "import memrt._profile.sampler as sampler\n"
        "scoped = sampler._scoped\n"
        "def fail_once():\n"
        "    sampler._scoped = scoped\n"
        "    raise MemoryError\n"
        "sampler._scoped = fail_once\n"
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert any(note.startswith("1 reading failed") for note in document["notes"])


@needs_gil
def test_ctrl_c_at_the_end_loses_only_the_part_in_progress(recorded):
    result, document = recorded(
        "import numpy as np, memrt._profile.ending as ending\n"
        "kept = np.ones(1000)\n"
        "def interrupt(buffer): raise KeyboardInterrupt\n"
        "ending.held = interrupt\n"
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert document["holders"] == []
    assert any("interrupted by Ctrl-C" in note for note in document["notes"])
    assert 8000 in [row[1] for row in document["live"]["rows"]]
    assert [each["bytes"] for each in document["held"]] == [8000]


# --- Output files. ---


def test_relative_output_path_ignores_chdir_of_the_program(tmp_path):
    (tmp_path / "program.py").write_text("import os; os.chdir('/')\n")
    run_memrt("run", "--record", "out", "program.py", cwd=tmp_path)
    assert loads((tmp_path / "out").read_bytes())


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("missing/file", "No such file"),
        ("folder", "the path is a folder"),
        ("there", "exists already: name another file, or add --force"),
        ("/dev/null", "the path is not a regular file"),
        ("there/file", "Not a directory"),
    ],
)
def test_bad_output_path_is_refused_before_the_program_starts(tmp_path, target, says):
    (tmp_path / "folder").mkdir()
    (tmp_path / "there").write_text("precious")
    (tmp_path / "program.py").write_text("print('ran')\n")
    result = run_memrt("run", "--record", target, "program.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert (tmp_path / "there").read_text() == "precious"


def test_output_file_is_replaced_only_by_a_complete_file(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")
    target_file = Target(str(target), force=True)

    def fail(file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        target_file.write(fail)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("file", "old")]
    target_file.write(lambda file: file.write(b"new"))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("file", "new")]


def test_output_through_a_link_replaces_the_target_of_the_link(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(CommandError, match="--force"):
        Target(str(tmp_path / "link"), force=False)
    Target(str(tmp_path / "link"), force=True).write(lambda file: file.write(b"new"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_removed_output_folder_keeps_the_exit_status(tmp_path):
    (tmp_path / "gone").mkdir()
    (tmp_path / "program.py").write_text("import os; os.rmdir('gone'); raise SystemExit(4)\n")
    result = run_memrt("run", "--record", "gone/file", "program.py", cwd=tmp_path)
    assert result.returncode == 4
    assert result.stderr.splitlines()[-1] == (
        "memrt: cannot write 'gone/file': No such file or directory"
    )


def test_two_outputs_with_the_same_path_are_refused(tmp_path):
    (tmp_path / "program.py").write_text("")
    result = run_memrt("run", "--record", "x", "--html", "./x", "program.py", cwd=tmp_path)
    assert result.returncode == 2
    assert "choose different paths" in result.stderr or "pip install" in result.stderr


@pytest.mark.parametrize(("package", "option"), [("jinja2", "--html"), ("matplotlib", "--plot")])
def test_missing_package_is_reported_before_the_program_starts(tmp_path, package, option):
    code = (
        f"import sys; sys.modules['{package}'] = None; "
        "from memrt.commands import main; main(sys.argv[1:])"
    )
    others = [name for name in ("jinja2", "matplotlib") if name != package]
    for name in others:  # the packages may not be installed
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "program.py").write_text("print('ran')\n")
    result = subprocess.run(
        [sys.executable, "-c", code, "run", option, "out", "program.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (2, "")
    assert f"needs the missing package {package}: pip install 'memrt[report]'" in result.stderr
    assert len(result.stderr.splitlines()) == 1


# --- Reading. ---


def test_recording_is_equal_after_write_and_read(recording):
    documents = loads(recording)
    assert loads(dumps(documents).encode()) == documents
    assert len(loads(dumps(documents * 3).encode())) == 3


def test_truncated_recording_is_refused(recording):
    for end in [*range(0, len(recording) - 1, 997), len(recording) - 1]:
        with pytest.raises(RecordingError):
            loads(recording[:end])


FOREIGN = {
    "empty": (b"", "not a memrt recording"),
    "text": (b"hello\n", "not a memrt recording"),
    "binary": (bytes(range(256)), "not a memrt recording"),
    "other JSON": (b'{"a": 1}\n', "not a memrt recording"),
    "a list": (b"[]\n", "not a memrt recording"),
    "deep": (b"[" * 100_000, "not a memrt recording"),
    "newer": (
        b'{"format": "memrt recording", "version": 2, "processes": 1}\n',
        "format version must be 1 for this memrt, got 2: use the memrt that wrote the recording",
    ),
    "no process": (
        b'{"format": "memrt recording", "version": 1, "processes": 0}\n{"end": 0}\n',
        "processes must be 1 or more, got 0",
    ),
    "process of wrong type": (
        b'{"format": "memrt recording", "version": 1, "processes": 1}\n[]\n{"end": 1}\n',
        "damaged",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_invalid_recording_gives_a_single_line_error(name, tmp_path):
    content, says = FOREIGN[name]
    (tmp_path / "file").write_bytes(content)
    result = run_memrt("report", tmp_path / "file", "-o", tmp_path / "page")
    assert result.returncode == 2
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "page").exists()


def test_recording_is_not_replaced_by_its_own_page(tmp_path, recording):
    (tmp_path / "run.html").write_bytes(recording)
    result = run_memrt("report", "run.html", "--force", cwd=tmp_path)
    assert result.returncode == 2
    assert "is the recording itself" in result.stderr
    assert (tmp_path / "run.html").read_bytes() == recording


def test_failed_start_leaves_no_recording(tmp_path):
    (tmp_path / "program.py").write_text("")
    code = (
        "import memrt\nfrom memrt.commands import main\n"
        "def fail(policy): raise MemoryError\n"
        "memrt.enable = fail\n"
        "main(['run', '--record', 'out', 'program.py'])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert [each.name for each in tmp_path.iterdir()] == ["program.py"]


def test_missing_recording_gives_a_single_line_error(tmp_path):
    result = run_memrt("report", tmp_path / "none")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "No such file" in result.stderr


def paths(value, path=()):
    """Yield the paths of values in a document, with at most 3 items of each container."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items)[:3]:
        if isinstance(item, (dict, list)):
            yield from paths(item, (*path, key))
        else:
            yield (*path, key)


def test_field_of_wrong_type_is_refused(recording):
    (document,) = loads(recording)
    for path in paths(document):
        if not path:
            continue
        damaged = json.loads(json.dumps(document))
        inside = damaged
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = {"of": "another kind"}
        with pytest.raises(RecordingError, match="damaged"):
            loads(dumps([damaged]).encode())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("timeline", "t"), []),
        (("timeline", "scoped", 0), [[99, 1]]),
        (("sites", 0, 2), [10**6]),
        (("sites", 0, 2), [-1]),
        (("highest", "sizes"), [[65, 1, 1]]),
        (("memory_over_time", "t"), []),
        (("memory_over_time", "parts", 0, "resident"), []),
        (("seconds",), float("nan")),
    ],
)
def test_invalid_indices_and_numbers_are_refused(recording, path, value):
    (damaged,) = loads(recording)
    inside = damaged
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    with pytest.raises(RecordingError, match="damaged"):
        loads(dumps([damaged]).encode())


@pytest.mark.parametrize("number", ["1" + "0" * 400, "18446744073709551616", "1e999", "-1e999"])
@pytest.mark.parametrize("field", ["seconds", "pid"])
def test_recording_with_number_beyond_64_bits_is_refused(recording, field, number):
    first, line, end = recording.split(b"\n", 2)
    document = {**json.loads(line), field: "NUMBER"}
    line = json.dumps(document).replace('"NUMBER"', number).encode()
    with pytest.raises(RecordingError, match=rf"the recording is damaged: '{field}'"):
        loads(b"\n".join([first, line, end]))
