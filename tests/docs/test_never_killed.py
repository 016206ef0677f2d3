"""The page about killed programs is true in a control group with 256 MiB."""

from __future__ import annotations

import doctest
import os
import re
import signal
import sys
from pathlib import Path

import limited_group
import pytest

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "limits" / "never-killed.md"
TEXT = PAGE.read_text(encoding="utf-8")
SCRIPT = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SESSION = re.compile(r"^```text\n\$ (.*?)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARKERS = re.compile(r"^ *[~^]+ *\n", re.MULTILINE)  # below the lines of a traceback


def run(command: str, group: Path) -> str:
    """Return the output and errors of a command in a control group, as a terminal shows both."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = limited_group.run_inside(group, "env", f"PATH={path}", *command.split())
    if result.returncode == -signal.SIGKILL:
        return "Killed\n"
    shown = MARKERS.sub("", result.stdout + result.stderr)
    return shown.replace(f"{Path.cwd()}/", "")


@pytest.mark.skipif(not limited_group.can_limit(), reason="only root can limit a control group")
@pytest.mark.parametrize(("command", "output"), SESSION.findall(TEXT))
def test_command_of_page_has_its_output(command, output, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, code in SCRIPT.findall(TEXT):
        (tmp_path / name).write_text(f"# {name}\n{code}", encoding="utf-8")
    with limited_group.limited_group() as group:
        shown = run(command, group)
    checker = doctest.OutputChecker()
    assert checker.check_output(output, shown, doctest.ELLIPSIS), shown


def test_page_has_a_kill_a_traceback_and_two_rescues():
    assert [output.split()[0] for _, output in SESSION.findall(TEXT)] == [
        *("Killed", "Traceback", "4950.0", "4950.0")
    ]
