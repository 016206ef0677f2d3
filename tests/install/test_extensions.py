"""The projects of examples/extensions build against the installed wheel, and free their arrays.

Each project has a function that returns an array over memory that its compiled code has allocated.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from consumers import ROOT, run

pytestmark = pytest.mark.timeout(900)  # the first test builds all projects

EXAMPLES = ROOT / "examples" / "extensions"
PIP = ["install", "--no-index", "--no-deps", "--no-build-isolation", "--no-compile"]

# The function of each project, with the same function of NumPy over `values`.
FUNCTIONS = {
    "setuptools": ("running_sum", "np.cumsum(values)"),
    "meson_python": ("running_max", "np.maximum.accumulate(values)"),
    "scikit_build_core": ("running_mean", "np.cumsum(values) / np.arange(1, 1001)"),
    "cython": ("running_min", "np.minimum.accumulate(values)"),
    "pybind11": ("running_product", "np.cumprod(values)"),
    "nanobind": ("running_norm", "np.sqrt(np.cumsum(values**2))"),
    "cffi": ("running_square_sum", "np.cumsum(values**2)"),
}
# First line of the MemoryError for 1,000 elements. PyErr_NoMemory() sets no message.
REASONS = dict.fromkeys(
    ("pybind11", "nanobind"), "no memory for 7.8 KiB (8000 bytes) of policy 'default'"
) | {"cffi": "no memory for 8000 bytes"}
CHECK = """
import gc
import memrt, memrt.testing
import numpy as np
from {name} import {name} as function

values = np.linspace(0.5, 1.5, 1000)
gc.collect()
before = memrt.stats()
result = function(values)
assert isinstance(result, np.ndarray) and result.dtype == np.float64
assert np.allclose(result, {expected}), result
assert result.flags.writeable and not result.flags.owndata
assert (memrt.stats() - before).live == 8000, memrt.stats() - before
view = result[500:]
del result
gc.collect()
assert (memrt.stats() - before).live == 8000
assert np.allclose(view, ({expected})[500:])
del view
gc.collect()
assert (memrt.stats() - before).live == 0, memrt.stats() - before
assert len(function(np.zeros(0))) == 0
for wrong in (np.zeros((2, 2)), "text"):
    try:
        function(wrong)
    except (TypeError, ValueError):
        continue
    raise AssertionError(f"accepted {{wrong!r}}")
with memrt.testing.fail_allocations(nth=1, every=1):
    try:
        function(values)
    except MemoryError as error:
        said = str(error)
    else:
        raise AssertionError("no MemoryError")
assert (memrt.stats() - before).live == 0
managed = function(values)
print(memrt.is_managed(managed), said.partition(chr(10))[0])
"""


def build(project: str, folder: Path) -> Path:
    """Build a copy of a project for the Python of the tests, and return the import path."""
    source = folder / "source" / project
    shutil.copytree(EXAMPLES / project, source)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "CMAKE_GENERATOR": "Ninja", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    run(sys.executable, "-m", "pip", *PIP, "--target", folder / project, source, **environment)
    return folder / project


@pytest.fixture(scope="module")
def builds(tmp_path_factory) -> Iterator[dict[str, Future[Path]]]:
    """Start to build all projects, two at a time. Each result is the import path of a project."""
    folder = tmp_path_factory.mktemp("extensions")
    with ThreadPoolExecutor(2) as pool:
        yield {project: pool.submit(build, project, folder) for project in FUNCTIONS}


@pytest.mark.parametrize("project", FUNCTIONS)
@pytest.mark.parametrize("checking", ["0", "1"])
def test_array_of_extension_is_counted_and_freed(builds, project, checking):
    name, expected = FUNCTIONS[project]
    result = subprocess.run(
        [sys.executable, "-c", CHECK.format(name=name, expected=expected)],
        env={**os.environ, "PYTHONPATH": str(builds[project].result()), "MEMRT_CHECK": checking},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    managed, _, reason = result.stdout.strip().partition(" ")
    assert managed == str(project != "cffi")  # cffi cannot make the capsule of a MemInfo
    assert reason == REASONS.get(project, "")


def test_each_project_has_a_test():
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == {
        *FUNCTIONS,
        "rust",  # test_rust.py
    }
