"""The command replay: the allocations of a trace again, through allocators."""

import json
import os
import signal
import subprocess
import sys
import time

import memrt
import numpy as np
import pytest
from memrt.commands import replay
from test_trace_file import ADOPTED, ADOPTION, BIRTH, DEATH, RESIZE, Writer

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
    fclose(fopen(getenv("TELL"), "w"));
    pause();
    return align + size == 0 ? NULL : NULL;
}
"""
CRASHING = """
#include <stdlib.h>
void *aligned_alloc(size_t align, size_t size) { (void)align; (void)size; abort(); }
"""


def command(*arguments, **options):
    options = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([sys.executable, "-m", "memrt", *map(str, arguments)], **options)


@pytest.fixture
def traced(tmp_path):
    """A trace: 300 buffers, every third of which lives, and one that grows."""
    path = tmp_path / "t.memtrace"
    kept = []
    with memrt.trace(path, frames=0), memrt.Policy(256):
        for i in range(300):
            kept.append(np.empty(1000 + i, "u1"))
            if i % 3:
                kept.pop()
        kept.append(np.empty(50_000, "u1"))
        kept[-1].resize(1_000_000, refcheck=False)
    return path


def shared_object(folder, name, code):
    source = folder / f"{name}.c"
    source.write_text(code)
    target = folder / f"lib{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", target, "-ldl"], check=True)
    return target


def test_every_allocator_meets_the_same_requests(traced):
    result = command("replay", traced, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    replays = json.loads(result.stdout)
    assert [each["allocator"] for each in replays] == ["memrt", "malloc", "numpy"]
    for each in replays:
        assert each["peak"] == memrt.Trace(traced).peak
        assert each["peak_resident"] >= 1_000_000
        assert each["resident"] <= each["peak_resident"]
        assert each["refused"] == 0
        assert 0 < each["seconds"] < 10


def test_a_table_compares_them(traced):
    result = command("replay", traced, "--allocator", "malloc", "--allocator", "memrt")
    lines = result.stdout.splitlines()
    assert lines[0] == f"{len(replay.events_of(memrt.Trace(traced)))} events replayed"
    assert lines[1].split()[:2] == ["allocator", "time"]
    assert [line.split()[0] for line in lines[2:]] == ["malloc", "memrt"]


def test_any_malloc_is_tried_by_its_path(tmp_path):
    library = shared_object(tmp_path, "counting", COUNTING)
    events = [(n, BIRTH, n, 77777) for n in range(1, 11)]
    content = Writer().events(*events).end().content.replace(b"\1\6\0", b"\1\0\0")
    (tmp_path / "t").write_bytes(content)  # aligned to nothing in particular
    result = command("replay", tmp_path / "t", "--allocator", library, cwd=tmp_path,
                     env={"TELL": str(tmp_path / "told"), "PATH": "/usr/bin"})  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "10\n" in (tmp_path / "told").read_text()


def test_an_allocator_that_crashes_is_told_and_the_others_are_tried(tmp_path, traced):
    library = shared_object(tmp_path, "crashing", CRASHING)
    result = command("replay", traced, "--allocator", library, "--allocator", "malloc")
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert "exit status -6" in lines[2]
    assert lines[3].split()[0] == "malloc"


def test_ctrl_c_ends_a_replay_and_its_process_without_a_word(tmp_path, traced):
    library, told = shared_object(tmp_path, "hanging", HANGING), tmp_path / "told"
    process = subprocess.Popen(
        [sys.executable, "-m", "memrt", "replay", str(traced), "--allocator", str(library)],
        env={**os.environ, "TELL": str(told)}, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # it may be ignored
    )  # fmt: skip
    while not told.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr.read() == ""
    process.stderr.close()


def test_requests_that_are_refused_are_counted(tmp_path):
    (tmp_path / "t").write_bytes(Writer().events((1, BIRTH, 1, 2**62), (2, DEATH, 1, 1)).content)
    result = command("replay", tmp_path / "t", "--allocator", "memrt", "--json")
    assert json.loads(result.stdout)[0]["refused"] == 1
    assert "the trace was cut off" in result.stderr


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nonesuch", "there is no allocator 'nonesuch': give a path, or one of memrt, malloc"),
        ("/no/such/lib.so", "there is no allocator '/no/such/lib.so'"),
    ],
)
def test_an_allocator_that_is_not_there_is_said(traced, name, says):
    result = command("replay", traced, "--allocator", name)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"memrt: {says}")


def test_an_allocator_that_is_not_installed_is_said_with_its_package(traced, monkeypatch):
    monkeypatch.setattr(replay.ctypes.util, "find_library", lambda name: None)
    with pytest.raises(replay.CommandError, match=r"install Debian's libjemalloc2"):
        replay._library_of("jemalloc")


def test_what_is_no_memory_of_allocators_is_left_out(tmp_path):
    writer = Writer().events((1, ADOPTION, 1, 100, ADOPTED), (2, DEATH, 1, 100, ADOPTED))
    writer.events((3, BIRTH, 2, 0, RESIZABLE), (4, BIRTH, 3, 50), (5, RESIZE, 3, 60))
    (tmp_path / "t").write_bytes(writer.events((6, DEATH, 9, 8)).end().content)
    events = replay.events_of(memrt.Trace(tmp_path / "t"))
    assert events["type"].tolist() == [1, 2, 3]
    assert events["slot"].tolist() == [0, 0, 1]
    assert events["align_log2"].tolist() == [6, 6, 6]


@pytest.mark.parametrize("compiler", [["cc"], ["cc", "-std=c11", "-O2"]])
def test_the_program_in_c_compiles_alone_and_does_the_same(traced, tmp_path, compiler):
    result = command("replay", traced, "--emit-c", tmp_path / "run.c")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    binary = tmp_path / "run"
    flags = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run([*compiler, *flags, tmp_path / "run.c", "-o", binary], check=True)
    told = dict(line.split() for line in subprocess.check_output([binary], text=True).splitlines())
    trace = memrt.Trace(traced)
    assert int(told["events"]) == len(replay.events_of(trace))
    assert int(told["peak"]) == trace.peak
    assert int(told["live"]) == trace.live[-1]
    assert told["refused"] == "0"


def test_the_program_of_an_empty_trace_compiles_too(tmp_path):
    (tmp_path / "t * ; x").write_bytes(Writer().end().content)
    command("replay", tmp_path / "t * ; x", "--emit-c", tmp_path / "run.c")
    flags = ["-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    subprocess.run(["cc", *flags, tmp_path / "run.c", "-o", tmp_path / "run"], check=True)
    assert b"events 0\n" in subprocess.check_output([tmp_path / "run"])


def test_the_program_in_c_leaves_nothing_and_touches_nothing_else(traced, tmp_path):
    command("replay", traced, "--emit-c", tmp_path / "run.c")
    flags = ["-g", "-fsanitize=address,undefined"]
    subprocess.run(["cc", *flags, tmp_path / "run.c", "-o", tmp_path / "run"], check=True)
    subprocess.run([tmp_path / "run"], check=True)


def test_a_program_that_is_there_is_kept(traced, tmp_path):
    (tmp_path / "run.c").write_text("mine")
    result = command("replay", traced, "--emit-c", tmp_path / "run.c")
    assert result.returncode == 2
    assert (tmp_path / "run.c").read_text() == "mine"


def test_help_has_examples_and_exit_codes():
    result = command("replay", "--help")
    assert "python -m memrt replay run.memtrace" in result.stdout
    assert "exit status: " in result.stdout
