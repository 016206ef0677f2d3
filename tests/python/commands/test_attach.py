"""``python -m memrt attach`` with real processes, prepared for nothing."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import memrt
import pytest
from memrt._profile.recording import loads
from memrt._telemetry import stats_pages
from memrt.commands.attaching import attach as command
from memrt.commands.attaching import inside, symbols, target, tracing
from memrt.commands.attaching.mailbox import Mailbox
from memrt.commands.attaching.payload import as_statement, payload
from memrt.commands.live_view import asked_sites
from memrt.commands.live_view.asked_sites import ask_for_sites
from memrt.commands.live_view.tables import Table
from memrt.commands.output.errors import CommandError

SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")


def may_trace() -> bool:
    return os.geteuid() == 0 or not SCOPE.exists() or SCOPE.read_text().strip() == "0"


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="attach needs x86-64"),
    pytest.mark.skipif(not may_trace(), reason="the kernel refuses to trace programs"),
]

SERVICE = """
import sys, time, numpy as np
kept = []
def load():
    kept.append(np.ones(1000))
print("ready", flush=True)
while True:
    load()
    time.sleep(0.02)
"""


@contextmanager
def running(code: str, *flags: str, program: str = sys.executable, **options):
    """Yield a process that has printed a line; kill the process at the end."""
    environment = {k: v for k, v in os.environ.items() if k != "MEMRT_SHARE"}
    with subprocess.Popen(
        [program, *flags, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, **{"env": environment, **options},
    ) as process:  # fmt: skip
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()
    for page in stats_pages.pages():
        if page.pid == process.pid:
            page.path.unlink()


def attach(*arguments: object, **options) -> subprocess.CompletedProcess:
    words = [sys.executable, "-m", "memrt", "attach", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=200, **options)


def refused(*arguments: object) -> str:
    result = attach(*arguments)
    assert (result.returncode, result.stdout) == (2, ""), result
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("memrt: ").rstrip("\n")


def leftovers(pid: int) -> list[str]:
    folder = Path(f"/dev/shm/memrt-{os.geteuid()}")
    return [path.name for path in folder.glob(f"attach-{pid}-*")]


def live(pid: int) -> int:
    with contextlib.suppress(stats_pages.PageError):
        return stats_pages.read(stats_pages.page_of(pid)).stats.live
    return 0


def test_attached_process_is_counted_until_detach():
    with running(SERVICE) as process:
        result = attach(process.pid)
        assert result.returncode == 0, result.stderr
        assert result.stdout == (
            f"memrt: attached to process {process.pid}: arrays of the main thread and of new "
            f"threads from now on\nmemrt: `python -m memrt top {process.pid}` shows the process, "
            f"`python -m memrt attach {process.pid} --detach` ends\n"
        )
        until = time.monotonic() + 30
        while live(process.pid) < 80_000:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert attach(process.pid, "--track").returncode == 0  # a second time
        assert attach(process.pid, "--detach").stdout == (
            f"memrt: detached from process {process.pid}\n"
        )
        with pytest.raises(stats_pages.PageError, match="does not share statistics"):
            stats_pages.page_of(process.pid)
        assert refused(process.pid, "--detach") == f"process {process.pid} is not attached"
        assert process.poll() is None
    assert leftovers(process.pid) == []


def test_report_names_the_lines_of_the_program(tmp_path):
    recording, page = tmp_path / "now.memrt", tmp_path / "now.html"
    with running(SERVICE) as process:
        result = attach(process.pid, "--report", recording, "--seconds", "1")
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout == f"memrt: recording in {recording}\n"
        (document,) = loads(recording.read_bytes())
        assert document["pid"] == process.pid
        assert document["ended"] == "recorded for up to 1 s by memrt attach"
        assert "load" in json.dumps(document["frames"])
        assert len(document["live"]["rows"]) >= 5
        assert "exists already" in refused(process.pid, "--report", recording)
        assert refused(process.pid, "--detach").endswith("is not attached")
        assert attach(process.pid).returncode == 0
        assert attach(process.pid, "--report", page, "--seconds", "0.5").returncode == 0
        assert page.read_bytes().startswith(b"<!DOCTYPE html>")
        assert attach(process.pid, "--detach").returncode == 0
    assert leftovers(process.pid) == []


UNTIL_RECORDED = """recorded = 0
while recorded < 50:
    memrt = sys.modules.get("memrt._memrt")
    recorded += memrt is not None and memrt.tracking_enabled()"""


def test_recording_is_complete_if_the_process_exits(tmp_path):
    path = tmp_path / "now.memrt"
    with running(SERVICE.replace("while True:", UNTIL_RECORDED)) as process:
        result = attach(process.pid, "--report", path, "--seconds", "60")
        assert result.returncode == 0, result.stderr
        assert process.wait(timeout=60) == 0
    assert loads(path.read_bytes())[0]["pid"] == process.pid


def test_sites_of_a_process_are_a_table():
    with running(SERVICE) as process:
        off = f"allocation sites: tracking is off: python -m memrt attach {process.pid} --track"
        assert ask_for_sites(process.pid) == Table(off)
        assert attach(process.pid, "--track").returncode == 0
        until = time.monotonic() + 30
        while not (table := ask_for_sites(process.pid)).rows:
            assert time.monotonic() < until
        assert table.title == "allocation sites of the tracked buffers"
        assert table.header == ["site", "live", "blocks"]
        (cells,) = [row.cells for row in table.rows]
        assert cells[0].startswith("load at ")
        assert cells[1].endswith("KiB")
        assert int(cells[2]) >= 1
        assert process.poll() is None
    assert leftovers(process.pid) == []
    assert ask_for_sites(process.pid).title.startswith("allocation sites: ")


@pytest.mark.parametrize(
    ("answer", "title", "rows"),
    [
        ({"sites": [["a\x1b[2J", 2048, 2]], "more": 3, "tracked": False},
         "allocation sites of the tracked buffers; 3 more lines", [["a?[2J", "2.0 KiB", "2"]]),
        ({"sites": [], "more": 0, "tracked": True}, "allocation sites of the tracked buffers", []),
        ({"sites": [7], "more": 0}, "allocation sites: process 7 wrote no answer", []),
        ({"sites": [["a", "x", 1]], "more": 0}, "allocation sites: process 7 wrote no answer", []),
        ({}, "allocation sites: process 7 wrote no answer", []),
    ],
)  # fmt: skip
def test_answers_about_sites_are_checked(monkeypatch, answer, title, rows):
    class Box:
        removed = False

        def remove(self):
            self.removed = True

    box = Box()
    box.answer = answer
    monkeypatch.setattr(asked_sites, "target_of", lambda pid: pid)
    monkeypatch.setattr(asked_sites, "ask", lambda *_: box)
    table = ask_for_sites(7)
    assert (table.title, [row.cells for row in table.rows]) == (title, rows)
    assert box.removed


def test_waiting_threads_are_named():
    code = """
import threading, time
for _ in range(2): threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
print("ready", flush=True)
while True: time.sleep(0.05)
"""
    with running(code) as process:
        assert "threads from now on; 2 running threads not reached\n" in attach(process.pid).stdout


# Statements that take a while, and the least seconds of each without an early end.
WITHOUT_PYTHON = {
    "sleep": ("time.sleep(2)", 2),
    "select": ("select.select([sys.stdin], [], [], 2)", 2),
    "join": ("t = threading.Thread(target=time.sleep, args=(2,)); t.start(); t.join()", 2),
    "code without the GIL": ("ctypes.CDLL(None).usleep(2_000_000)", 0),
    "code with the GIL": ("ctypes.PyDLL(None).usleep(2_000_000)", 0),
    "work without the GIL": ("hashlib.pbkdf2_hmac('sha256', b'', b'', 5_000_000)", 0),
}


@pytest.mark.parametrize("state", WITHOUT_PYTHON)
def test_process_outside_of_python_code_is_reached_later(state):
    statement, least = WITHOUT_PYTHON[state]
    code = f"""
import ctypes, hashlib, select, sys, threading, time
print("ready", flush=True)
begun = time.monotonic()
{statement}
took = time.monotonic() - begun
while "memrt" not in sys.modules: time.sleep(0.01)
print(took >= {least}, "memrt" in sys.modules, flush=True)
sys.stdin.read()
"""
    with running(code) as process:
        result = attach(process.pid, "--wait", "60")
        assert result.returncode == 0, result.stderr
        assert process.stdout.readline() == "True True\n"


def test_request_is_withdrawn_from_a_process_that_waits():
    code = """
import sys, time
print("ready", flush=True)
sys.stdin.readline()
for _ in range(10): time.sleep(0.01)
print("memrt" in sys.modules, flush=True)
"""
    with running(code) as process:
        assert refused(process.pid, "--wait", "0.5") == (
            f"the main thread of process {process.pid} ran no Python code for 0.5 s, so nothing "
            "was changed: try again, or add --wait SECONDS"
        )
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "False\n"
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == ""
    assert leftovers(process.pid) == []


def test_process_that_ends_meanwhile_is_named():
    with running("import sys\nprint('ready', flush=True)\nsys.stdin.read()") as process:
        words = [sys.executable, "-m", "memrt", "attach", str(process.pid), "--wait", "60"]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as attaching:
            until = time.monotonic() + 60
            while not leftovers(process.pid):
                assert time.monotonic() < until
                time.sleep(0.02)
            time.sleep(1)
            process.kill()
            process.wait(timeout=30)
            said = attaching.communicate(timeout=60)[1]
        assert attaching.returncode == 2
        assert said == f"memrt: process {process.pid} has ended\n"
    assert leftovers(process.pid) == []


def test_environment_without_memrt_is_named(tmp_path):
    with running("import time\nprint('ready', flush=True)\nwhile 1: time.sleep(0.1)", "-IS") as one:
        why = refused(one.pid)
        assert why.startswith(f"process {one.pid} cannot import memrt (No module named 'memrt'")
        assert f"install memrt for {sys.executable}" in why
    (tmp_path / "memrt.py").write_text("__version__ = '9.9'")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with running(SERVICE, env=environment) as other:
        assert refused(other.pid) == (
            f"process {other.pid} has memrt 9.9, and the command has memrt {memrt.__version__}: "
            "use the memrt of the process"
        )


def test_results_of_vector_code_are_unchanged(tmp_path):
    done = tmp_path / "done"
    code = f"""
import hashlib, os, sys, numpy as np
print("ready", flush=True)
data, seen = np.arange(100_000, dtype="f8"), set()
while not os.path.exists({str(done)!r}):
    seen.add((float(data.dot(data)), hashlib.sha256(data).hexdigest(), float(np.sqrt(data).sum())))
print(len(seen), flush=True)
sys.stdin.read()
"""
    with running(code) as process:
        for _ in range(5):
            assert attach(process.pid, "--wait", "60").returncode == 0
        done.touch()
        assert process.stdout.readline() == "1\n"


def test_stopped_process_is_not_traced_afterwards():
    with running(SERVICE) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        for _ in range(2):  # a process has one tracer at most
            with pytest.raises(tracing.TraceError, match="is stopped"):
                tracing.call_in_main_thread(process.pid, 0, 0, b"")


def test_signals_during_attach_are_delivered():
    code = """
import signal, time
count = 0
def handler(*_):
    global count
    count += 1
    print(count, flush=True)
signal.signal(signal.SIGUSR1, handler)
print("ready", flush=True)
while True: time.sleep(0.02)
"""
    with running(code) as process:
        for number in range(1, 4):
            with subprocess.Popen(
                [sys.executable, "-m", "memrt", "attach", str(process.pid)],
                stdout=subprocess.DEVNULL,
            ) as attaching:
                os.kill(process.pid, signal.SIGUSR1)
            assert attaching.returncode == 0
            assert process.stdout.readline() == f"{number}\n"


def test_process_of_another_user_is_reached_by_root(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can run programs of other users")
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("the system has no Python")
    code = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.05)"
    user = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/", "env": {}}
    with running(code, "-IS", program="/usr/bin/python3", **user) as process:
        assert "cannot import memrt" in refused(process.pid)
    folder = Path("/dev/shm/memrt-65534")
    assert folder.stat().st_uid == 65534
    assert list(folder.iterdir()) == []
    folder.rmdir()


def test_process_of_another_user_is_refused(run_python):
    if os.geteuid() != 0:
        pytest.skip("only root can run programs of other users")
    code = """
import os, sys
from memrt.commands.attaching import target
from memrt.commands.output.errors import CommandError
os.setuid(65534)
try:
    target.target_of(int(sys.argv[1]))
except CommandError as error:
    print(error)
"""
    assert run_python(code, str(os.getpid())).stdout == (
        f"process {os.getpid()} belongs to user 0: run the command as this user or as root\n"
    )


def test_programs_that_cannot_be_reached_are_named():
    assert refused(2**22 + 1) == f"process {2**22 + 1} does not run"
    with subprocess.Popen(["sleep", "60"]) as other:
        time.sleep(0.2)
        assert "does not run Python" in refused(other.pid)
        other.send_signal(signal.SIGSTOP)
        while target._status(other.pid)["State"][0] != "T":
            time.sleep(0.01)
        assert "is stopped: let it continue with SIGCONT" in refused(other.pid)
        other.kill()
    with pytest.raises(CommandError, match="is this command"):
        target.target_of(os.getpid())
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    with pytest.raises(CommandError, match=f"is a thread: use process {os.getpid()}"):
        target.target_of(thread.native_id)
    ended.set()
    thread.join()


def test_refusals_of_the_system_are_explained(monkeypatch, tmp_path):
    status = {"State": "S", "Tgid": "7", "TracerPid": "99"}
    assert "traced by process 99" in target._why_not(7, status, os.geteuid())
    free = {**status, "TracerPid": "0"}
    assert target._why_not(7, free, os.geteuid()) in ("", "has ended")
    monkeypatch.setattr(os, "stat", lambda path: os.lstat("/" if "self" in path else "/proc"))
    assert "runs in another container" in target._why_not(7, free, os.geteuid())
    assert target.refusal(ProcessLookupError()) == "has ended"
    assert "run the command as root, or with CAP_SYS_PTRACE" in target.refusal(PermissionError())
    assert target.refusal(OSError(5, "Input error")) == "could not be traced: Input error"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--detach", "--track"], "--detach must stand alone"),
        (["--sample", "1M"], "--sample needs --track or --report"),
        (["--report", "/no/such/folder/x"], "cannot write"),
        (["--report", "/dev/null"], "not a regular file"),
    ],
)
def test_bad_options_are_refused(options, why):
    assert why in refused(os.getpid(), *options)
    assert attach(os.getpid(), "--wait", "soon").returncode == 2


def test_bad_sample_changes_nothing():
    with running(SERVICE) as process:
        assert "failed: ValueError" in refused(process.pid, "--track", "--sample", "x")
        assert refused(process.pid, "--detach").endswith("is not attached")


def mailbox(request: dict) -> Mailbox:
    own = target.Target(os.getpid(), os.geteuid(), os.getegid(), {})
    return Mailbox(own, {"version": memrt.__version__, **request})


def test_payload_ignores_withdrawn_requests_and_open_folders():
    box = mailbox({"action": "detach"})
    box.folder.chmod(0o755)
    exec(payload(str(box.folder)), {})
    assert box.withdraw()
    box.folder.chmod(0o700)
    exec(payload(str(box.folder)), {})
    assert [path.name for path in box.folder.iterdir()] == ["withdrawn"]
    assert box.wait("answer", 0.1) is None
    assert not box.withdraw()
    box.remove()
    exec(payload(str(box.folder)), {})


def test_taken_request_without_answer_may_have_attached(monkeypatch):
    def take(target, box):
        (box.folder / "request").rename(box.folder / "taken")

    monkeypatch.setattr(command, "_inject", take)
    monkeypatch.setattr(command, "_SECONDS_AFTER_TAKING", 0.1)
    own = target.Target(os.getpid(), os.geteuid(), os.getegid(), {})
    with pytest.raises(CommandError, match=r"took the request, but did not answer for 0\.1 s: "):
        command.ask(own, {"action": "detach"}, 0.1)
    assert leftovers(os.getpid()) == []


def test_payload_delivers_ctrl_c_after_the_answer(monkeypatch):
    def interrupt(request, folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(inside, "perform", interrupt)
    box = mailbox({"action": "detach"})
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        exec(as_statement(payload(str(box.folder))).rstrip(b"\0"), {})
        time.sleep(1)
        raise AssertionError("no KeyboardInterrupt")
    signal.signal(signal.SIGINT, before)
    assert json.loads(box.wait("answer", 1))["error"].startswith("failed: KeyboardInterrupt")
    box.remove()


def test_answers_that_are_links_or_no_json_are_refused(tmp_path):
    box = mailbox({})
    (box.folder / "answer").symlink_to("/etc/passwd")
    assert box.wait("answer", 0.05) is None
    box.remove()
    own = target.Target(7, 0, 0, {})
    for text in (b"[]", b"no"):
        with pytest.raises(CommandError, match="process 7 wrote no answer"):
            command._parsed(own, text)


def test_remote_exec_is_used_where_python_has_it(monkeypatch):
    calls, box = [], mailbox({})
    monkeypatch.setattr(sys, "remote_exec", lambda *call: calls.append(call), raising=False)
    assert command._ran_by_remote_exec(7, "pass", box)
    assert calls == [(7, str(box.folder / "script.py"))]
    assert (box.folder / "script.py").read_text() == "pass"

    def other_version(pid, path):
        raise RuntimeError("another version")

    monkeypatch.setattr(sys, "remote_exec", other_version)
    assert not command._ran_by_remote_exec(7, "pass", box)
    box.remove()


def test_symbols_of_this_process_are_found(tmp_path):
    import ctypes

    found = symbols.find_symbols(os.getpid(), ("Py_AddPendingCall", "PyRun_SimpleString"))
    for name, address in found.items():
        assert ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value == address
    assert len(found) == 2
    assert symbols.find_symbols(os.getpid(), ("no_such_symbol",)) == {}
    (tmp_path / "short").write_bytes(b"\x7fELF")
    (tmp_path / "other").write_bytes(bytes(200))
    for name in ("short", "other", "missing"):
        assert symbols._symbols_of(str(tmp_path / name), 0, ("x",)) == {}
