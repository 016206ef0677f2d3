"""The program of examples/objects runs without leaks and without Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "objects"
EXPECTED = re.search(r"```text\n(.*)```", (EXAMPLE / "README.md").read_text(), re.DOTALL)[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Return a copy of the example with the object file."""
    folder = tmp_path_factory.mktemp("example")
    for path in EXAMPLE.iterdir():
        shutil.copy(path, folder)
    command = re.search(r"memrt compile (.*)\n", (EXAMPLE / "README.md").read_text())[1]
    words = [sys.executable, "-m", "memrt", "compile", *command.split()]
    subprocess.run(words, cwd=folder, check=True)
    return folder


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True,
                          check=False)  # fmt: skip


def linked(program: Path) -> list[Path]:
    """Return the shared libraries of a program, as the loader finds them."""
    listed = run("ldd", program)
    assert "not found" not in listed.stdout
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", listed.stdout)]


@pytest.mark.parametrize("checking", ["0", "1"])
def test_example_leaks_nothing(built, cc, checking):
    program = built / "images_sanitized"
    cc("-g", "-fsanitize=address,undefined", "-o", program, built / "main.c", built / "kernels.o")
    result = run(program, MEMRT_LEAKS="fail", MEMRT_CHECK=checking, ASAN_OPTIONS="detect_leaks=1")
    assert (result.returncode, result.stdout, result.stderr) == (0, EXPECTED, "")


def test_example_runs_with_its_libraries_only(built, cc, tmp_path):
    program = built / "images"
    cc("-o", program, built / "main.c", built / "kernels.o")
    libraries = linked(program)
    assert not any("python" in path.name for path in libraries)
    for path in [program, *libraries]:
        target = tmp_path / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)  # the contents, also of symbolic links
    root = () if os.geteuid() == 0 else ("unshare", "--map-root-user")
    result = run(*root, shutil.which("chroot", path="/usr/sbin:/usr/bin"), tmp_path, program,
                 MEMRT_LEAKS="fail")  # fmt: skip
    assert (result.returncode, result.stdout, result.stderr) == (0, EXPECTED, "")


@pytest.fixture(scope="module")
def leaking(built) -> Path:
    """Return a copy of the example's source that lacks one release, and so leaks."""
    source = (built / "main.c").read_text()
    path = built / "leaking.c"
    path.write_text(source.replace("NRT_MemInfo_release(halved.meminfo);", ""))
    assert path.read_text() != source
    return path


def test_leak_of_the_example_is_found(built, leaking, cc):
    cc("-o", built / "leaking", leaking, built / "kernels.o")
    result = run(built / "leaking", MEMRT_LEAKS="fail")
    assert result.returncode != 0
    assert "48 bytes live" in result.stdout


def test_valgrind_finds_a_seeded_leak_only(built, leaking, cc):
    sources = {"images": built / "main.c", "leaking": leaking}
    reports = {}
    for name, source in sources.items():
        cc("-g", "-o", built / name, source, built / "kernels.o")
        # Without caches, each buffer is a block of malloc, which valgrind tracks.
        result = run("valgrind", "-q", "--leak-check=full", built / name, MEMRT_CACHE="0",
                     PATH=os.environ["PATH"])  # fmt: skip
        assert result.returncode == 0
        reports[name] = result.stderr
    assert reports["images"] == ""
    assert "definitely lost" in reports["leaking"]
    assert ": halve (" in reports["leaking"]
