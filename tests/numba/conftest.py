"""Fixtures of the Numba tests. The tests run on installed Numba (./dev suites numba), on memrt."""

from __future__ import annotations

import gc
import os
import shlex
import subprocess
import sys
from pathlib import Path

import memrt
import memrt.numba
import pytest

memrt.numba.install()

import numba  # noqa: E402 - Numba must be imported after install()
from runtimes import Runtime, load_stock  # noqa: E402

EXT = Path(__file__).resolve().parent / "ext"
TIMEOUT = 300


def _books() -> dict[str, int]:
    stats = memrt.stats()
    return {
        "blocks": stats.alloc - stats.free,
        "meminfos": stats.mi_alloc - stats.mi_free,
        "bytes": stats.live,
    }


@pytest.fixture(autouse=True)
def balanced_books(request):
    """Check that a test leaves no block, MemInfo or byte live, unless marked `numba_leaks`."""
    gc.collect()
    before = _books()
    yield
    gc.collect()
    if request.node.get_closest_marker("numba_leaks") is None:
        assert _books() == before


@pytest.fixture(scope="session")
def on_memrt() -> Runtime:
    """Return memrt's C helpers, which jitted code calls in these tests."""
    from numba.core.runtime import _nrt_python

    assert memrt.numba.installed()
    return Runtime(_nrt_python)


@pytest.fixture(scope="session")
def on_stock() -> Runtime:
    """Return Numba's own C helpers, loaded beside memrt's helpers and unused by jitted code."""
    return Runtime(load_stock())


@pytest.fixture(scope="session")
def numba_folder() -> Path:
    return Path(numba.__file__).resolve().parent


@pytest.fixture(scope="session")
def compile_library(tmp_path_factory):
    """Return a function that compiles C sources into a shared library, warnings as errors."""

    def build(*sources: Path, flags: tuple[str, ...] = ()) -> Path:
        target = tmp_path_factory.mktemp("lib") / f"{Path(sources[0]).stem}.so"
        strict = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE")
        command = [*shlex.split(os.environ.get("CC", "cc")), "-O1", "-g", "-shared", "-fPIC"]
        subprocess.run([*command, *strict, *flags, "-o", target, *sources], check=True)
        return target

    return build


@pytest.fixture
def run_python(tmp_path):
    """Return a function that runs source code in a new interpreter and a temporary folder."""

    def run(code: str, *arguments: str, env=None, check=True, flags=(), python=sys.executable):
        script = tmp_path / "program.py"
        script.write_text(code, encoding="utf-8")
        result = subprocess.run(
            [python, *flags, str(script), *arguments],
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            cwd=tmp_path,
            check=False,
        )
        if check:
            assert result.returncode == 0, result.stderr
        return result

    return run
