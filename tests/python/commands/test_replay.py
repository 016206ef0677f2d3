"""The command replay: run the allocations of an event trace through other allocators."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import memrt
import numpy as np
import pytest
from command_line import run_memrt
from memrt._trace.events import ADOPTION, ALLOC, FREE, RESIZE
from memrt.commands import check_allocator, main, replay
from memrt.commands.workers.available import available_memory
from memrt.commands.workers.worker import run_worker
from trace_writer import ADOPTED, Writer

pytestmark = pytest.mark.slow

RESIZABLE = 3
COUNTING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static size_t calls;
void *malloc(size_t size)
{
    static void *(*next)(size_t);
    if (next == NULL) {
        next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    }
    calls += size == 77777;
    return next(size);
}
__attribute__((destructor)) static void tell(void)
{
    if (getenv("TELL") != NULL) {
        FILE *file = fopen(getenv("TELL"), "a");
        fprintf(file, "%zu\\n", calls);
        fclose(file);
    }
}
"""
HANGING = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void *aligned_alloc(size_t align, size_t size)
{
    FILE *file = fopen(getenv("TELL"), "w");
    fprintf(file, "%d\\n", (int)getpid());
    fclose(file);
    pause();
    return align + size == 0 ? NULL : NULL;
}
"""
HANGING_TABLE = """
#include <memrt/allocator.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *hang(void *context, size_t size, size_t align)
{
    FILE *file = fopen(getenv("TELL"), "w");
    fprintf(file, "%d\\n", (int)getpid());
    fclose(file);
    pause();
    return context == NULL && size + align == 0 ? NULL : NULL;
}
static void drop(void *context, void *block, size_t size, size_t align)
{
    (void)context, (void)size, (void)align;
    free(block);
}
const memrt_allocator_t memrt_allocator = {
    .struct_size = sizeof(memrt_allocator_t),
    .version = MEMRT_ALLOCATOR_VERSION,
    .name = "hanging",
    .alloc = hang,
    .free = drop,
};
"""
CRASHING = """
#include <stdlib.h>
void *aligned_alloc(size_t align, size_t size) { (void)align; (void)size; abort(); }
"""


@pytest.fixture
def traced(tmp_path):
    """Return a trace: 300 buffers, every third stays live, and a buffer that grows."""
    path = tmp_path / "t.memtrace"
    kept = []
    with memrt.debug.trace(path, frames=0), memrt.Policy(256):
        for i in range(300):
            kept.append(np.empty(1000 + i, "u1"))
            if i % 3:
                kept.pop()
        kept.append(np.empty(50_000, "u1"))
        kept[-1].resize(1_000_000, refcheck=False)
    return path


def shared_object(folder, name, code, *flags):
    source = folder / f"{name}.c"
    source.write_text(code)
    target = folder / f"lib{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", target, "-ldl", *flags], check=True)
    return target


def test_each_allocator_replays_the_same_requests(traced):
    result = run_memrt("replay", traced, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    replays = json.loads(result.stdout)
    assert [each["allocator"] for each in replays] == ["memrt", "malloc", "numpy"]
    for each in replays:
        assert each["peak"] == memrt.debug.Trace(traced).peak
        assert each["peak_resident"] >= 1_000_000
        assert each["resident"] <= each["peak_resident"]
        assert each["refused"] == 0
        assert 0 < each["seconds"] < 10


def test_table_has_a_row_for_each_allocator(traced):
    result = run_memrt("replay", traced, "--allocator", "malloc", "--allocator", "memrt")
    lines = result.stdout.splitlines()
    assert lines[0] == f"{len(replay.events_of(memrt.debug.Trace(traced)))} events replayed"
    assert lines[1].split()[:2] == ["allocator", "time"]
    assert [line.split()[0] for line in lines[2:]] == ["malloc", "memrt"]


def test_table_shows_the_time_per_event():
    events = np.zeros(2000, replay.EVENT)
    text = replay._as_text(events, [replay.Replay("malloc", 0.003, 0, 0, 0, 0, 0)], 0)
    assert text.splitlines()[2].split()[:5] == ["malloc", "0.003", "s", "1,500", "ns"]


def test_malloc_library_is_loaded_by_its_path(tmp_path):
    library = shared_object(tmp_path, "counting", COUNTING)
    events = [(n, ALLOC, n, 77777) for n in range(1, 11)]
    content = Writer().events(*events).end().content.replace(b"\1\6\0", b"\1\0\0")
    (tmp_path / "t").write_bytes(content)  # the log2 of each alignment is 0
    result = run_memrt("replay", tmp_path / "t", "--allocator", library, cwd=tmp_path,
                     env={"TELL": str(tmp_path / "told"), "PATH": "/usr/bin"})  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "10\n" in (tmp_path / "told").read_text()


def test_crash_is_reported_and_the_next_allocator_is_replayed(tmp_path, traced):
    library = shared_object(tmp_path, "crashing", CRASHING)
    result = run_memrt("replay", traced, "--allocator", library, "--allocator", "malloc")
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert "exit status -6" in lines[2]
    assert lines[3].split()[0] == "malloc"


def interrupted(tmp_path, *arguments):
    """Send Ctrl-C to a command whose worker hangs. Return the status, the error output and the
    worker's process id.
    """
    told = tmp_path / "told"
    process = subprocess.Popen(
        [sys.executable, "-m", "memrt", *map(str, arguments)],
        env={**os.environ, "TELL": str(told), "PYTHONDEVMODE": "1"},
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # may be ignored
    )  # fmt: skip
    while not (told.exists() and told.read_text().endswith("\n")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    return process.returncode, said, int(told.read_text())


def test_ctrl_c_stops_replay_and_its_worker_silently(tmp_path, traced):
    library = shared_object(tmp_path, "hanging", HANGING)
    status, said, worker = interrupted(tmp_path, "replay", traced, "--allocator", library)
    assert (status, said) == (130, "")
    assert not Path(f"/proc/{worker}").exists()


def test_ctrl_c_stops_check_allocator_and_its_worker(tmp_path):
    library = shared_object(tmp_path, "hanging_table", HANGING_TABLE, f"-I{memrt.get_include()}")
    status, said, worker = interrupted(tmp_path, "check-allocator", library)
    assert (status, said) == (130, "")
    assert not Path(f"/proc/{worker}").exists()


def test_check_allocator_prints_a_hung_clause_as_json(tmp_path, monkeypatch, capsys):
    def hang(command, timeout):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(check_allocator, "run_worker", hang)
    (tmp_path / "t.so").touch()
    with pytest.raises(SystemExit) as ended:
        main(["check-allocator", "--clause", "fork", "--json", str(tmp_path / "t.so")])
    assert ended.value.code == 1
    text = capsys.readouterr().out
    (verdict,) = json.loads(text)
    assert (verdict["clause"], verdict["verdict"]) == ("fork", "hung")
    assert verdict["saw"] == "no answer within 60 s"
    assert text.startswith('[\n  {\n    "clause": "fork",\n')


def test_worker_that_exceeds_its_timeout_is_reaped():
    with pytest.raises(subprocess.TimeoutExpired):
        run_worker(["sleep", "60"], timeout=0.1)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_ctrl_c_while_a_worker_starts_leaves_no_process(monkeypatch):
    class Interrupted(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_worker(["sleep", "60"])
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


# --- Pages that a replay writes to. ---

MIB = 1 << 20
SPARSE = [(1, ALLOC, 1, 64 * MIB), (2, ALLOC, 2, 1000), (3, RESIZE, 1, 96 * MIB)]


@pytest.fixture
def sparse(tmp_path):
    (tmp_path / "t").write_bytes(Writer().events(*SPARSE).end().content)
    return tmp_path / "t"


@pytest.mark.parametrize(
    ("limit", "written"), [("0", 0), ("2M", 2 * MIB), ("8 MiB", 8 * MIB), ("1G", 96 * MIB + 1000)]
)
def test_replay_writes_at_most_the_write_limit(sparse, limit, written):
    result = run_memrt("replay", sparse, "--write-limit", limit, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    for each in json.loads(result.stdout):
        assert each["peak"] == 96 * MIB + 1000
        assert each["unwritten"] == each["peak"] - written
        assert each["resident"] >= written - 2 * MIB
        copied = 64 * MIB if each["allocator"] == "numpy" else min(written, 64 * MIB)
        assert each["peak_resident"] <= written + copied + 8 * MIB


def test_replay_reports_the_unwritten_memory(sparse):
    lines = run_memrt("replay", sparse, "--write-limit", "2M").stdout.splitlines()
    assert lines[-1] == (
        "up to 94.0 MiB of live memory were not written to: the limit is 2.0 MiB, see --write-limit"
    )
    assert "written" not in run_memrt("replay", sparse).stdout


def test_write_limit_applies_to_the_emitted_c_program(sparse, tmp_path):
    flags = ["-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    told = []
    for options, define in (([], []), (["--write-limit", "2M"], []), ([], ["-DWRITE_LIMIT=0"])):
        run_memrt("replay", sparse, "--emit-c", tmp_path / "run.c", "--force", *options)
        subprocess.run(["cc", *flags, *define, "run.c", "-o", "run"], cwd=tmp_path, check=True)
        shown = subprocess.check_output([tmp_path / "run"], text=True).split()
        told.append(int(shown[shown.index("unwritten") + 1]))
    assert told == [0, 94 * MIB + 1000, 96 * MIB + 1000]


def test_freed_or_shrunk_blocks_allow_further_writes(tmp_path):
    events = [(1, ALLOC, 1, 4 * MIB), (2, RESIZE, 1, MIB), (3, ALLOC, 2, 3 * MIB)]
    events += [(4, FREE, 1, MIB), (5, RESIZE, 2, 4 * MIB), (6, ALLOC, 3, MIB), (7, FREE, 3, MIB)]
    (tmp_path / "t").write_bytes(Writer().events(*events).end().content)
    result = run_memrt("replay", tmp_path / "t", "--write-limit", "4M", "--json")
    assert [each["unwritten"] for each in json.loads(result.stdout)] == [MIB] * 3


@pytest.mark.parametrize("text", ["many", "-1", ""])
def test_invalid_write_limit_is_refused(traced, text):
    result = run_memrt("replay", traced, f"--write-limit={text}")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("memrt: --write-limit: size must be a number of bytes")


def machine(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


MEMINFO = {"proc/meminfo": "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n"}
V2 = {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}
V1 = {"proc/self/cgroup": "9:cpu:/x\n4:memory:/c\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        (MEMINFO, 4000 * 1024),
        ({**MEMINFO, **V2}, 4000 * 1024),
        ({**MEMINFO, **V2, "sys/fs/cgroup/a/memory.max": "5000\n",
          "sys/fs/cgroup/a/memory.current": "1000\n"}, 4000),
        ({**V2, "sys/fs/cgroup/memory.max": "1000", "sys/fs/cgroup/memory.current": "2000"}, 0),
        ({**MEMINFO, **V1, "sys/fs/cgroup/memory/c/memory.limit_in_bytes": "700",
          "sys/fs/cgroup/memory/c/memory.usage_in_bytes": "600"}, 100),
        ({"proc/meminfo": "MemAvailable: what\n"}, None),
    ],
)  # fmt: skip
def test_available_memory_is_the_smallest_system_limit(tmp_path, files, expected):
    machine(tmp_path, files)
    assert available_memory(tmp_path) == expected


def test_default_write_limit_is_half_of_the_available_memory(monkeypatch):
    monkeypatch.setattr(replay, "available_memory", lambda: 1000)
    assert replay.default_write_limit() == 500
    monkeypatch.setattr(replay, "available_memory", lambda: None)
    assert replay.default_write_limit() == 2**64 - 1


def test_available_memory_respects_the_address_space_limit():
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30));"
        "from memrt.commands.workers.available import available_memory; print(available_memory())"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(shown.stdout) <= 3 << 30


def test_refused_requests_are_counted(tmp_path):
    (tmp_path / "t").write_bytes(Writer().events((1, ALLOC, 1, 2**62), (2, FREE, 1, 1)).content)
    result = run_memrt("replay", tmp_path / "t", "--allocator", "memrt", "--json")
    assert json.loads(result.stdout)[0]["refused"] == 1
    assert "the trace was cut off" in result.stderr


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nonesuch", "tcmalloc, got 'nonesuch'"),
        ("/no/such/lib.so", "tcmalloc, got '/no/such/lib.so'"),
    ],
)
def test_unknown_allocator_is_refused(traced, name, says):
    result = run_memrt("replay", traced, "--allocator", name)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("memrt: allocator must be a path or one of memrt, malloc, ")
    assert result.stderr.endswith(f"{says}\n")


def test_missing_allocator_error_names_its_debian_package(traced, monkeypatch):
    monkeypatch.setattr(replay.ctypes.util, "find_library", lambda name: None)
    with pytest.raises(replay.CommandError, match=r"install Debian's libjemalloc2"):
        replay._library_of("jemalloc")


def test_adopted_and_resizable_memory_is_not_replayed(tmp_path):
    writer = Writer().events((1, ADOPTION, 1, 100, ADOPTED), (2, FREE, 1, 100, ADOPTED))
    writer.events((3, ALLOC, 2, 0, RESIZABLE), (4, ALLOC, 3, 50), (5, RESIZE, 3, 60))
    (tmp_path / "t").write_bytes(writer.events((6, FREE, 9, 8)).end().content)
    events = replay.events_of(memrt.debug.Trace(tmp_path / "t"))
    assert events["type"].tolist() == [1, 2, 3]
    assert events["slot"].tolist() == [0, 0, 1]
    assert events["align_log2"].tolist() == [6, 6, 6]


@pytest.mark.parametrize("compiler", [["cc"], ["cc", "-std=c11", "-O2"]])
def test_emitted_c_program_compiles_and_repeats_the_trace(traced, tmp_path, compiler):
    result = run_memrt("replay", traced, "--emit-c", tmp_path / "run.c")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    binary = tmp_path / "run"
    flags = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run([*compiler, *flags, tmp_path / "run.c", "-o", binary], check=True)
    told = dict(line.split() for line in subprocess.check_output([binary], text=True).splitlines())
    trace = memrt.debug.Trace(traced)
    assert int(told["events"]) == len(replay.events_of(trace))
    assert int(told["peak"]) == trace.peak
    assert int(told["live"]) == trace.live[-1]
    assert told["refused"] == "0"


def test_emitted_c_program_of_an_empty_trace_compiles(tmp_path):
    (tmp_path / "t * ; x").write_bytes(Writer().end().content)
    run_memrt("replay", tmp_path / "t * ; x", "--emit-c", tmp_path / "run.c")
    flags = ["-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    subprocess.run(["cc", *flags, tmp_path / "run.c", "-o", tmp_path / "run"], check=True)
    assert b"events 0\n" in subprocess.check_output([tmp_path / "run"])


def test_emitted_c_program_has_no_sanitizer_errors(traced, tmp_path):
    run_memrt("replay", traced, "--emit-c", tmp_path / "run.c")
    flags = ["-g", "-fsanitize=address,undefined"]
    subprocess.run(["cc", *flags, tmp_path / "run.c", "-o", tmp_path / "run"], check=True)
    subprocess.run([tmp_path / "run"], check=True)


def test_existing_c_program_is_not_overwritten(traced, tmp_path):
    (tmp_path / "run.c").write_text("mine")
    result = run_memrt("replay", traced, "--emit-c", tmp_path / "run.c")
    assert result.returncode == 2
    assert (tmp_path / "run.c").read_text() == "mine"


def test_help_has_examples_and_exit_codes():
    result = run_memrt("replay", "--help")
    assert "python -m memrt replay run.memtrace" in result.stdout
    assert "exit status: " in result.stdout
