"""Test of the NRT table: C code compiled with Numba's unmodified nrt_external.h runs on memrt."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import memrt
import pytest

HERE = Path(__file__).resolve().parent
VERSION = "0.68.1"
CACHE = HERE.parents[1] / "build" / f"numba-{VERSION}"
HEADER = "numba/core/runtime/nrt_external.h"

# The wheel for Python 3.12, whichever Python runs here: only the header is used.
WHEEL = "--python-version 3.12 --implementation cp --abi cp312 --only-binary :all:".split()
PLATFORMS = "--platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64".split()


def fetch_wheel() -> Path:
    """Return Numba's wheel from the cache or from PyPI. Without both the test is skipped."""
    if not list(CACHE.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", CACHE]
        result = subprocess.run(
            [*command, *WHEEL, *PLATFORMS, f"numba=={VERSION}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            pytest.skip(f"numba=={VERSION} cannot be downloaded from PyPI: {result.stderr[-300:]}")
    return next(CACHE.glob("*.whl"))


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """Compile the caller with the header from Numba's wheel, linked with libmemrt."""
    folder = tmp_path_factory.mktemp("nrt")
    with zipfile.ZipFile(fetch_wheel()) as wheel:
        (folder / "nrt_external.h").write_bytes(wheel.read(HEADER))
    library = Path(memrt.get_library())
    subprocess.run(
        [
            *shlex.split(os.environ.get("CC", "cc")),
            *("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror"),
            *("-I", HERE, "-I", HERE / "nrt", "-isystem", folder, "-I", memrt.get_include()),
            *(HERE / "nrt/caller.c", HERE / "nrt/program.c"),
            *("-o", folder / "program", library, f"-Wl,-rpath,{library.parent}"),
        ],
        check=True,
    )
    return folder / "program"


@pytest.mark.parametrize("checking", ["0", "1"])
def test_code_compiled_against_numbas_header_runs_on_the_table(program, checking):
    result = subprocess.run(
        [program],
        env={**os.environ, "MEMRT_CHECK": checking},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "3 MemInfos allocated and freed\n"
