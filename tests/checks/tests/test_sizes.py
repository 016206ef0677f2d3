"""Test the check of sizes on the project, and with seeded violations."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import sizes

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def seed(tmp_path):
    """Return a function that writes a file into a repository and returns the violations.

    No file or folder is an exception.
    """
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def write(name: str, lines: int = 1) -> list[str]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n" * lines)
        return sizes.violations(tmp_path, set(), set())

    return write


def test_project_keeps_the_limits():
    assert sizes.violations(ROOT) == []


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("api/include/memrt/x.h", 220),
        ("api/include/memrt/dlpack/x.h", 220),
        ("bindings/include/memrt/x.h", 220),
        ("bindings/src/x.h", 400),
        ("runtime/base/x.c", 400),
        ("api/x.py", 400),
        ("bindings/memrt/x.py", 400),
        ("bindings/memrt/_profile/x.js", 400),
        ("bindings/memrt/_profile/x.css", 400),
        ("runtime/observe/gdb/x.py", 400),
    ],
)
def test_file_above_its_limit_is_found(seed, name, limit):
    assert seed(name, limit) == []
    assert seed(name, limit + 1) == [
        f"{name}: at most {limit} lines, got {limit + 1}: split the file"
    ]


@pytest.mark.parametrize(
    "name", ["api/include/memrt/dlpack/dlpack.h", "tests/c/x.c", "tests/python/x.py"]
)
def test_file_without_a_limit_passes(seed, name):
    assert seed(name, 1000) == []


def test_folder_with_too_many_modules_is_found(seed):
    for number in range(15):
        assert seed(f"runtime/x{number}.c") == []
        assert seed(f"runtime/x{number}.h") == []
    assert seed("runtime/y.c") == ["runtime: at most 15 modules, got 16: make folders by concept"]


def test_exception_above_its_limit_passes(seed, tmp_path):
    assert len(seed("runtime/x.c", 401)) == 1
    assert sizes.violations(tmp_path, {"runtime/x.c"}, set()) == []


def test_exception_within_its_limit_is_found(seed, tmp_path):
    seed("runtime/x.c", 400)
    found = sizes.violations(tmp_path, {"runtime/x.c"}, {"runtime"})
    assert [text.split(":")[0] for text in found] == ["runtime/x.c", "runtime"]
