"""Fixtures of all Python tests: balanced accounts, compiled C modules, fresh interpreters."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import memrt
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from memrt import _memrt
from waiting import wait_for

# Hypothesis tries the same few examples each time, and many random examples with
# --hypothesis-profile=long. Slow examples do not fail: the speed depends on the machine.
PATIENT = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("quick", max_examples=50, derandomize=True, database=None, **PATIENT)
settings.register_profile("long", max_examples=120, stateful_step_count=80, **PATIENT)
settings.load_profile("quick")

EXT = Path(__file__).resolve().parent / "ext"
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
TIMEOUT = 300 if SANITIZED else 60  # seconds


def _books() -> dict[str, object]:
    stats = memrt.stats()
    return {
        "blocks": stats.alloc - stats.free,
        "meminfos": stats.mi_alloc - stats.mi_free,
        "live bytes": stats.live,
        "adopted bytes": stats.adopted,
        "exports": stats.exported,
        "policies": sorted(policy.name for policy in memrt.debug.policies()),
        "handler": memrt.handler_name(),
        "enabled": memrt.debug.enabled(),
    }


@pytest.fixture(autouse=True)
def balanced_books(request):
    """Verify that a test leaves blocks, MemInfos, bytes, exports, policies and the handler as
    before.
    """
    gc.collect()
    before = _books()
    yield
    request.node.funcargs.clear()  # pytest keeps the values of other fixtures longer
    gc.collect()
    # The thread of memory pressure holds each policy for a moment while it frees unused memory.
    with contextlib.suppress(AssertionError):
        wait_for(lambda: _books() == before)
    assert _books() == before


def _command(source: Path, target: Path, *flags: str) -> list[str]:
    compiler = os.environ.get("CXX" if source.suffix == ".cpp" else "CC", "")
    compiler = compiler or ("c++" if source.suffix == ".cpp" else "cc")
    return [
        *shlex.split(compiler),
        *("-O1", "-g", "-fPIC", "-pthread", "-Wall", "-Wextra", "-Wshadow", "-Wundef", "-Werror"),
        *("-D_GNU_SOURCE", str(source), *flags, "-o", str(target)),
    ]


def _header_flags() -> list[str]:
    return [f"-I{memrt.get_include()}", "-isystem", sysconfig.get_paths()["include"]]


def _extension_flags() -> list[str]:
    return [
        *("-shared", *_header_flags(), "-isystem", np.get_include()),
        "-DNPY_TARGET_VERSION=NPY_1_22_API_VERSION",
        "-DNPY_NO_DEPRECATED_API=NPY_1_22_API_VERSION",
    ]


def _library_flags() -> list[str]:
    library = Path(memrt.get_library())
    return [*_header_flags(), str(library), f"-Wl,-rpath,{library.parent}"]


def _embedding_flags() -> list[str]:
    """Return the flags to link a program with the Python of the tests."""
    known = sysconfig.get_config_vars()
    if known["Py_ENABLE_SHARED"]:
        folder = known["LIBDIR"]
        python = [f"-L{folder}", f"-Wl,-rpath,{folder}", f"-lpython{known['LDVERSION']}"]
    else:
        python = [f"{known['LIBPL']}/{known['LIBRARY']}", "-Wl,--export-dynamic"]
    return [*_library_flags(), *python, *known["LIBS"].split(), *known["SYSLIBS"].split()]


@pytest.fixture(scope="session")
def ext_dir(tmp_path_factory) -> Path:
    """Return the folder of the compiled modules, which subprocesses use too."""
    return tmp_path_factory.mktemp("ext")


@pytest.fixture(scope="session")
def compile_module(ext_dir):
    """Return a function that compiles tests/python/ext/NAME with the installed headers and imports
    the module, once per session.
    """
    loaded = {}

    def build(source: str, flags: list[str] | None = None):
        name = Path(source).stem
        if name not in loaded:
            target = ext_dir / (name + sysconfig.get_config_var("EXT_SUFFIX"))
            command = _command(EXT / source, target, *(flags or _extension_flags()))
            if shutil.which(command[0]) is None:
                pytest.skip("no C compiler")
            subprocess.run(command, check=True)
            spec = importlib.util.spec_from_file_location(name, target)
            loaded[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded[name])
        return loaded[name]

    return build


@pytest.fixture(scope="session")
def probe(compile_module):
    """Return a user's extension module that includes memrt/import.h and memrt/numpy.h."""
    return compile_module("probe.c")


@pytest.fixture(scope="session")
def recorder(compile_module):
    """Return a module whose handlers record NumPy's requests."""
    return compile_module("recorder.c")


@pytest.fixture(scope="session")
def steps(compile_module):
    """Return a module over memrt/numpy.h where each step of creating an array fails on demand."""
    return compile_module("steps.c")


@pytest.fixture(scope="session")
def dlclient(compile_module):
    """Return a module that acts as another DLPack library."""
    return compile_module("dlclient.c")


@pytest.fixture(scope="session")
def core(compile_module):
    """Return an extension that links only the C library, for import in subinterpreters."""
    return compile_module("core.c", ["-shared", *_library_flags()])


@pytest.fixture(scope="session")
def host(ext_dir) -> Path:
    """Return the path of a C program that embeds this Python."""
    target = ext_dir / "host"
    subprocess.run(_command(EXT / "host.c", target, *_embedding_flags()), check=True)
    return target


@pytest.fixture
def fixed_program(tmp_path) -> Path:
    """Return the path of a Python with a fixed address."""
    target = tmp_path / "fixed"
    flags = ("-no-pie", "-fno-pie", "-O0", *_embedding_flags())
    subprocess.run(_command(EXT / "fixed.c", target, *flags), check=True)
    return target


@pytest.fixture
def compile_library(tmp_path):
    """Return a function that compiles tests/python/ext/NAME into a shared library, not a Python
    module.
    """

    def build(source: str, *flags: str) -> Path:
        target = tmp_path / f"{Path(source).stem}.so"
        include = ("-shared", f"-I{memrt.get_include()}")
        subprocess.run(_command(EXT / source, target, *include, *flags), check=True)
        return target

    return build


@pytest.fixture
def libc_malloc():
    """Skip tests of the C library's malloc under AddressSanitizer, which behaves differently or
    reports an error.
    """
    if SANITIZED:
        pytest.skip("a sanitizer replaces malloc")


@pytest.fixture(scope="session")
def watchfree(ext_dir) -> Path:
    """Return the path of a library that, when preloaded, counts calls of the C library's free."""
    target = ext_dir / "libwatchfree.so"
    subprocess.run(_command(EXT / "watchfree.c", target, "-shared"), check=True)
    return target


@pytest.fixture(scope="session")
def interrupts(ext_dir) -> Path:
    """Return the path of the library of interrupts.c, for LD_PRELOAD in a child process."""
    target = ext_dir / "libinterrupts.so"
    subprocess.run(_command(EXT / "interrupts.c", target, "-shared"), check=True)
    return target


@pytest.fixture
def run_program(ext_dir, tmp_path):
    """Return a function that runs a command with a time limit. Python in the command also finds the
    compiled modules.
    """

    def run(*command: str | Path, env=None, check=True, **options):
        path = os.pathsep.join([str(ext_dir), os.environ.get("PYTHONPATH", "")])
        result = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": path, **(env or {})},
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


@pytest.fixture
def pseudo_terminal():
    """Yield both ends of a pseudo-terminal: the controlling end and the terminal."""
    try:
        leader, follower = os.openpty()
    except OSError as error:  # containers without devpts
        pytest.skip(f"no pseudo-terminal: {error.strerror}")
    yield leader, follower
    for descriptor in (leader, follower):
        with contextlib.suppress(OSError):  # a test may close an end
            os.close(descriptor)


@pytest.fixture
def untracked():
    """Switch tracking off for a test, as without an option in the environment."""
    was = _memrt.set_tracking(False)
    if _memrt.tracking_enabled():
        pytest.skip("checking keeps tracking on")
    yield
    _memrt.set_tracking(was)


@pytest.fixture
def limited_process():
    """Remove the limits of the process after the test."""
    yield
    memrt.limit(None)


@pytest.fixture
def unraisable(monkeypatch):
    """Return the exceptions that go to sys.unraisablehook."""
    caught = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: caught.append(info.exc_value))
    return caught


@pytest.fixture
def run_python(run_program):
    """Return a function that runs source code in a fresh interpreter."""

    def run(code: str, *arguments: str, flags=(), **options):
        return run_program(sys.executable, *flags, "-c", code, *arguments, **options)

    return run


@pytest.fixture
def run_host(run_program, host, ext_dir):
    """Return a function that runs source codes, in order, in the embedding C program. The result is
    the C program's JSON lines and the lines that the source codes print.

    The program starts the Python that the virtual environment was made from, because Python 3.14
    finds an environment's standard library at the first start in a process only.
    """
    packages = [path for path in sys.path if path.endswith("-packages")]
    paths = {"PYTHONPATH": os.pathsep.join([str(ext_dir), *packages])}

    def run(*codes: str) -> tuple[list[dict], list[str]]:
        result = run_program(host, sys._base_executable, *codes, env=paths)
        assert result.stderr == ""
        lines = result.stdout.splitlines()
        shown = [json.loads(line) for line in lines if line.startswith("{")]
        return shown, [line for line in lines if not line.startswith("{")]

    return run
