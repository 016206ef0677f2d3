"""Static probes as external tools see them: readelf and bpftrace."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import memrt
import pytest
from memrt import _memrt

ROOT = Path(__file__).resolve().parents[3]
ARGUMENTS = {"alloc": 4, "free": 4, "resize": 4, "failure": 2}
PROGRAM = """
import memrt, memrt.testing
with open("/proc/self/comm", "w") as file:
    file.write("NAME")
kept = memrt.alloc(7001)
for _ in range(30):
    memrt.alloc(7001)
    memrt.empty(17, "u1")
block = memrt.empty(1, "u1")
with memrt.Policy():
    import numpy
    array = numpy.empty(7002, "u1")
    array.resize(70020, refcheck=False)
with memrt.testing.fail_allocations(1):
    try:
        memrt.alloc(7003)
    except MemoryError:
        pass
"""


@pytest.fixture(autouse=True)
def probes():
    if not _memrt.features()["probes"]:
        pytest.skip("memrt was built without probes")


def notes() -> dict[str, list[str]]:
    """Return the arguments of each probe of memrt at each location, from the library's notes."""
    command = ["readelf", "-nW", memrt.get_library()]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = defaultdict(list)
    place = r"Location: \w+, Base: \w+, Semaphore: (\w+)"
    pattern = rf"Provider: (\w+)\s+Name: (\w+)\s+{place}\s+Arguments:(.*)"
    for provider, name, semaphore, arguments in re.findall(pattern, text):
        if provider == "memrt":
            assert int(semaphore, 16) == 0, "the probe has a semaphore"
            found[name].append(arguments.strip())
    return dict(found)


def test_library_notes_list_all_probes_and_argument_counts():
    found = notes()
    assert found.keys() == ARGUMENTS.keys()
    for name, places in found.items():
        assert places
        assert {len(arguments.split()) for arguments in places} == {ARGUMENTS[name]}


def test_info_lists_the_probes(run_python):
    shown = run_python("from memrt.commands import main; main(['info'])").stdout
    assert re.search(r"probes +alloc, free, resize, failure\n", shown)


CALLING = 1 << 60  # bytes of each request that the tests repeat until bpftrace reports a request


class Watch:
    """A bpftrace process that observes the library in all processes; `shown` is the output."""

    def __init__(self, script: str) -> None:
        calls = f"usdt:{memrt.get_library()}:memrt:failure /arg0 == {CALLING}/"
        script = f'{calls} {{ printf("first\\n"); }} {script} {calls} {{ printf("last\\n"); }}'
        self._file = tempfile.TemporaryFile("w+")  # noqa: SIM115 (it is read after the end)
        self._process = subprocess.Popen(
            ["bpftrace", "-B", "line", "-e", script],
            stdout=self._file, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    @property
    def shown(self) -> str:
        self._file.seek(0)
        return self._file.read()

    def __enter__(self) -> Watch:
        """Wait until bpftrace reports the first and the last probe of the script."""
        while not {"first", "last"} <= set(self.shown.splitlines()) and self.works:
            with pytest.raises(MemoryError):
                memrt.alloc(CALLING)
            time.sleep(0.02)
        return self

    @property
    def works(self) -> bool:
        return self._process.poll() is None

    def __exit__(self, *_: object) -> None:
        """Interrupt bpftrace, and wait until all probes are removed."""
        try:
            while self.works:
                self._process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=10)
        finally:
            self._process.kill()


def watched(script: str, *command: str) -> str:
    """Return the output of a bpftrace script for a command; the script sees all processes."""
    with Watch(script) as watch:
        subprocess.run(command, check=True)
    return watch.shown


@pytest.fixture(scope="module")
def bpftrace():
    if shutil.which("bpftrace") is None:
        pytest.skip("bpftrace is not installed")
    with Watch("") as watch:
        if not watch.works:
            pytest.skip("the kernel refuses probes of programs")


NAME = f"watched{os.getpid()}"[-15:]  # of the program's process; other tests run the program, too


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("NAME", NAME))
    return path


def test_bpftrace_counts_allocations_frees_resizes_and_failures(bpftrace, program):
    at = f"usdt:{memrt.get_library()}:memrt"
    mine = f'/comm == "{NAME}"/'  # other processes have blocks of 17 bytes, too
    script = f"""
        {at}:alloc {mine} {{
            if (arg1 == 7001) {{ @allocated = count(); @at[arg0] = 1; }}
            if (arg1 == 7002) {{ @array_kind = sum(arg3); @array = arg0; }}
            if (arg1 == 17) {{ @tiny_allocated = count(); }}
        }}
        {at}:free {mine} {{
            if (arg1 == 7001) {{ @freed = count(); if (@at[arg0] == 0) {{ @odd = count(); }} }}
            if (arg1 == 17) {{ @tiny_freed = count(); }}
        }}
        {at}:resize {mine} {{
            if (arg2 == 7002) {{ @size = sum(arg3); if (@array == arg0) {{ @is = count(); }} }}
        }}
        {at}:failure {mine} {{ if (arg0 == 7003) {{ @refused = count(); }} }}
        END {{ clear(@at); clear(@array); }}
    """
    shown = watched(script, sys.executable, str(program))
    counts = {name: int(number) for name, number in re.findall(r"@(\w+): (\d+)", shown)}
    assert counts.pop("odd", 0) == 0  # newer versions of bpftrace omit unused maps
    assert counts == {
        "allocated": 31,
        "freed": 31,
        "tiny_allocated": 30,
        "tiny_freed": 30,
        "array_kind": 4,
        "size": 70020,
        "is": 1,
        "refused": 1,
    }


def lines_of_the_page() -> list[str]:
    text = (ROOT / "docs" / "guide" / "services" / "telemetry.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```text\n(bpftrace .*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [re.fullmatch(r"bpftrace -e '(.*)'\n", block, re.DOTALL)[1] for block in blocks]


@pytest.mark.parametrize("index", range(4))
def test_bpftrace_script_of_the_telemetry_page_works(bpftrace, program, index):
    script = lines_of_the_page()[index].replace("LIBRARY", memrt.get_library())
    assert re.search(r"@.*[\[:]|7003 bytes refused", watched(script, sys.executable, str(program)))


def test_telemetry_page_has_4_bpftrace_scripts():
    assert len(lines_of_the_page()) == 4
