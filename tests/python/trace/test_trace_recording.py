"""Recording event traces: `memrt.debug.trace` and `memrt.debug.mark`."""

import ctypes
import errno
import os
import resource
import signal
import subprocess
import sys
import threading
import warnings

import memrt
import numpy as np
import pytest
from atonce import on_threads
from memrt._trace.events import ALLOC, FAILURE, FREE, MARK, RESIZE

LIMITED = """
import resource, warnings
import memrt, numpy as np
warnings.simplefilter("error")
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
memrt.enable()
try:
    with memrt.debug.trace({path!r}, frames=0) as trace:
        for i in range(5000):
            np.ones(1000)
except RuntimeWarning as warning:
    print("warned:", warning)
print(trace.stats)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.memtrace"


def count(trace, kind):
    return int((trace.events["type"] == kind).sum())


def test_trace_records_allocations_resizes_and_marks(path):
    before = memrt.zeros(100)
    with memrt.debug.trace(path) as recording:
        kept = memrt.zeros(1000)
        del before
        memrt.debug.mark("here")
        with memrt.Policy(128, "mine"):
            block = np.empty(50)
            block.resize(5000, refcheck=False)
    after = memrt.zeros(10)
    trace = memrt.debug.Trace(path)
    assert (count(trace, ALLOC), count(trace, RESIZE), count(trace, FREE)) == (2, 1, 0)
    assert [mark.name for mark in trace.marks] == ["here"]
    assert trace.events["nbytes"].tolist() == [8000, 0, 400, 40_000]
    assert recording.stats.events == len(trace) == 4
    assert {policy.name for policy in trace.policies.values()} == {"default", "mine"}
    assert trace.is_complete
    assert trace.problem is None
    del kept, block, after


def test_allocation_event_has_its_file_and_function(path):
    with memrt.debug.trace(path):
        memrt.zeros(7)
    trace = memrt.debug.Trace(path)
    place = trace.place(int(trace.events["site"][0]))
    assert place.file == __file__
    assert place.function == "test_allocation_event_has_its_file_and_function"


def test_frames_0_records_no_sites(path):
    with memrt.debug.trace(path, frames=0):
        memrt.zeros(7)
    assert memrt.debug.Trace(path).sites == {}


def test_native_option_records_native_frames(path):
    with memrt.debug.trace(path, frames=0, native=8):
        memrt.zeros(7)
    (site,) = memrt.debug.Trace(path).sites.values()
    assert all(frame.is_native for frame in site.frames)
    assert any("_memrt" in (frame.file or "") for frame in site.frames)


def test_tracking_and_event_trace_are_independent(path):
    with memrt.debug.tracking(frames=1), memrt.debug.trace(path, frames=0):
        kept = memrt.zeros(70)
    assert memrt.debug.live()[-1].place is not None
    assert len(memrt.debug.Trace(path)) == 1
    del kept


def test_trace_records_the_paths_of_scopes(path):
    with memrt.debug.trace(path), memrt.scope("outer"), memrt.scope("inner"):
        memrt.zeros(10)
    trace = memrt.debug.Trace(path)
    assert [policy.scope for policy in trace.policies.values()] == ["outer/inner"]
    assert trace.usage("scope")[0].name == "outer/inner"


def test_refused_request_is_recorded_as_an_event(path):
    with memrt.debug.trace(path), memrt.testing.fail_allocations(1), pytest.raises(MemoryError):
        memrt.zeros(123)
    trace = memrt.debug.Trace(path)
    assert count(trace, FAILURE) == 1
    assert int(trace.events["nbytes"][0]) == 984


def test_events_record_the_thread_that_allocates(path):
    def work(_number):
        for _ in range(1000):
            memrt.zeros(3)
        return threading.get_native_id()

    with memrt.debug.trace(path):
        numbers = on_threads(work, 3)
    trace = memrt.debug.Trace(path)
    assert len(set(numbers)) == 3
    for number in numbers:
        rows = trace.events[trace.events["thread"] == number]
        assert len(rows) == 2000
        assert (np.diff(rows["time"].astype(np.int64)) >= 0).all()


def test_last_option_keeps_only_the_last_events(path):
    with memrt.debug.trace(path, last=10, frames=0) as recording:
        for size in range(1, 21):
            memrt.zeros(size, np.uint8)
        assert recording.stats.events == 40
        assert recording.stats.overwritten == 30
        assert recording.stats.bytes < 1000
    trace = memrt.debug.Trace(path)
    assert len(trace) == 10
    assert trace.last == 10
    assert trace.overwritten == 30
    assert trace.problem == "30 events overwritten: last 10 kept"
    assert sorted(set(trace.events["nbytes"].tolist())) == [16, 17, 18, 19, 20]


def test_second_trace_in_a_process_is_refused(path, tmp_path):
    with memrt.debug.trace(path), pytest.raises(RuntimeError, match="already running"):
        memrt.debug.trace(tmp_path / "other").__enter__()
    assert not (tmp_path / "other").exists()
    assert memrt.debug.Trace(path).is_complete


def test_trace_file_has_mode_0600(path):
    mask = os.umask(0)
    try:
        for _ in range(2):
            with memrt.debug.trace(path, replace=True):
                pass
            assert path.stat().st_mode & 0o7777 == 0o600
            path.chmod(0o644)
    finally:
        os.umask(mask)


def test_replace_refuses_a_symbolic_link(path, tmp_path):
    target = tmp_path / "target"
    target.write_text("of the caller")
    path.symlink_to(target)
    message = os.strerror(errno.ELOOP)
    with pytest.raises(OSError, match=message), memrt.debug.trace(path, replace=True):
        pass
    assert target.read_text() == "of the caller"
    assert sorted(tmp_path.iterdir()) == sorted([path, target])


def test_failed_start_keeps_the_existing_file(path, tmp_path):
    path.write_text("of the caller")
    program = f"""
import resource, memrt
resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
try:
    memrt.debug.trace({str(path)!r}, replace=True).__enter__()
except OSError as error:
    raise SystemExit(error.errno)
"""
    result = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert result.returncode == errno.EFBIG
    assert path.read_text() == "of the caller"
    assert list(tmp_path.iterdir()) == [path]


def test_existing_file_is_replaced_only_with_replace_true(path):
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        memrt.debug.trace(path).__enter__()
    assert path.read_text() == "precious"
    with memrt.debug.trace(path, replace=True):
        pass
    assert len(memrt.debug.Trace(path)) == 0


@pytest.mark.parametrize(
    ("target", "error"),
    [("/no/such/folder/file", FileNotFoundError), ("/tmp", OSError), ("/dev/full", OSError)],
)
def test_unwritable_trace_path_raises_os_error(target, error):
    with pytest.raises(error) as raised:
        memrt.debug.trace(target, replace=True).__enter__()
    assert raised.value.filename == target
    assert memrt.debug.trace("unused").stats.recording is False


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"frames": 129}, ValueError),
        ({"frames": -1}, ValueError),
        ({"native": 129}, ValueError),
        ({"last": 0}, ValueError),
        ({"last": 2**28 + 1}, ValueError),
        ({"frames": 1.5}, TypeError),
        ({"last": "many"}, TypeError),
    ],
)
def test_invalid_trace_options_are_refused(path, options, error):
    with pytest.raises(error, match=next(iter(options))):
        memrt.debug.trace(path, **options)


@pytest.mark.parametrize("name", ["", "x" * 1024])
def test_mark_name_of_wrong_length_is_refused(name):
    with pytest.raises(ValueError, match="1 to 1023 bytes"):
        memrt.debug.mark(name)


def test_mark_needs_a_string_and_no_trace(path):
    memrt.debug.mark("nowhere")
    with pytest.raises(TypeError):
        memrt.debug.mark(3)
    with memrt.debug.trace(path):
        memrt.debug.mark("grün " * 100)
    trace = memrt.debug.Trace(path)
    assert trace.marks[0].name == "grün " * 100
    assert count(trace, MARK) == 1


def test_file_size_limit_warns_and_the_program_continues(path):
    """A limit on the process's file size acts like a full disk: the same call fails. The system
    also sends a signal that would kill the program.
    """
    code = LIMITED.format(path=str(path))
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    warned, stats = result.stdout.splitlines()
    assert warned.startswith(f"warned: trace {str(path)!r}: ")
    assert warned.endswith("events were lost: File too large")
    assert f"error={errno.EFBIG}" in stats
    trace = memrt.debug.Trace(path)
    assert 0 < len(trace) < 10_000
    assert path.stat().st_size <= 20_000


def test_full_file_system_warns_about_lost_events(tmp_path):
    libc = ctypes.CDLL(None, use_errno=True)
    folder = tmp_path / "small"
    folder.mkdir()
    if libc.mount(b"none", bytes(folder), b"tmpfs", 0, b"size=64k") != 0:
        pytest.skip("only root can mount a small file system")
    try:
        recording = memrt.debug.trace(folder / "t", frames=0).__enter__()
        for _ in range(3000):
            memrt.zeros(10)
        with pytest.warns(RuntimeWarning, match="No space left on device"):
            recording.__exit__()
        trace = memrt.debug.Trace(folder / "t")
        assert recording.stats.lost > 1000
        assert recording.stats.error == errno.ENOSPC
        assert len(trace) == recording.stats.events
        assert trace.problem is not None
    finally:
        libc.umount(bytes(folder))


KILLED = """
import os, signal, sys, memrt
trace = memrt.debug.trace(sys.argv[1], frames=0).__enter__()
for i in range(3000):
    memrt.zeros(10)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_process_leaves_a_readable_incomplete_trace(path):
    result = subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert result.returncode == -signal.SIGKILL
    trace = memrt.debug.Trace(path)
    assert 5000 <= len(trace) <= 6000
    assert not trace.is_complete
    assert "cut off" in trace.problem


ENDED = """
import sys, memrt
trace = memrt.debug.trace(sys.argv[1]).__enter__()
kept = memrt.zeros(10)
"""


def test_process_exit_completes_the_trace(path):
    subprocess.run([sys.executable, "-c", ENDED, str(path)], check=True)
    trace = memrt.debug.Trace(path)
    assert trace.is_complete
    assert count(trace, ALLOC) == 1


def test_forked_child_adds_nothing_to_the_trace(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the test process has other threads
        with memrt.debug.trace(path) as recording:
            memrt.zeros(1)
            child = os.fork()
            if child == 0:
                memrt.zeros(1000)
                memrt.debug.mark("the child's")
                recording.__exit__()
                os._exit(0 if not recording.stats.recording else 1)
            assert os.waitpid(child, 0)[1] == 0
            memrt.zeros(2)
    trace = memrt.debug.Trace(path)
    assert trace.is_complete
    assert trace.events["nbytes"].tolist() == [8, 8, 16, 16]


def test_second_exit_of_a_trace_does_nothing(path):
    recording = memrt.debug.trace(path)
    with recording:
        pass
    stats = recording.stats
    recording.__exit__()
    assert recording.stats == stats
    assert stats.loss is None


def test_trace_survives_a_limit_of_open_files(path):
    """The trace file stays open from the start, so a limit on open files has no effect."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    def work(_number):
        for _ in range(2000):
            memrt.zeros(1)

    with memrt.debug.trace(path):
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            on_threads(work, 4)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    trace = memrt.debug.Trace(path)
    assert trace.is_complete
    assert len(trace) == 4 * 4000
    _, counts = np.unique(trace.events["thread"], return_counts=True)
    assert counts.tolist() == [4000] * 4
