"""Builds from source: messages for missing tools, and the third-party code that a wheel lists."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess

import pytest
from consumers import ROOT, run

SEARCHES = ("CMAKE_SYSTEM_PATH", "SYSTEM_ENVIRONMENT_PATH", "INSTALL_PREFIX")
NO_SYSTEM = [  # CMake then finds neither headers nor programs
    *(f"-DCMAKE_FIND_USE_{search}=OFF" for search in SEARCHES),
    f"-DCMAKE_MAKE_PROGRAM={shutil.which('ninja')}",
]


def configure(folder, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run CMake on memrt in a folder, with options."""
    return subprocess.run(
        ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_missing_compiler_is_explained(tmp_path):
    for tool in ("cmake", "ninja"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    result = configure(tmp_path / "build", PATH=str(tmp_path), CC="")
    message = " ".join(result.stderr.split())
    assert result.returncode != 0
    assert "no C compiler was found: install a compiler (Debian: build-essential)" in message


def test_missing_libatomic_ops_is_replaced_with_a_notice(tmp_path):
    result = configure(tmp_path, *NO_SYSTEM)
    assert result.returncode == 0, result.stderr
    assert "libatomic_ops was not found" in result.stderr
    assert "uses <stdatomic.h>" in result.stderr
    commands = (tmp_path / "compile_commands.json").read_text()
    assert "-DMEMRT_C11_ATOMICS=1" in commands


def test_libatomic_ops_is_used_by_default(tmp_path):
    assert configure(tmp_path).returncode == 0
    assert "MEMRT_C11_ATOMICS" not in (tmp_path / "compile_commands.json").read_text()


@pytest.mark.parametrize(
    ("option", "refused"), [("-DMEMRT_C11_ATOMICS=OFF", True), ("-DMEMRT_C11_ATOMICS=ON", False)]
)
def test_option_for_atomics_is_obeyed_without_libatomic_ops(tmp_path, option, refused):
    result = configure(tmp_path, *NO_SYSTEM, option)
    assert (result.returncode != 0) == refused
    assert ("install libatomic_ops" in " ".join(result.stderr.split())) == refused


@pytest.mark.parametrize(("options", "value"), [([], "1"), (["-DMEMRT_VALGRIND=OFF"], "0")])
def test_memcheck_is_recognized_unless_an_option_is_off(tmp_path, options, value):
    assert configure(tmp_path, *options).returncode == 0
    assert f"-DMEMRT_VALGRIND={value}" in (tmp_path / "compile_commands.json").read_text()


def test_wheel_lists_third_party_code_with_licences():
    files = importlib.metadata.files("memrt")
    found = {str(path).partition(".dist-info/")[2]: path for path in files}
    sbom = json.loads(found["sboms/memrt.cdx.json"].read_text())
    assert (sbom["bomFormat"], sbom["metadata"]["component"]["name"]) == ("CycloneDX", "memrt")
    versions = {each["name"]: each.get("version", "") for each in sbom["components"]}
    assert versions["dlpack"].startswith("1.")
    assert versions["libatomic_ops"].startswith("7.")
    assert versions["uPlot"].startswith("1.6.")
    assert "memcheck.h" in versions
    vendored = "bindings/memrt/_profile/vendor/LICENSE"
    for name in (
        "LICENSE",
        "api/include/memrt/dlpack/LICENSE",
        "cmake/licenses/libatomic_ops.txt",
        vendored,
    ):
        assert len(found[f"licenses/{name}"].read_text()) > 500


def test_debian_packaging_names_the_version_of_the_abi():
    control = (ROOT / "cmake/debian/control").read_text()
    header = (ROOT / "api/include/memrt/version.h").read_text()
    major = header.partition("MEMRT_ABI_MAJOR ")[2].partition("u")[0]
    assert f"Package: libmemrt{major}\n" in control
    assert (ROOT / f"cmake/debian/libmemrt{major}.install").exists()
    run("make", "-n", "-f", ROOT / "cmake/debian/rules", "clean")
