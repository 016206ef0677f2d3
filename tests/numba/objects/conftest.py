"""Fixtures for functions of Numba in C: the command, the C compiler and libmemrt_nrt."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
from pathlib import Path

import memrt
import pytest

LIBRARY = Path(memrt.get_library())


@pytest.fixture(scope="session")
def nrt() -> ctypes.CDLL:
    """Return libmemrt_nrt, on the libmemrt of this process."""
    return ctypes.CDLL(str(LIBRARY.with_name("libmemrt_nrt.so.1")))


@pytest.fixture(scope="session")
def cc():
    """Return a runner of the C compiler with the flags of pkg-config, warnings as errors."""
    search = {**os.environ, "PKG_CONFIG_PATH": str(LIBRARY.with_name("pkgconfig"))}
    found = subprocess.run(["pkg-config", "--cflags", "--libs", "memrt-nrt"], env=search,
                           check=True, capture_output=True, text=True)  # fmt: skip
    strict = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror")

    flags = [*found.stdout.split(), f"-Wl,-rpath,{LIBRARY.parent}"]

    def run(*arguments: object) -> None:
        command = [*shlex.split(os.environ.get("CC", "cc")), *strict, *map(str, arguments)]
        subprocess.run([*command, *flags], check=True)

    return run
