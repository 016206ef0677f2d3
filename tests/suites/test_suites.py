"""Test the suite runner: it reports every difference, and requires proof from each process."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
import time
from pathlib import Path

import expected
import pytest
from pieces import StoppedError, _stop_all, differences, run_all, watched
from projects import Piece, packed
from results import Results
from sides import SIDES, STOCK
from verdict import Verdict, judge, report

RELEASE, CHECKING = SIDES[1:3]

ENDS = """
import threading
import numpy as np, pytest
from numpy._core.multiarray import get_handler_name

def test_passes(): np.ones(1000)
def test_fails(): assert np.ones(1000)[0] == 2
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_xfails(): assert not np.ones(1)
@pytest.mark.slow
def test_is_slow(): pass
def test_asks_for_the_handler(): assert get_handler_name() == "default_allocator"
def test_asks_in_a_thread():
    thread = threading.Thread(target=test_asks_for_the_handler)
    thread.start()
    thread.join()
"""
CRASHES = """
import os, sys
def test_before(): pass
def test_that_crashes():
    if "memrt" in sys.modules:
        os.abort()
def test_after(): pass
"""
LEAVES = """
def test_that_leaves_another_handler():
    import sys
    if "memrt" in sys.modules:
        sys.modules["memrt"].disable()
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a test file on some sides and judges the outcomes."""
    results = Results(Path(sys.executable), tmp_path, tmp_path / "work", ("numpy",))

    def run_sides(source: str, *sides) -> list[Verdict]:
        folder = tmp_path / "project" / "tests"
        folder.mkdir(parents=True)
        (folder / "test_it.py").write_text(source)
        piece = Piece("project", ("project/tests/test_it.py",), 1)
        for side in sides:
            assert results.run(side, piece)[1], "ran"
            assert not results.run(side, piece)[1], "was kept"
        return judge(results, [piece], sides)

    return run_sides


def names(found):
    return [difference.test.rpartition("::")[2] for difference in found]


def test_only_different_outcomes_are_reported(run):
    stock, release, checking = run(ENDS, STOCK, RELEASE, CHECKING)
    assert stock.outcomes == {"passed": 3, "failed": 1, "skipped": 1, "xfailed": 1}
    for verdict in release, checking:
        assert names(verdict.unexpected) == ["test_asks_for_the_handler", "test_asks_in_a_thread"]
        assert not verdict.faults
        assert not verdict.is_good
        assert verdict.used >= 3
        assert verdict.blocks > 0


def test_crashed_process_is_a_difference_and_a_fault(run):
    _, release = run(CRASHES, STOCK, RELEASE)
    assert names(release.unexpected) == ["test_that_crashes", "test_after"]
    assert [fault.partition("(")[2] for fault in release.faults] == ["exit status -6)"]


def test_test_that_disables_memrt_is_a_fault(run):
    _, release = run(LEAVES, STOCK, RELEASE)
    assert not release.unexpected
    assert any("left a handler other than" in fault for fault in release.faults)
    assert any("left a handler other than" in line for line in report([release]))


def results_of(*tests: str, used: int = 1, outcome: str = "passed") -> dict:
    proof = {"alloc": 1, "used": used, "lost": [], "options": dict(RELEASE.options)}
    outcomes = {test: {"outcome": outcome, "detail": ""} for test in tests}
    return {"outcomes": outcomes, "proof": proof, "end": "exit status 0"}


def judged(stock: dict, memrt: dict) -> Verdict:
    verdict = Verdict("part", RELEASE)
    verdict.add(Piece("part", ("file",), 1), stock, memrt)
    return verdict


def test_process_without_use_of_memrt_is_not_good():
    assert judged(results_of("a"), results_of("a")).is_good
    assert not judged(results_of("a"), results_of("a", used=0)).is_good


def test_piece_without_tests_is_not_good():
    assert not judged(results_of(), results_of()).is_good


def test_expected_difference_must_exist_under_its_name(monkeypatch):
    monkeypatch.setitem(expected.EXPECTED, "a", "a reason")
    assert judged(results_of("a"), results_of("a", outcome="failed")).is_good
    assert not judged(results_of("b"), results_of("b", outcome="failed")).is_good
    assert any("expected.py is wrong" in fault
               for fault in judged(results_of("a"), results_of("a")).faults)  # fmt: skip


def test_tests_of_a_single_side_are_differences():
    a, b = ({name: {"outcome": "passed"}} for name in "ab")
    assert [(d.test, d.before, d.after) for d in differences(a, b)] == [
        ("a", "passed", "no result"),
        ("b", "no result", "passed"),
    ]


def test_small_files_share_a_process_and_large_files_do_not(tmp_path):
    files = [tmp_path / name for name in ("a", "b", "c", "d")]
    for file, size in zip(files, (10, 10, 400_000, 10), strict=True):
        file.write_bytes(bytes(size))
    packs = [piece.files for piece in packed(tmp_path, "part", files)]
    assert packs == [("a", "b"), ("c",), ("d",)]


def watch(code: str, folder: Path, limit: float) -> str:
    return watched([sys.executable, "-c", code], folder / "log", limit, folder, dict(os.environ))


def test_hanging_process_is_stopped_with_its_children(tmp_path):
    code = (
        "import fcntl, os, time; file = open('held', 'w'); fcntl.flock(file, fcntl.LOCK_EX);"
        "os.fork(); time.sleep(600)"  # both hold the lock
    )
    assert watch(code, tmp_path, 3) == "stopped after 3 s"
    with open(tmp_path / "held") as file:  # the file exists, so the process had started
        assert any(_is_free(file) for _ in range(100))


def _is_free(file) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(0.1)
        return False
    return True


def test_exit_status_of_a_process_is_returned(tmp_path):
    assert watch("", tmp_path, 60) == "exit status 0"
    assert watch("import os; os.abort()", tmp_path, 60) == f"exit status {-signal.SIGABRT}"


def test_stopped_run_keeps_no_result(tmp_path):
    started = tmp_path / "started"
    code = f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(60)"
    ends = []

    def body():
        with pytest.raises(StoppedError):
            ends.append(watch(code, tmp_path, 60))

    thread = threading.Thread(target=body)
    thread.start()
    while not started.exists():
        time.sleep(0.05)
    _stop_all()
    thread.join()
    assert not ends


def test_terminated_run_stops_its_processes(tmp_path):
    held = tmp_path / "held"
    code = (
        "import fcntl, time; file = open('held', 'w'); fcntl.flock(file, fcntl.LOCK_EX);"
        "print('locked', flush=True); time.sleep(600)"
    )

    def terminate() -> None:
        while not held.exists() or "locked" not in (tmp_path / "log").read_text():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=terminate, daemon=True).start()
    with pytest.raises(SystemExit):
        run_all([1], lambda item: (watch(code, tmp_path, 60), True))
    with open(held) as file:
        assert any(_is_free(file) for _ in range(100))


def test_time_left_is_shown_only_after_a_real_run(capsys):
    run_all([1, 2, 3], lambda item: (f"item {item}", item != 1))
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("] ")[2] for line in lines] == ["item 1", "item 2", "item 3"]
    assert ["left" in line for line in lines] == [False, True, True]
