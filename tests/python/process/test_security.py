"""Statements of docs/internals/security.md on files, sockets, programs and threads, by strace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
    pytest.mark.usefixtures("libc_malloc"),  # LeakSanitizer cannot work under strace
]

BEGIN, END = "/memrt-test-begins", "/memrt-test-ends"

# Imports and the first call of each function come before the examined part.
PROGRAM = """
import os, sys
import memrt, numpy as np

def work():
{work}

for _ in range(2):
    os.access({begin!r}, os.F_OK)
    work()
    os.access({end!r}, os.F_OK)
"""

USE = """
    memrt.enable()
    kept = [np.ones(size) for size in (1, 100, 10_000, 1_000_000) for _ in range(20)]
    with memrt.Policy(128, "mine"), memrt.scope("inside"):
        kept.append(np.zeros(5000))
    memrt.stats()
    memrt.debug.live()
    kept.clear()
    memrt.release_unused()
    memrt.disable()
"""

PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
CALLS = "%file,%network,%process"
THREAD = re.compile(r"\bclone3?\(")
STARTS_PROGRAM = re.compile(r"\b(?:execve|execveat|fork|vfork)\(")
NETWORK = re.compile(r"\b(?:socket|connect|bind|listen|accept4?|sendto|recvfrom)\(")


class Seen:
    """System calls of the second round of `work` in a program, and threads of the whole program."""

    def __init__(self, lines: list[str]) -> None:
        begins = [number for number, line in enumerate(lines) if f'"{BEGIN}"' in line]
        ends = [number for number, line in enumerate(lines) if f'"{END}"' in line]
        assert len(begins) == len(ends) == 2
        self.calls = lines[begins[1] + 1 : ends[1]]
        self.later = lines[begins[0] + 1 :]
        self.shared = {
            path
            for line in lines
            for path in PATH.findall(line)
            if path.startswith("/dev/shm/memrt")
        }
        self.paths = {path for line in self.calls for path in PATH.findall(line)}
        self.threads = sum(1 for line in self.later if THREAD.search(line))
        self.programs = [line for line in self.later if STARTS_PROGRAM.search(line)]
        self.network = [line for line in self.later if NETWORK.search(line)]


@pytest.fixture
def watch(tmp_path):
    """Return a function that runs a program under strace; the argument is the body of `work`."""

    def run(work: str, **environment: str) -> Seen:
        log = tmp_path / "calls"
        program = PROGRAM.format(work=work, begin=BEGIN, end=END)
        strace = ["strace", "-f", "-qq", "-s", "4096", "-e", f"trace={CALLS}", "-o", str(log)]
        one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        cleared = {key: text for key, text in os.environ.items() if not key.startswith("MEMRT_")}
        result = subprocess.run(
            [*strace, sys.executable, "-c", program],
            env={**cleared, **one_thread, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if "Operation not permitted" in result.stderr and not log.read_text():
            pytest.skip("strace has no permission to trace programs")
        assert result.returncode == 0, result.stderr
        return Seen(log.read_text().splitlines())

    return run


def test_allocations_open_only_statm_and_start_at_most_1_thread(watch):
    seen = watch(USE)
    assert seen.paths <= {"/proc/self/statm"}
    assert not seen.shared
    assert seen.threads <= 1
    assert not seen.programs
    assert not seen.network


def test_shared_statistics_use_only_the_folder_of_the_user(watch):
    seen = watch(USE, MEMRT_SHARE="1")
    folder = f"/dev/shm/memrt-{os.geteuid()}"
    page = re.compile(re.escape(folder) + r"/\d+-\d+")
    pages = {path for path in seen.shared if page.fullmatch(path)}
    assert len(pages) == 1
    assert seen.shared <= {folder, *pages}
    assert seen.paths <= {"/proc/self/statm", *pages}
    assert seen.threads <= 2
    assert not seen.programs
    assert not seen.network


def test_event_trace_opens_only_its_file(watch, tmp_path):
    path = tmp_path / "a.memtrace"
    seen = watch(
        f"    with memrt.debug.trace({str(path)!r}, replace=True):\n"
        "        kept = memrt.zeros(1000)\n"
        "        del kept\n"
    )
    folder = f"{tmp_path}/"
    assert str(path) in seen.paths
    assert all(name == str(path) or name.startswith(f"{folder}.memrt-") for name in seen.paths)
    assert seen.threads <= 1
    assert not seen.network
    assert os.listdir(tmp_path).count("a.memtrace") == 1


SHORTAGE = """
    try:
        memrt.alloc(2**62)
    except MemoryError as error:
        assert str(error)
    else:
        raise SystemExit("2**62 bytes were allocated")
"""

LIMITS = re.compile(r"/proc/self/(?:statm|cgroup|mountinfo)|/proc/meminfo|/sys/fs/cgroup/.*")


def test_out_of_memory_reads_only_system_limits(watch):
    seen = watch(SHORTAGE)
    assert all(LIMITS.fullmatch(path) for path in seen.paths)
    assert seen.threads <= 1
    assert not seen.network


PRESSURE = """
    import time
    with memrt.on_pressure(print, "critical"):
        time.sleep(0.3)
    memrt.debug.pressure()
"""
SIGNALS = re.compile(
    LIMITS.pattern + r"|/proc/pressure/memory|.*/(?:cgroup.event_control|memory\.[a-z_]+)"
)


def test_memory_pressure_reads_only_limits_and_signals(watch):
    seen = watch(PRESSURE)
    assert "/proc/self/mountinfo" in seen.paths
    named = seen.paths - {""}  # fstat of an open file has no name
    assert all(SIGNALS.fullmatch(path) for path in named)
    assert seen.threads <= 3  # one per round, and the thread that gives unused memory back
    assert not seen.programs
    assert not seen.network
