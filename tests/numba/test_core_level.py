"""Build Numba's Python shim from Numba's shipped sources, on memrt's core instead of nrt.cpp.

A test that fails only here needs the bindings. A failure here and with the bindings is a bug in the
core.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import memrt
import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
MODULES = ("test_nrt", "test_nrt_refct", "test_struct_ref")

# Needs memory reported to tracemalloc, a part of Python. The core does not know Python.
NEEDS_THE_BINDINGS = "numba.tests.test_nrt.TestTracemalloc.test_snapshot"

SITE = """
import os, sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import spec_from_file_location

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "numba.core.runtime._nrt_python":
            return None
        file = {file!r}
        return spec_from_file_location(name, file, loader=ExtensionFileLoader(name, file))

sys.meta_path.insert(0, Finder)
"""

PROOF = """
import sys
import numba, numpy
from numba.core.runtime import _nrt_python as nrt
assert nrt.__file__ == sys.argv[1], nrt.__file__
assert not hasattr(nrt, "memrt_version"), "that is the bindings' module"
array = numba.njit(lambda n: numpy.ones(n))(1000)
import memrt
assert memrt.stats().alloc == 1 and memrt.stats().live == 8000, memrt.stats()
print("on the core")
"""


def flags(numba_folder: Path) -> list[str]:
    library = Path(memrt.get_library())
    return [
        f"-I{memrt.get_include()}",
        f"-I{numba_folder / 'core' / 'runtime'}",
        *("-isystem", sysconfig.get_path("include"), "-isystem", np.get_include()),
        *(str(library), f"-Wl,-rpath,{library.parent}"),
    ]


@pytest.fixture(scope="module")
def core_module(numba_folder, tmp_path_factory) -> Path:
    """Build the runtime module from Numba's sources and memrt's core, and return its path."""
    folder = tmp_path_factory.mktemp("core")
    target = folder / f"_nrt_python{sysconfig.get_config_var('EXT_SUFFIX')}"
    sources = [numba_folder / "core/runtime/_nrt_pythonmod.c", HERE / "core_level/nrt_on_memrt.c"]
    command = ["cc", "-O1", "-g", "-shared", "-fPIC", "-w", "-o", target, *sources]
    subprocess.run([*command, *flags(numba_folder)], check=True)
    (folder / "sitecustomize.py").write_text(SITE.format(file=str(target)))
    return target


def run(module: Path, *command: object) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(module.parent)}
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env=environment,
        cwd=module.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def test_jitted_code_allocates_from_the_core(core_module, tmp_path):
    script = tmp_path / "proof.py"
    script.write_text(PROOF)
    done = run(core_module, script, core_module)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "on the core\n"


def list_tests(module: str, core_module: Path) -> list[str]:
    code = f"""
import unittest
def walk(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from walk(test)
        else:
            yield test.id()
print(*walk(unittest.defaultTestLoader.loadTestsFromName("numba.tests.{module}")))
"""
    return run(core_module, "-c", code).stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_runtime_tests_of_numba_pass_on_the_core(core_module, tmp_path, module):
    tests = list_tests(module, core_module)
    assert len(tests) >= 4
    out = tmp_path / "outcomes.json"
    done = run(core_module, HERE / "upstream/run_class.py", out, *tests)
    assert done.returncode == 0, done.stderr
    outcomes = {name: entry["outcome"] for name, entry in json.loads(out.read_text()).items()}
    assert set(outcomes) == set(tests)
    failed = {name for name, outcome in outcomes.items() if outcome in ("failed", "error")}
    assert failed == ({NEEDS_THE_BINDINGS} & set(tests))
    assert sum(outcome == "ok" for outcome in outcomes.values()) >= 4
