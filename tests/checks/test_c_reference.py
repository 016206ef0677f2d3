"""Test that the C reference matches the headers and has every slot of the table."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "c-reference.md"
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
MEMBER = re.compile(r"^    (?! *return)[\w ]+?\*?(\w+)(?:\[\w+\])?;", re.MULTILINE)
SLOT = re.compile(r"^    memrt_(\w+)_fn \w+(?: MEMRT_MUST_CHECK)?;", re.MULTILINE)
SLOTS = SLOT.findall((ROOT / "api/include/memrt/api.h").read_text(encoding="utf-8"))
# Headers of other projects, and headers without a contract.
LEFT_OUT = {
    "memrt/arrow/abi.h",
    "memrt/dlpack/dlpack.h",
    "memrt/numpy/array_meminfo.h",
    "memrt/numpy/meminfo_as_array.h",
}


@pytest.fixture(scope="module")
def written():
    """Return the reference as the script generates it from the current headers."""
    spec = importlib.util.spec_from_file_location("c_reference", ROOT / "docs" / "c_reference.py")
    module = sys.modules["c_reference"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.page()


def test_c_reference_matches_the_headers():
    command = [sys.executable, ROOT / "docs" / "c_reference.py", "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("slot", SLOTS)
def test_c_reference_has_every_function_of_the_table(slot):
    page = PAGE.read_text(encoding="utf-8")
    row = rf"^\| `memrt_{slot}_fn {slot}\b.*\(#memrt_{slot}_fn\) \|$"
    assert re.search(row, page, re.MULTILINE)
    assert f"### memrt_{slot}_fn\n" in page


def test_c_reference_has_every_public_header(written):
    folders = [ROOT / folder / "include" for folder in ("api", "bindings")]
    names = {str(path.relative_to(each)) for each in folders for path in each.rglob("*.h")}
    assert set(re.findall(r"^## (memrt/.*\.h)$", written, re.MULTILINE)) == names - LEFT_OUT


@pytest.mark.parametrize("header", ["api.h", "policy.h", "observe/stats.h", "observe/tracking.h"])
def test_c_reference_has_every_member_of_the_structs(written, header):
    text = (ROOT / "api/include/memrt" / header).read_text(encoding="utf-8")
    section = re.search(rf"^## memrt/{header}\n(.*?)^## memrt/", written, re.MULTILINE | re.DOTALL)
    names = MEMBER.findall(COMMENT.sub("", text))
    assert len(names) > 3
    for name in names:
        row = rf"^(\| `[^`]*\b{name}(\[\w+\])?` \||#### {name}$)"
        assert re.search(row, section[1], re.MULTILINE), name
