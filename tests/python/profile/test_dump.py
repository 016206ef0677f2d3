"""Dumps of live buffers: on request, on a signal, and before a refused allocation."""

import gc
import os
import resource
import signal
import subprocess
import sys
import threading

import memrt
import numpy as np
import pytest
from atonce import on_threads
from gil import needs_gil
from memrt._profile.recording import loads

pytestmark = pytest.mark.slow

MIB = 1 << 20


def read(path):
    (document,) = loads(path.read_bytes())
    return document


def dumps_in(folder):
    return sorted(folder.glob("memrt-*.memrt"))


def refuse(policy):
    with policy, pytest.raises(MemoryError):
        np.empty(2 * MIB, "u1")


@pytest.fixture
def policy():
    """Return a policy with a limit of 1 MiB."""
    return memrt.Policy(name="small", limit=MIB)


@needs_gil
def test_dump_has_live_buffers_with_sites_and_holders(tmp_path):
    with memrt.debug.tracking():
        held = {"table": memrt.zeros(3 * MIB, "u1")}
    memrt.debug.dump(tmp_path / "d")
    document = read(tmp_path / "d")
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o600
    assert document["ended"] == "still running: dump on request"
    columns = document["live"]["columns"]
    rows = [dict(zip(columns, row, strict=True)) for row in document["live"]["rows"]]
    assert rows[0]["nbytes"] == 3 * MIB
    places = {number: place for number, place, _ in document["sites"]}
    assert "test_dump.py:" in places[rows[0]["site"]]
    assert "'table'" in "\n".join(document["holders"][0]["lines"])
    assert any(nbytes >= 3 * MIB for _, _, _, nbytes in document["highest"]["rows"])
    assert len(document["timeline"]["t"]) == 1
    del held


def test_dump_without_tracking_has_the_statistics(run_python, tmp_path):
    run_python(f"import memrt; a = memrt.zeros(1000); memrt.debug.dump({str(tmp_path / 'd')!r})")
    document = read(tmp_path / "d")
    assert ["live", "bytes", 8000] in document["stats"]
    assert document["live"]["rows"] == []
    assert "Tracking was off" in document["notes"][0]


def test_dump_keeps_an_existing_file(tmp_path):
    (tmp_path / "d").write_text("precious")
    with pytest.raises(FileExistsError):
        memrt.debug.dump(tmp_path / "d")
    assert (tmp_path / "d").read_text() == "precious"


def test_dump_follows_no_link(tmp_path):
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(FileExistsError):
        memrt.debug.dump(tmp_path / "link")
    assert not (tmp_path / "target").exists()


@pytest.fixture
def small_files():
    """Limit the size of new files to 100 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_dump_that_cannot_be_written_leaves_no_file(tmp_path, small_files):
    with pytest.raises(OSError, match="File too large"):
        memrt.debug.dump(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_dump_can_be_rendered_as_a_page(tmp_path):
    memrt.debug.dump(tmp_path / "d")
    command = [sys.executable, "-m", "memrt", "report", tmp_path / "d", "-o", tmp_path / "page"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert "on request" in (tmp_path / "page").read_text()


@pytest.mark.parametrize("allocate", [np.empty, np.zeros, memrt.empty, memrt.zeros], ids=str)
def test_refused_array_leaves_a_dump_with_the_live_arrays(tmp_path, policy, allocate):
    with memrt.debug.tracking(), policy:
        kept = np.ones(MIB // 2, "u1")
    folder = tmp_path / "made" / "now"
    with memrt.debug.dump_on_refusal(folder), policy, pytest.raises(MemoryError):
        allocate(MIB, "u1")
    (path,) = dumps_in(folder)
    document = read(path)
    assert path.name.split("-")[2] == str(os.getpid())
    assert (folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    assert document["ended"].endswith("before a refused request of 1.0 MiB (1048576 bytes)")
    assert MIB // 2 in [row[1] for row in document["live"]["rows"]]
    refuse(policy)
    assert dumps_in(folder) == [path], "a closed object must write nothing"
    del kept


def test_allocation_that_finds_room_leaves_no_dump(tmp_path, policy):
    with policy:
        cache = [np.empty(MIB, "u1")]
    freed = memrt.debug.on_refusal(lambda wanted: cache.clear(), priority=2**31 - 2)
    with memrt.debug.dump_on_refusal(tmp_path), freed, policy:
        np.empty(MIB, "u1")
    assert dumps_in(tmp_path) == []


def test_dump_frees_no_garbage(tmp_path, policy):
    class Node:
        def __init__(self):
            self.itself, self.array = self, np.empty(MIB, "u1")

    gc.disable()
    try:
        with policy, memrt.debug.dump_on_refusal(tmp_path):
            Node()
            with pytest.raises(MemoryError):
                np.empty(MIB, "u1")
    finally:
        gc.enable()
        gc.collect()
    assert len(dumps_in(tmp_path)) == 1


def test_folder_gets_at_most_the_given_number_of_dumps(tmp_path, policy):
    (tmp_path / "other").write_text("")
    (tmp_path / "memrt-1-of-another-process.memrt").write_text("old")
    with memrt.debug.dump_on_refusal(tmp_path, most=3):
        for _ in range(4):
            refuse(policy)
    assert len(dumps_in(tmp_path)) == 3
    assert (tmp_path / "memrt-1-of-another-process.memrt").read_text() == "old"


@pytest.mark.parametrize(
    ("most", "error", "says"),
    [
        (0, ValueError, "most must be 1 or more, got 0"),
        ("3", TypeError, "most must be a whole number of files, got '3'"),
    ],
)
@pytest.mark.parametrize("dumps", [memrt.debug.dump_on_refusal, memrt.debug.dump_on_signal])
def test_bad_number_of_dumps_is_refused(tmp_path, dumps, most, error, says):
    with pytest.raises(error, match=says):
        dumps(tmp_path / "d", most=most)
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("dumps", [memrt.debug.dump_on_refusal, memrt.debug.dump_on_signal])
def test_file_in_place_of_the_folder_is_refused(tmp_path, dumps):
    (tmp_path / "d").write_text("")
    with pytest.raises(FileExistsError):
        dumps(tmp_path / "d")


def test_failed_dump_keeps_the_memory_error(tmp_path, policy, unraisable, small_files):
    with memrt.debug.dump_on_refusal(tmp_path):
        refuse(policy)
    assert [str(error) for error in unraisable] == ["[Errno 27] File too large"]
    assert list(tmp_path.iterdir()) == []


def test_removed_folder_keeps_the_memory_error(tmp_path, policy, unraisable):
    with memrt.debug.dump_on_refusal(tmp_path / "d"):
        (tmp_path / "d").rmdir()
        refuse(policy)
    assert [type(error) for error in unraisable] == [FileNotFoundError]


def test_threads_refused_at_once_write_complete_dumps(tmp_path, policy):
    def work(_number):
        for _ in range(3):
            refuse(policy)

    with memrt.debug.dump_on_refusal(tmp_path, most=100):
        on_threads(work, 4)
    paths = dumps_in(tmp_path)
    assert 3 <= len(paths) <= 12
    for path in paths:
        read(path)


def test_forked_child_writes_dumps_of_its_own(tmp_path, policy):
    with memrt.debug.dump_on_refusal(tmp_path):
        child = os.fork()
        if child == 0:
            try:
                policy.__enter__()
                np.empty(2 * MIB, "u1")
            except MemoryError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
    (path,) = dumps_in(tmp_path)
    assert read(path)["pid"] == child


OUT_OF_MEMORY = """
import os, sys
os.chdir(sys.argv[1])
import memrt, numpy as np
os.chdir("/")
memrt.limit("1 MiB")
memrt.enable()
try:
    np.empty(2 << 20, "u1")
except MemoryError as error:
    print(type(error).__name__)
"""


def test_environment_names_the_folder_for_dumps(run_python, tmp_path):
    result = run_python(OUT_OF_MEMORY, str(tmp_path), env={"MEMRT_DUMP_ON_OOM": "d"})
    assert (result.stdout, result.stderr) == ("MemoryError\n", "")
    assert len(dumps_in(tmp_path / "d")) == 1


def test_dumps_are_off_for_none(run_python, tmp_path):
    run_python(OUT_OF_MEMORY, str(tmp_path), env={"MEMRT_DUMP_ON_OOM": "none"})
    assert list(tmp_path.iterdir()) == []


def test_unusable_folder_in_the_environment_warns(run_python):
    result = run_python(OUT_OF_MEMORY, "/", env={"MEMRT_DUMP_ON_OOM": "/dev/null/d"})
    assert result.stdout == "MemoryError\n"
    assert (
        "RuntimeWarning: MEMRT_DUMP_ON_OOM must be a folder that can be written, got "
        "'/dev/null/d': Not a directory" in result.stderr
    )


def test_signal_leaves_a_dump_and_close_restores_the_handler(tmp_path):
    before = signal.getsignal(signal.SIGUSR1)
    with memrt.debug.dump_on_signal(tmp_path, signal.SIGUSR1) as handle:
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)
    assert signal.getsignal(signal.SIGUSR1) == before
    paths = dumps_in(tmp_path)
    assert len(paths) == 2
    assert read(paths[0])["ended"] == f"still running: dump on signal {int(signal.SIGUSR1)}"
    handle.close()


def test_close_keeps_a_later_handler(tmp_path):
    before = signal.getsignal(signal.SIGUSR2)
    try:
        with memrt.debug.dump_on_signal(tmp_path):
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGUSR2) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_failed_dump_on_a_signal_prints_a_line(tmp_path, capsys):
    with memrt.debug.dump_on_signal(tmp_path / "d", most=1):
        signal.raise_signal(signal.SIGUSR2)
        signal.raise_signal(signal.SIGUSR2)
        for path in (tmp_path / "d").iterdir():
            path.unlink()
        (tmp_path / "d").rmdir()
        signal.raise_signal(signal.SIGUSR2)
    full, missing = capsys.readouterr().err.splitlines()
    assert full == (f"memrt: no dump was written: '{tmp_path}/d' is full, or a dump is running")
    assert missing.startswith("memrt: no dump was written: FileNotFoundError: ")


def test_signal_on_another_thread_is_refused(tmp_path):
    caught = []

    def work():
        try:
            memrt.debug.dump_on_signal(tmp_path)
        except ValueError as error:
            caught.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(caught) == 1
