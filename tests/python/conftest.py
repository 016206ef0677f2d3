"""What all Python tests share: balanced books, C modules to play against, fresh interpreters."""

from __future__ import annotations

import gc
import importlib.util
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import memrt
import numpy as np
import pytest

EXT = Path(__file__).resolve().parent / "ext"
TIMEOUT = 60


def _books() -> dict[str, object]:
    stats = memrt.stats()
    return {
        "blocks": stats.alloc - stats.free,
        "meminfos": stats.mi_alloc - stats.mi_free,
        "live bytes": stats.live,
        "adopted bytes": stats.adopted,
        "policies": sorted(policy.name for policy in memrt.policies()),
        "handler": memrt.handler_name(),
        "enabled": memrt.enabled(),
    }


@pytest.fixture(scope="session", autouse=True)
def quick_collections():
    """What is there before the first test is no garbage: gc.collect() need not look at it."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def balanced_books(request):
    """Every block, policy and handler is as before when the test is over."""
    gc.collect()
    before = _books()
    yield
    request.node.funcargs.clear()  # pytest keeps what other fixtures gave a little longer
    gc.collect()
    assert _books() == before


def _command(source: Path, target: Path, *flags: str) -> list[str]:
    compiler = os.environ.get("CXX" if source.suffix == ".cpp" else "CC", "")
    compiler = compiler or ("c++" if source.suffix == ".cpp" else "cc")
    return [
        *shlex.split(compiler),
        *("-O1", "-g", "-shared", "-fPIC", "-pthread", "-Wall", "-Wextra", "-Wshadow", "-Wundef"),
        *("-Werror", "-D_GNU_SOURCE", *flags, "-o", str(target), str(source)),
    ]


def _extension_flags() -> list[str]:
    return [
        f"-I{memrt.get_include()}",
        *("-isystem", sysconfig.get_paths()["include"], "-isystem", np.get_include()),
        "-DNPY_TARGET_VERSION=NPY_1_22_API_VERSION",
        "-DNPY_NO_DEPRECATED_API=NPY_1_22_API_VERSION",
    ]


@pytest.fixture(scope="session")
def ext_dir(tmp_path_factory) -> Path:
    """Folder of the compiled modules, for subprocesses too."""
    return tmp_path_factory.mktemp("ext")


@pytest.fixture(scope="session")
def compile_module(ext_dir):
    """Compiles tests/python/ext/NAME against the installed headers and imports it, once."""
    loaded = {}

    def build(source: str):
        name = Path(source).stem
        if name not in loaded:
            target = ext_dir / (name + sysconfig.get_config_var("EXT_SUFFIX"))
            subprocess.run(_command(EXT / source, target, *_extension_flags()), check=True)
            spec = importlib.util.spec_from_file_location(name, target)
            loaded[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded[name])
        return loaded[name]

    return build


@pytest.fixture(scope="session")
def probe(compile_module):
    """A user's extension module over memrt/import.h and memrt/numpy.h."""
    return compile_module("probe.c")


@pytest.fixture(scope="session")
def recorder(compile_module):
    """Handlers that write down what NumPy asks of them."""
    return compile_module("recorder.c")


@pytest.fixture(scope="session")
def watchfree(ext_dir) -> Path:
    """A library that, preloaded, counts what the C library's free gets."""
    target = ext_dir / "libwatchfree.so"
    subprocess.run(_command(EXT / "watchfree.c", target), check=True)
    return target


@pytest.fixture
def run_python(ext_dir, tmp_path):
    """Runs source code in a fresh interpreter, which also finds the compiled modules."""

    def run(code: str, *arguments: str, env=None, check=True, flags=(), **options):
        path = os.pathsep.join([str(ext_dir), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, **(env or {})}
        result = subprocess.run(
            [sys.executable, *flags, "-c", code, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            cwd=tmp_path,
            **options,
        )
        if check:
            assert result.returncode == 0, result.stderr
        return result

    return run
