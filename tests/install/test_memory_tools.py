"""AddressSanitizer and memcheck find mistakes in blocks of the installed library, which is built
without a sanitizer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import memrt
import pytest
from consumers import CONSUMER, run

LARGE = 2 << 20
BUFFERS = [("block", 100), ("block", LARGE), ("meminfo", 100), ("resizable", 100)]
# The library has no frame pointers, which the fast unwinder of the sanitizer needs.
SANITIZED = {"ASAN_OPTIONS": "fast_unwind_on_malloc=0:detect_leaks=1"}
MEMCHECK = ("valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite")


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory) -> dict[str, Path]:
    """Return the program as built by two compilers. clang links the sanitizer statically."""
    return {name: build(tmp_path_factory, name, "-fsanitize=address") for name in ("gcc", "clang")}


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    return build(tmp_path_factory, "cc")


def build(tmp_path_factory, compiler: str, *flags: str) -> Path:
    library, program = Path(memrt.get_library()), tmp_path_factory.mktemp("faults") / "faults"
    flags += ("-g", "-O1", "-fno-omit-frame-pointer", "-Wall", "-Wextra", "-Werror")
    link = (library, f"-Wl,-rpath,{library.parent}")
    run(compiler, *flags, f"-I{memrt.get_include()}", "-o", program, CONSUMER / "faults.c", *link)
    return program


def report(*command: object, **environment: str) -> str:
    """Run a program with a mistake, and return its standard error."""
    words = [str(part) for part in command]
    return subprocess.run(words, env=os.environ | environment, capture_output=True, text=True,
                          check=False).stderr  # fmt: skip


@pytest.mark.parametrize(
    ("compiler", "creator", "size"),
    [*(("gcc", *buffer) for buffer in BUFFERS), ("clang", "block", 100)],
)
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("none", ""),
        ("overflow", "heap-buffer-overflow"),
        ("underflow", "use-after-poison"),
        ("write_freed", "heap-use-after-free"),
        ("read_freed", "heap-use-after-free"),
        ("leak", "detected memory leaks"),
    ],
)
def test_sanitizer_reports_mistake_with_stacks(sanitized, compiler, creator, size, fault, says):
    found = report(sanitized[compiler], creator, fault, size, **SANITIZED)
    if fault == "none":
        assert found == ""
        return
    assert says in found
    assert "in create_buffer" in found.partition("allocated")[2]
    if says == "heap-use-after-free":
        assert "in delete_buffer" in found.partition("freed by")[2]
        assert f"{'WRITE' if fault == 'write_freed' else 'READ'} of size 1" in found


@pytest.mark.parametrize(("creator", "size"), BUFFERS)
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("none", ""),
        ("overflow", "Invalid write of size 1"),
        ("write_freed", "Invalid write of size 1"),
        ("read_freed", "Invalid read of size 1"),
        ("uninitialised", "uninitialised value"),
        ("leak", "definitely lost"),
    ],
)
def test_memcheck_reports_mistake_with_stacks(plain, creator, size, fault, says):
    found = report(*MEMCHECK, "--track-origins=yes", plain, creator, fault, size)
    if fault == "none":
        assert found == ""
        return
    assert says in found
    assert ": create_buffer (faults.c:" in found
    assert (": delete_buffer (faults.c:" in found) == fault.endswith("freed")


def test_option_keeps_the_heap_under_a_tool(sanitized, plain):
    for fault in ("overflow", "write_freed"):
        words = ("block", fault, "100")
        assert report(sanitized["gcc"], *words, MEMRT_TOOLS="0", **SANITIZED) == ""
        assert report(*MEMCHECK, plain, *words, MEMRT_TOOLS="0") == ""


PYTHON = """
import ctypes, sys
import memrt, numpy as np

write = ctypes.CDLL(sys.argv[1]).write_byte
write.argtypes = [ctypes.c_void_p]
creator, fault, size = sys.argv[2], sys.argv[3], int(sys.argv[4])
options = {row.name: row.value for row in memrt.debug.options()}
assert (options["MEMRT_TOOLS"], options["MEMRT_CACHE"]) == ("1", "0")
memrt.enable()
array = memrt.empty(size, "u1") if creator == "memrt" else np.zeros(size, "u1")
assert memrt.is_managed(array)
array[:] = 7
address = array.ctypes.data
if fault == "none":
    for n in (0, 1, 100, size):
        array.resize(n, refcheck=False) if creator == "numpy" else memrt.empty(n)
elif fault == "freed":
    del array
    write(address)
else:
    write(address + (size if fault == "overflow" else -1))
"""


@pytest.fixture(scope="module")
def writer(tmp_path_factory) -> Path:
    """Return a library with a function that writes a byte, built with AddressSanitizer."""
    folder = tmp_path_factory.mktemp("writer")
    source, library = folder / "writer.c", folder / "writer.so"
    source.write_text("void write_byte(char *at) { *at = 1; }\n")
    run("gcc", "-g", "-fsanitize=address", "-shared", "-fPIC", "-o", library, source)
    return library


@pytest.mark.parametrize("size", ["100", str(LARGE)])
@pytest.mark.parametrize("creator", ["numpy", "memrt"])
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("none", ""),
        ("overflow", "heap-buffer-overflow"),
        ("underflow", "use-after-poison"),
        ("freed", "heap-use-after-free"),
    ],
)
def test_sanitizer_reports_writes_of_extensions(writer, creator, fault, says, size):
    preloaded = run("gcc", "-print-file-name=libasan.so").strip()
    environment = {"LD_PRELOAD": preloaded, "ASAN_OPTIONS": "detect_leaks=0"}
    words = (sys.executable, "-c", PYTHON, writer, creator, fault, size)
    found = report(*words, **environment)
    assert says in found
    assert "in write_byte" in found or found == says == ""
