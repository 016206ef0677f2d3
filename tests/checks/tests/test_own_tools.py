"""Test the check for reasons of long tools. The project itself passes the check."""

import subprocess
from pathlib import Path

import own_tools
import pytest

ROOT = Path(__file__).resolve().parents[3]
LONG = "pass\n" * own_tools.MOST


def test_each_long_tool_of_the_project_has_a_reason():
    assert own_tools.violations(ROOT) == []


@pytest.fixture
def project(tmp_path):
    """Return a function that makes a repository with one file."""

    def make(name: str, text: str) -> Path:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        for command in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
        return tmp_path

    return make


@pytest.mark.parametrize("name", ["dev", "tests/a.py", "tests/deep/er/a.c", "tests/a.sh"])
@pytest.mark.parametrize("head", ["# A tool.", "# No library replaces the tool."])
def test_long_tool_without_a_reason_is_found(name, head, project):
    [fault] = own_tools.violations(project(name, f"{head}\n{LONG}"))
    assert fault.startswith(f"{name}: 151 lines")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tests/a.py", LONG),
        ("tests/a.py", f"# No library replaces\n# the tool: a good reason.\n{LONG}"),
        ("tests/test_a.py", f"#\n{LONG}"),
        ("tests/deep/conftest.py", f"#\n{LONG}"),
        ("tests/abi/a.c", f"#\n{LONG}"),
        ("tests/stress/a.c", f"TEST(name)\n{LONG}"),
        ("runtime/a.c", f"#\n{LONG}"),
    ],
)
def test_short_explained_or_other_file_passes(name, text, project):
    assert own_tools.violations(project(name, text)) == []


def test_header_may_hold_the_reason(project):
    project("tests/a.h", "/// No library replaces the tool: a good reason.\n")
    assert own_tools.violations(project("tests/a.c", f"#\n{LONG}")) == []
