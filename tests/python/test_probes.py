"""Static probes, as tools from outside see them: readelf and bpftrace."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import memrt
import pytest
from memrt import _memrt

ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = {"birth": 4, "death": 4, "resize": 4, "failure": 2}
PROGRAM = """
import memrt, memrt.testing
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
    """The arguments of each probe of memrt at each of its places, as the library's file says."""
    command = ["readelf", "-nW", memrt.get_library()]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = defaultdict(list)
    place = r"Location: \w+, Base: \w+, Semaphore: (\w+)"
    pattern = rf"Provider: (\w+)\s+Name: (\w+)\s+{place}\s+Arguments:(.*)"
    for provider, name, semaphore, arguments in re.findall(pattern, text):
        if provider == "memrt":
            assert int(semaphore, 16) == 0, "a flag to be tested"
            found[name].append(arguments.strip())
    return dict(found)


def test_the_library_has_notes_of_all_probes_with_their_arguments():
    found = notes()
    assert found.keys() == ARGUMENTS.keys()
    for name, places in found.items():
        assert places
        assert {len(arguments.split()) for arguments in places} == {ARGUMENTS[name]}


def test_info_says_that_there_are_probes(run_python):
    shown = run_python("from memrt.commands import main; main(['info'])").stdout
    assert re.search(r"probes +birth, death, resize, failure\n", shown)


CALLING = 1 << 60  # bytes that the tests ask for until they are seen


class Watch:
    """bpftrace, which looks at the library in all processes; `shown` is what it printed."""

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
        """Wait until the first probe and the last are there."""
        until = time.monotonic() + 60
        while not {"first", "last"} <= set(self.shown.splitlines()) and self.works:
            assert time.monotonic() < until, f"bpftrace saw nothing: {self.shown}"
            with pytest.raises(MemoryError):
                memrt.alloc(CALLING)
            time.sleep(0.02)
        return self

    @property
    def works(self) -> bool:
        return self._process.poll() is None

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(timeout=60)
        finally:
            self._process.kill()


def watched(script: str, *command: str) -> str:
    """What bpftrace prints by a script, of a command among others."""
    with Watch(script) as watch:
        subprocess.run(command, check=True, timeout=60)
    return watch.shown


@pytest.fixture(scope="module")
def bpftrace():
    if shutil.which("bpftrace") is None:
        pytest.skip("bpftrace is not installed")
    with Watch("") as watch:
        if not watch.works:
            pytest.skip("the kernel lets nobody probe programs here")


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_bpftrace_sees_what_a_program_makes_frees_resizes_and_is_refused(bpftrace, program):
    at = f"usdt:{memrt.get_library()}:memrt"
    script = f"""
        {at}:birth {{
            if (arg1 == 7001) {{ @born = count(); @at[arg0] = 1; }}
            if (arg1 == 7002) {{ @array_kind = sum(arg3); @array = arg0; }}
            if (arg1 == 17) {{ @tiny_born = count(); }}
        }}
        {at}:death {{
            if (arg1 == 7001) {{ @dead = count(); if (@at[arg0] == 0) {{ @odd = count(); }} }}
            if (arg1 == 17) {{ @tiny_dead = count(); }}
        }}
        {at}:resize /arg2 == 7002/ {{ @size = sum(arg3); if (@array == arg0) {{ @is = count(); }} }}
        {at}:failure /arg0 == 7003/ {{ @refused = count(); }}
        END {{ clear(@at); clear(@array); }}
    """
    shown = watched(script, sys.executable, str(program))
    counts = {name: int(number) for name, number in re.findall(r"@(\w+): (\d+)", shown)}
    assert counts == {
        "born": 31,
        "dead": 31,
        "odd": 0,
        "tiny_born": 30,
        "tiny_dead": 30,
        "array_kind": 4,
        "size": 70020,
        "is": 1,
        "refused": 1,
    }


def lines_of_the_page() -> list[str]:
    text = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```text\n(bpftrace .*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [re.fullmatch(r"bpftrace -e '(.*)'\n", block, re.DOTALL)[1] for block in blocks]


@pytest.mark.parametrize("index", range(4))
def test_each_line_of_the_page_works(bpftrace, program, index):
    script = lines_of_the_page()[index].replace("LIBRARY", memrt.get_library())
    assert re.search(r"@.*[\[:]|7003 bytes refused", watched(script, sys.executable, str(program)))


def test_the_page_has_no_line_that_is_not_tried():
    assert len(lines_of_the_page()) == 4
