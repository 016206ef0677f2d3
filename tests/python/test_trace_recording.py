"""Traces that are recorded: `memrt.trace` and `memrt.mark`."""

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
from memrt._trace import BIRTH, DEATH, FAILURE, MARK, RESIZE

LIMITED = """
import resource, warnings
import memrt, numpy as np
warnings.simplefilter("error")
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
memrt.enable()
try:
    with memrt.trace({path!r}, frames=0) as trace:
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


def test_what_happens_inside_is_in_the_file(path):
    before = memrt.zeros(100)
    with memrt.trace(path) as recording:
        kept = memrt.zeros(1000)
        del before
        memrt.mark("here")
        with memrt.Policy(128, "mine"):
            block = np.empty(50)
            block.resize(5000, refcheck=False)
    after = memrt.zeros(10)
    trace = memrt.Trace(path)
    assert (count(trace, BIRTH), count(trace, RESIZE), count(trace, DEATH)) == (2, 1, 0)
    assert [mark.name for mark in trace.marks] == ["here"]
    assert trace.events["size"].tolist() == [8000, 0, 400, 40_000]
    assert recording.stats.events == len(trace) == 4
    assert {policy.name for policy in trace.policies.values()} == {"default", "mine"}
    assert trace.is_complete
    assert trace.problem is None
    del kept, block, after


def test_births_know_the_line_they_are_made_in(path):
    with memrt.trace(path):
        memrt.zeros(7)
    trace = memrt.Trace(path)
    place = trace.place(int(trace.events["site"][0]))
    assert place.file == __file__
    assert place.function == "test_births_know_the_line_they_are_made_in"


def test_without_calls_no_place_is_known(path):
    with memrt.trace(path, frames=0):
        memrt.zeros(7)
    assert memrt.Trace(path).sites == {}


def test_native_calls_are_recorded_where_asked_for(path):
    with memrt.trace(path, frames=0, native=8):
        memrt.zeros(7)
    (site,) = memrt.Trace(path).sites.values()
    assert all(frame.is_native for frame in site.frames)
    assert any("_memrt" in (frame.file or "") for frame in site.frames)


def test_tracking_and_a_trace_do_not_disturb_each_other(path):
    with memrt.tracking(frames=1), memrt.trace(path, frames=0):
        kept = memrt.zeros(70)
    assert memrt.live()[-1].place is not None
    assert len(memrt.Trace(path)) == 1
    del kept


def test_scopes_are_told_by_their_paths(path):
    with memrt.trace(path), memrt.scope("outer"), memrt.scope("inner"):
        memrt.zeros(10)
    trace = memrt.Trace(path)
    assert [policy.scope for policy in trace.policies.values()] == ["outer/inner"]
    assert trace.usage("scope")[0].name == "outer/inner"


def test_refused_requests_are_events(path):
    with memrt.trace(path), memrt.testing.fail_allocations(1), pytest.raises(MemoryError):
        memrt.zeros(123)
    trace = memrt.Trace(path)
    assert count(trace, FAILURE) == 1
    assert int(trace.events["size"][0]) == 984


def test_threads_are_told_apart(path):
    numbers = []

    def work():
        numbers.append(threading.get_native_id())
        for _ in range(1000):
            memrt.zeros(3)

    threads = [threading.Thread(target=work) for _ in range(3)]
    with memrt.trace(path):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    trace = memrt.Trace(path)
    for number in set(numbers):
        rows = trace.events[trace.events["thread"] == number]
        assert len(rows) == 2000 * numbers.count(number)
        assert (np.diff(rows["time"].astype(np.int64)) >= 0).all()


def test_only_the_last_events_are_kept_where_asked_for(path):
    with memrt.trace(path, last=10, frames=0) as recording:
        for size in range(1, 21):
            memrt.zeros(size, np.uint8)
        assert recording.stats.events == 40
        assert recording.stats.overwritten == 30
        assert recording.stats.bytes < 1000
    trace = memrt.Trace(path)
    assert len(trace) == 10
    assert trace.last == 10
    assert trace.overwritten == 30
    assert trace.problem == "30 events came before the last 10 kept"
    assert sorted(set(trace.events["size"].tolist())) == [16, 17, 18, 19, 20]


def test_a_process_records_one_trace_at_a_time(path, tmp_path):
    with memrt.trace(path), pytest.raises(RuntimeError, match="one at a time"):
        memrt.trace(tmp_path / "other").__enter__()
    assert not (tmp_path / "other").exists()
    assert memrt.Trace(path).is_complete


def test_a_file_that_is_there_is_kept_unless_it_may_be_replaced(path):
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        memrt.trace(path).__enter__()
    assert path.read_text() == "precious"
    with memrt.trace(path, replace=True):
        pass
    assert len(memrt.Trace(path)) == 0


@pytest.mark.parametrize(
    ("target", "error"),
    [("/no/such/folder/file", FileNotFoundError), ("/tmp", OSError), ("/dev/full", OSError)],
)
def test_a_file_that_cannot_be_made_is_an_error(target, error):
    with pytest.raises(error) as raised:
        memrt.trace(target, replace=True).__enter__()
    assert raised.value.filename == target
    assert memrt.trace("unused").stats.recording is False


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
def test_options_that_cannot_be_are_refused(path, options, error):
    with pytest.raises(error, match=next(iter(options))):
        memrt.trace(path, **options)


@pytest.mark.parametrize("name", ["", "x" * 1024])
def test_a_mark_has_a_name(name):
    with pytest.raises(ValueError, match="1 to 1023 bytes"):
        memrt.mark(name)


def test_a_mark_is_a_text_and_needs_no_trace(path):
    memrt.mark("nowhere")
    with pytest.raises(TypeError):
        memrt.mark(3)
    with memrt.trace(path):
        memrt.mark("grün " * 100)
    trace = memrt.Trace(path)
    assert trace.marks[0].name == "grün " * 100
    assert count(trace, MARK) == 1


def test_where_the_disk_is_full_the_program_goes_on_and_the_loss_is_said(path):
    """A limit of the process's files is a disk that is full: the system refuses in the same call,
    and sends a signal besides that would kill the program."""
    code = LIMITED.format(path=str(path))
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    warned, stats = result.stdout.splitlines()
    assert warned.startswith(f"warned: trace {str(path)!r}: ")
    assert warned.endswith("events were lost: File too large")
    assert f"error={errno.EFBIG}" in stats
    trace = memrt.Trace(path)
    assert 0 < len(trace) < 10_000
    assert path.stat().st_size <= 20_000


def test_no_space_left_is_survived_on_a_real_full_file_system(tmp_path):
    libc = ctypes.CDLL(None, use_errno=True)
    folder = tmp_path / "small"
    folder.mkdir()
    if libc.mount(b"none", bytes(folder), b"tmpfs", 0, b"size=64k") != 0:
        pytest.skip("only root can mount a small file system")
    try:
        recording = memrt.trace(folder / "t", frames=0).__enter__()
        for _ in range(3000):
            memrt.zeros(10)
        with pytest.warns(RuntimeWarning, match="No space left on device"):
            recording.__exit__()
        trace = memrt.Trace(folder / "t")
        assert recording.stats.lost > 1000
        assert recording.stats.error == errno.ENOSPC
        assert len(trace) == recording.stats.events
        assert trace.problem is not None
    finally:
        libc.umount(bytes(folder))


KILLED = """
import os, signal, sys, memrt
trace = memrt.trace(sys.argv[1], frames=0).__enter__()
for i in range(3000):
    memrt.zeros(10)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_a_trace_that_can_be_read_and_says_so(path):
    result = subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert result.returncode == -signal.SIGKILL
    trace = memrt.Trace(path)
    assert 5000 <= len(trace) <= 6000
    assert not trace.is_complete
    assert "cut off" in trace.problem


ENDED = """
import sys, memrt
trace = memrt.trace(sys.argv[1]).__enter__()
kept = memrt.zeros(10)
"""


def test_a_process_that_ends_inside_completes_its_trace(path):
    subprocess.run([sys.executable, "-c", ENDED, str(path)], check=True)
    trace = memrt.Trace(path)
    assert trace.is_complete
    assert count(trace, BIRTH) == 1


def test_a_forked_child_leaves_the_trace_alone(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads of the test process
        with memrt.trace(path) as recording:
            memrt.zeros(1)
            child = os.fork()
            if child == 0:
                memrt.zeros(1000)
                memrt.mark("the child's")
                recording.__exit__()
                os._exit(0 if not recording.stats.recording else 1)
            assert os.waitpid(child, 0)[1] == 0
            memrt.zeros(2)
    trace = memrt.Trace(path)
    assert trace.is_complete
    assert trace.events["size"].tolist() == [8, 8, 16, 16]


def test_leaving_a_block_of_a_trace_that_ended_already_does_nothing(path):
    recording = memrt.trace(path)
    with recording:
        pass
    stats = recording.stats
    recording.__exit__()
    assert recording.stats == stats
    assert stats.loss is None


def test_many_threads_and_events_survive_a_limit_of_open_files(path):
    """The file is open from the begin: what the program opens does not matter."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with memrt.trace(path):
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            for _ in range(2000):
                memrt.zeros(1)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(memrt.Trace(path)) == 4000
