"""Tests of an editable install: the folders and files for compiling against memrt exist."""

from __future__ import annotations

import json
import sys
import sysconfig
from pathlib import Path

import pytest
from consumers import CONSUMER, EXPECTED, ROOT, run

pytestmark = pytest.mark.timeout(900)  # the first test builds memrt

LOCATIONS = """
import json, memrt
print(json.dumps([memrt.__file__, memrt.get_include(), memrt.get_library(), memrt.get_cmake_dir()]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """Return the Python of an environment that has an editable install of memrt, and all packages
    of the environment of the tests.
    """
    folder = tmp_path_factory.mktemp("editable")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    (Path(packages) / "packages_of_the_tests.pth").write_text(sysconfig.get_path("purelib"))
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps"),
        *("--no-build-isolation", "--ignore-installed", "--editable", ROOT),
        *("-C", f"build-dir={folder / 'build'}", "-C", "cmake.build-type=Debug"),
        CMAKE_GENERATOR="Ninja",
    )
    return python


def test_locations_of_editable_install_exist(python):
    package, include, library, cmake = map(Path, json.loads(run(python, "-c", LOCATIONS)))
    assert package == ROOT / "bindings/memrt/__init__.py"
    for path in (include / "memrt/memrt.h", library, cmake / "memrtConfig.cmake"):
        assert path.is_file()
        assert not path.is_relative_to(ROOT)
        assert path.is_relative_to(python.parents[1])


def test_program_builds_by_config_of_editable_install(python, tmp_path):
    flags = run(python, "-m", "memrt", "config", "--cflags", "--libs").split()
    run("cc", "-std=c11", CONSUMER / "program.c", "-o", tmp_path / "program", *flags)
    assert run(tmp_path / "program") == EXPECTED


def test_program_builds_by_pkg_config_of_editable_install(python, tmp_path):
    folder = run(python, "-m", "memrt", "config", "--pkgconfigdir").strip()
    flags = run("pkg-config", "--cflags", "--libs", "memrt", PKG_CONFIG_PATH=folder).split()
    run("cc", "-std=c11", CONSUMER / "program.c", "-o", tmp_path / "program", *flags)
    assert run(tmp_path / "program") == EXPECTED
