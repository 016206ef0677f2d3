"""The check of a wheel's contents finds missing licences and files outside of the package."""

from __future__ import annotations

import json
import zipfile

import pytest
import wheel_audit as audit
from wheel_targets import AARCH64, MUSL, X86_64

INFO = "memrt-1.0.dist-info"


def make_wheel(path, *, without: str = "", also: str = "", components=audit.COMPONENTS):
    names = [
        f"{INFO}/METADATA",
        "memrt/__init__.py",
        audit.DEBUG_FILE,
        *(f"{INFO}/licenses/{n}" for n in audit.LICENSES),
    ]
    bom = {"components": [{"name": name} for name in components]}
    with zipfile.ZipFile(path / "memrt-1.0-py3-none-any.whl", "w") as archive:
        for name in [*names, *([also] if also else [])]:
            if not without or not name.endswith(without):
                archive.writestr(name, "")
        archive.writestr(f"{INFO}/sboms/memrt.cdx.json", json.dumps(bom))
    return path / "memrt-1.0-py3-none-any.whl"


def test_complete_wheel_has_no_fault(tmp_path):
    assert audit.faults(make_wheel(tmp_path)) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"without": "dlpack/LICENSE"}, "api/include/memrt/dlpack/LICENSE is missing"),
        ({"without": ".debug"}, "memrt/lib/.debug/libmemrt.so.1.debug is missing"),
        ({"also": "tests/x.py"}, "tests/x.py is outside of memrt"),
        ({"components": ["dlpack"]}, "the SBOM must list"),
    ],
)
def test_fault_is_found(tmp_path, change, fault):
    (found,) = audit.faults(make_wheel(tmp_path, **change))
    assert found.startswith(fault)


def test_targets_have_names_of_compiler_and_platform():
    assert X86_64.triple == "x86_64-linux-gnu.2.28"
    assert AARCH64.platform == "manylinux_2_28_aarch64"
    assert AARCH64.suffix("3.13") == ".cpython-313-aarch64-linux-gnu.so"
    assert (MUSL.triple, MUSL.platform) == ("x86_64-linux-musl", "musllinux_1_2_x86_64")
