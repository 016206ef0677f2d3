"""``python -m memrt top`` with real processes: running, ended and killed."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from contextlib import contextmanager

import memrt
import pytest
from memrt._process import outside
from memrt._telemetry import stats_pages
from waiting import only_user_of_dead_pages

pytestmark = pytest.mark.slow

PROGRAM = """
import os, sys, memrt, numpy as np
with memrt.scope("outer"), memrt.scope("in [red]ner"):
    kept = memrt.empty(2_000_000, "u1")
with memrt.Policy(name="mine") as policy:
    array = np.ones(3_000_000, "u1")
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def top(*arguments: object, **options: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "memrt", "top", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


@contextmanager
def sharing(*command: str, code: str = PROGRAM):
    """Yield a process that shares statistics, after the allocations appear; then kill the
    process and remove its statistics page.
    """
    command = command or (sys.executable, "-c", code)
    environment = {**os.environ, "MEMRT_SHARE": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        pid = int(process.stdout.readline())
        until = time.monotonic() + 30
        while _live(pid) < 5_000_000:
            assert time.monotonic() < until
            time.sleep(0.02)
        try:
            yield process
        finally:
            process.kill()
    for page in stats_pages.pages():
        if page.pid == pid:
            page.path.unlink()


def _live(pid: int) -> int:
    try:
        return stats_pages.read(stats_pages.page_of(pid)).stats.live
    except stats_pages.PageError:
        return 0


@pytest.fixture(scope="module")
def process():
    with sharing() as found:
        yield found


def test_process_is_listed_once_as_running(process):
    result = top("--once")
    assert (result.returncode, result.stderr) == (0, "")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[1][:6] == ["program", "PID", "state", "live", "peak", "total"]
    mine = [line for line in result.stdout.splitlines() if f" {process.pid}  running " in line]
    assert len(mine) == 1
    assert mine[0].startswith("-c ")
    assert "\x1b" not in result.stdout


def test_policies_and_scopes_of_a_process_are_listed(process):
    result = top(process.pid, "--once", "--sort", "name")
    assert (result.returncode, result.stderr) == (0, "")
    names = [line.partition("  ")[0] for line in result.stdout.splitlines()]
    assert names.index("default #0") < names.index("outer") < names.index("outer/in [red]ner")
    assert any(name.startswith("mine #") for name in names)


def test_memory_of_a_process_is_listed_by_part(process):
    title, rows = top(process.pid, "--once").stdout.split("memory of the process\n")
    head, *parts = rows.splitlines()
    assert head.split() == ["part", "resident", "mapped"]
    assert "arrays, malloc, Python and other anonymous memory" in rows
    assert len(parts) >= 3
    assert f"process {process.pid}, running" in title


def test_unreadable_process_has_no_parts():
    assert outside.read_parts(2**22 + 1) == []


def test_output_to_a_pipe_needs_no_once_option(process):
    shown = top(process.pid).stdout
    assert shown.startswith("-c ")
    assert f"\nprocess {process.pid}, running, updated " in shown
    assert f" ago, child of {os.getpid()}\n" in shown
    assert f"allocation sites: python -m memrt attach {process.pid} --report" in shown


def test_json_has_the_statistics_of_policies_and_scopes(process):
    told = json.loads(top(process.pid, "--json").stdout)
    assert (told["format"], told["version"]) == ("memrt-top", 1)
    (one,) = told["processes"]
    assert (one["pid"], one["state"]) == (process.pid, "running")
    assert set(one["process"]) == set(memrt.stats().to_dict())
    assert {row["name"]: row["stats"]["live"] for row in one["policies"]}["mine"] == 3_000_000
    scopes = {tuple(row["path"]): row["stats"]["live"] for row in one["scopes"]}
    assert scopes == {("outer",): 2_000_000, ("outer", "in [red]ner"): 2_000_000}
    sizes = [part["resident"] for part in one["memory"]]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == pytest.approx(one["resident"], rel=0.05)
    assert "programs and libraries" in [part["name"] for part in one["memory"]]
    every = json.loads(top("--json").stdout)["processes"]
    assert process.pid in [row["pid"] for row in every]


def test_filter_and_tree_options_choose_and_order_the_rows(process):
    shown = top("--once", "--filter", "NP.ONES").stdout
    assert f" {process.pid} " in shown
    assert "contain 'NP.ONES'" in shown
    none = top("--once", "--filter", "no such program").stdout
    assert f" {process.pid} " not in none
    assert "; 0 of " in none
    assert f" {process.pid} " in top("--once", "--tree").stdout


def test_recording_without_a_terminal_ends_with_its_time(process, tmp_path):
    path = tmp_path / "load.jsonl"
    options = ("--record", str(path), "--interval", "0.2", "--seconds", "1")
    result = top(process.pid, *options)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert result.stdout == f"recorded {len(rows)} rows\n"
    assert len({row["time"] for row in rows}) >= 2
    assert {(row["kind"], row["name"]) for row in rows} >= {("process", ""), ("scope", "outer")}
    assert {row["live"] for row in rows if row["name"] == "outer"} == {2_000_000}
    rare = ("--record", str(tmp_path / "rare.jsonl"), "--interval", "1000", "--seconds", "0.2")
    assert top(process.pid, *rare).returncode == 0  # the end does not wait for the interval
    refused = top(process.pid, *options)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "exists already: name another file, or add --force" in refused.stderr
    assert top("--once", *options, "--force").returncode == 0
    assert str(process.pid) in path.read_text()


def test_csv_names_that_look_like_formulas_stay_text(tmp_path):
    path = tmp_path / "load.csv"
    with sharing(code=PROGRAM.replace("mine", "=1+1")) as process:
        top(process.pid, "--record", str(path), "--interval", "0.1", "--seconds", "0.3")
    with path.open(newline="", encoding="utf-8") as file:
        names = {row["name"] for row in csv.DictReader(file) if row["kind"] == "policy"}
    assert any(name.startswith("'=1+1 #") for name in names)


def test_recording_ends_with_its_process_and_by_signal(tmp_path):
    path = tmp_path / "load.csv"
    for end in (True, False):
        with sharing() as process:
            command = [
                sys.executable,
                "-m",
                "memrt",
                "top",
                str(process.pid),
                "--record",
                str(path),
            ]
            with subprocess.Popen(
                [*command, "--force", "--interval", "0.1"], stdout=subprocess.PIPE, text=True
            ) as recording:
                until = time.monotonic() + 30
                while not path.exists() or path.read_text().count("\n") < 3:
                    assert time.monotonic() < until
                    time.sleep(0.05)
                if end:
                    process.kill()
                    process.wait(timeout=30)
                else:
                    recording.terminate()
                said = recording.communicate(timeout=60)[0]
        assert recording.returncode == 0
        assert said.startswith("recorded ")
        assert ("no longer runs" in said) == end
        path.unlink()


def test_sort_option_orders_the_rows(process):
    by_live = top(process.pid, "--once").stdout
    assert by_live.index("mine #") < by_live.index("default #0")
    by_name = top(process.pid, "--once", "--sort", "name").stdout
    assert by_name.index("default #0") < by_name.index("mine #")
    with sharing(code=PROGRAM.replace("3_000_000", "30_000_000")) as larger:
        order = top("--once", "--sort", "peak").stdout
        assert order.index(f" {larger.pid} ") < order.index(f" {process.pid} ")


def test_killed_process_is_listed_until_clean():
    with only_user_of_dead_pages(), sharing() as process:
        process.kill()
        process.wait(timeout=30)
        (one,) = json.loads(top(process.pid, "--json").stdout)["processes"]
        assert one["state"] == "dead"
        assert one["memory"] == []
        assert one["process"]["live"] >= 5_000_000
        assert one["scopes"][0]["stats"]["live"] == 2_000_000
        assert f" {process.pid}  dead " in top("--once").stdout
        cleaned = top("--clean")
        assert cleaned.returncode == 0
        assert cleaned.stdout.startswith("removed ")
        result = top(process.pid, "--once")
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr == (
            f"memrt: no process {process.pid} is running, "
            f"and no page of process {process.pid} is left\n"
        )


def test_ended_process_removes_its_page():
    with sharing() as process:
        path = stats_pages.page_of(process.pid).path
        process.stdin.close()
        assert process.wait(timeout=30) == 0
        assert not path.exists()


def test_process_that_does_not_share_gives_a_hint():
    result = top(os.getpid())
    assert result.returncode == 2
    assert "does not share statistics: start the program with MEMRT_SHARE=1" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("x",),
        ("--sort", "age"),
        ("--seconds", "0"),
        ("--interval", "0"),
        ("--interval", "soon"),
        ("1", "2"),
    ],
)
def test_bad_arguments_exit_with_status_2(arguments):
    result = top(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    assert " _" not in result.stderr, "stderr shows an internal name of memrt"


def test_run_with_share_option_shares_statistics(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with sharing(
        sys.executable, "-m", "memrt", "run", "--share", "--quiet", str(script)
    ) as process:
        policies = json.loads(top(process.pid, "--json").stdout)["processes"][0]["policies"]
        assert "run" in [policy["name"] for policy in policies]


def test_sharing_can_start_and_stop_in_a_running_process(run_python):
    code = """
import memrt, time
from memrt._process import outside
from memrt._telemetry import stats_pages
import os
memrt.set_option("share", True)
page = stats_pages.page_of(os.getpid())
while page.path.stat().st_size == 0: time.sleep(0.01)
memrt.set_option("share", False)
values = {option.name: option.value for option in memrt.debug.options()}
print(page.path.exists(), values["MEMRT_SHARE"])
"""
    assert run_python(code).stdout == "False 0\n"


def test_failed_page_creation_only_warns(run_python):
    code = """
import os, warnings
from pathlib import Path
started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
page = Path(f"/dev/shm/memrt-{os.geteuid()}", f"{os.getpid()}-{started}")
page.parent.mkdir(0o700, exist_ok=True)
page.mkdir()  # where its file would be
os.environ["MEMRT_SHARE"] = "1"
try:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import memrt
finally:
    page.rmdir()
print(*(f"{each.category.__name__}: {each.message}" for each in caught))
print(memrt.zeros(3).sum())
"""
    warned, worked = run_python(code).stdout.splitlines()
    assert warned.startswith("RuntimeWarning: MEMRT_SHARE is refused: ")
    assert warned.endswith(" cannot be created: File exists")
    assert worked == "0.0"


def test_forked_child_has_its_own_page(run_python):
    code = """
import multiprocessing, os, time, memrt
from memrt._process import outside
from memrt._telemetry import stats_pages

def work(queue):
    kept = memrt.empty(9_000_000, "u1")
    while True:
        try:
            queue.put(stats_pages.read(stats_pages.page_of(os.getpid())).stats.live)
            return
        except stats_pages.PageError:
            time.sleep(0.02)

memrt.set_option("share", True)
queue = multiprocessing.get_context("fork").Queue()
child = multiprocessing.get_context("fork").Process(target=work, args=(queue,))
child.start()
print(queue.get(timeout=50) >= 9_000_000, stats_pages.page_of(os.getpid()).runs)
child.join()
for page in stats_pages.pages():
    if page.pid == child.pid: page.path.unlink()
"""
    assert run_python(code, flags=("-W", "ignore")).stdout == "True True\n"


class Terminal:
    """`top` at a terminal; `text` is its output."""

    def __init__(self, *arguments: object, stdin: str = "", **environment: str) -> None:
        self.text = ""
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a parent may ignore SIGINT
            if stdin:
                os.dup2(os.open(stdin, os.O_RDONLY), 0)
            os.environ.update({"TERM": "xterm-256color", "COLUMNS": "150", **environment})
            os.execv(sys.executable, [sys.executable, "-m", "memrt", "top", *map(str, arguments)])

    def read_until(self, *parts: str) -> None:
        """Read until all parts appear; without parts, read until the end."""
        until = time.monotonic() + 50
        while not parts or not all(part in self.text for part in parts):
            assert time.monotonic() < until, f"{parts} not in {self.text}"
            if not select.select([self._file], [], [], 0.1)[0]:
                continue
            try:
                read = os.read(self._file, 65536)
            except OSError:
                break
            self.text += read.decode(errors="replace")

    def send(self, key: bytes) -> None:
        os.write(self._file, key)

    def waits_for_lines(self) -> bool:
        """Return whether the terminal delivers keys only at the end of a line, its initial mode."""
        return bool(termios.tcgetattr(self._file)[3] & termios.ICANON)

    def status(self) -> int:
        self.read_until()
        assert self.waits_for_lines()
        os.close(self._file)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


ALTERNATE, NORMAL, CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"


@pytest.mark.usefixtures("pseudo_terminal")
@pytest.mark.parametrize("key", [b"\x03", b"q", signal.SIGTERM], ids=["Ctrl-C", "q", "SIGTERM"])
def test_view_updates_until_the_end_and_restores_the_terminal(process, key):
    terminal = Terminal("--interval", "0.1")
    terminal.read_until(ALTERNATE, str(process.pid), "running")
    assert not terminal.waits_for_lines()
    terminal.text = ""
    terminal.read_until(str(process.pid), "Ctrl-C ends")  # a second drawing
    if isinstance(key, bytes):
        terminal.send(key)
    else:
        os.kill(terminal.pid, key)
    assert terminal.status() == 0
    assert NORMAL in terminal.text
    assert CURSOR in terminal.text
    assert "Traceback" not in terminal.text


@pytest.mark.usefixtures("pseudo_terminal")
def test_keys_sort_by_another_column(process):
    terminal = Terminal("--interval", "3600")
    terminal.read_until(ALTERNATE, "by live")
    for key, column in [(b"s", "peak"), (b"\x1b[C", "total"), (b"\x1b[D", "peak"), (b"S", "live"),
                        (b"S", "name"), (b"s", "live"), (b"\x1bOD", "name")]:  # fmt: skip
        terminal.text = ""
        terminal.send(key)
        terminal.read_until(f"by {column};")
    terminal.text = ""
    terminal.send(b"x")  # no meaning, except to draw the view again
    terminal.read_until("by name;")
    terminal.send(b"q")
    assert terminal.status() == 0


@pytest.mark.usefixtures("pseudo_terminal")
def test_keys_filter_open_and_leave_a_process(process, tmp_path):
    path = tmp_path / "load.jsonl"
    terminal = Terminal("--interval", "3600", "--record", path)
    terminal.read_until(ALTERNATE, "by live")
    for keys, seen in [
        (b"/", "filter: _"), (b"no such", "filter: no such_"), (b"\x7f" * 7, "filter: _"),
        (f"{process.pid}".encode(), f"filter: {process.pid}_"), (b"\r", f"contain '{process.pid}'"),
        (b"t", "by live"), (b"\x1b[B", "by live"), (b"\r", "whole process"),
        (b"\x1b[B", "Esc: all processes"), (b"\x1b", f"contain '{process.pid}'"),
        (b"\x1b", "running, "),
    ]:  # fmt: skip
        terminal.text = ""
        terminal.send(keys)
        terminal.read_until(seen)
    assert "contain" not in terminal.text
    terminal.send(b"q")
    assert terminal.status() == 0
    assert str(process.pid) in path.read_text()


@pytest.mark.usefixtures("pseudo_terminal")
def test_opened_process_that_leaves_gives_the_list(process):
    with sharing(code=PROGRAM.replace("mine", "other")) as other:
        terminal = Terminal("--interval", "0.1", "--filter", other.pid)
        terminal.read_until(ALTERNATE, f"contain '{other.pid}'")
        terminal.send(b"\r")
        terminal.read_until("other #")
        other.stdin.close()
        assert other.wait(timeout=30) == 0
        terminal.read_until(f"process {other.pid} has ended; by live")
        terminal.send(b"q")
        assert terminal.status() == 0


@pytest.mark.usefixtures("pseudo_terminal")
def test_seconds_option_ends_the_view(process):
    terminal = Terminal("--interval", "0.1", "--seconds", "1")
    terminal.read_until(ALTERNATE, "by live")
    assert terminal.status() == 0


@pytest.mark.usefixtures("pseudo_terminal")
def test_view_is_drawn_without_a_keyboard(process):
    terminal = Terminal("--interval", "0.1", stdin=os.devnull)
    terminal.read_until(ALTERNATE, str(process.pid), "Ctrl-C ends")
    assert terminal.waits_for_lines()
    terminal.send(b"\x03")
    assert terminal.status() == 0


@pytest.mark.usefixtures("pseudo_terminal")
def test_view_ends_with_last_values_if_its_process_is_killed():
    with sharing() as process:
        terminal = Terminal(process.pid, "--interval", "0.1")
        terminal.read_until(ALTERNATE, "in [red]ner", "running", "whole process")
        process.kill()
        process.wait(timeout=30)
        assert terminal.status() == 0
        last = terminal.text.rpartition(NORMAL)[2]
        assert f"process {process.pid} no longer runs" in last
        assert "mine #" in last


@pytest.mark.usefixtures("pseudo_terminal")
def test_narrow_window_shows_fewer_columns(process):
    terminal = Terminal("--interval", "0.1", COLUMNS="60", NO_COLOR="1")
    terminal.read_until(ALTERNATE, str(process.pid), "program", "q ends")
    terminal.send(b"\x03")
    assert terminal.status() == 0
    last = terminal.text.partition(NORMAL)[0]
    assert re.search(rf"-c .+… +{process.pid} +running +4\.8 MiB", last)
    assert "failed" not in last


@pytest.mark.usefixtures("pseudo_terminal")
def test_no_color_disables_colours(process):
    terminal = Terminal(process.pid, "--interval", "0.1", NO_COLOR="1")
    terminal.read_until(ALTERNATE, "in [red]ner")
    terminal.send(b"\x03")
    assert terminal.status() == 0
    assert "36m" not in terminal.text


WITHOUT = """
import sys, importlib.util
importlib.util.find_spec = lambda name: None
sys.stdout.isatty = lambda: True
from memrt.commands import main
main(["top"])
"""


def test_view_without_rich_gives_install_hint(run_python):
    result = run_python(WITHOUT, check=False)
    assert result.returncode == 2
    assert result.stderr == (
        "memrt: the live view needs the missing package rich: "
        "pip install rich, or use --once or --json\n"
    )
