"""Every example of the README and of docs/ works as it is written.

A fenced block says by its language what happens to it. All blocks of a page are taken in order, in
one folder:

python  runs by itself; under the name that its first line may give it, for a sh block
c       is a file, named by its first line, that compiles without a warning; a sh block builds it
sh      runs by itself; lines that call ./dev must name a chore that exists and do not run
output  is what the block before it wrote to standard output; without one it wrote nothing
text    is a picture for people

Pages that a script writes from the sources have no examples. A python block that imports Numba, JAX
or pyarrow runs where that is installed (./dev numba and ./dev clients take these tests along);
elsewhere it must compile.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import memrt
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE_NAME = re.compile(r"/\* (\w+\.c) \*/\n")
PYTHON_NAME = re.compile(r"# (\w+\.py)\n")
CHORE = re.compile(r"^\./dev *([\w-]*)", re.MULTILINE)
GENERATED = re.compile(r"\A# .*\n\n.*\b[Ww]ritten (from|by)\b.*\bdo not edit\b")
IMPORTS = re.compile(r"^import (numba|jax|pyarrow)$", re.MULTILINE)
TIMEOUT = 60


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    output: str


def fences(text: str) -> list[tuple[re.Match[str], int]]:
    """All fenced blocks with the number of the line they start on."""
    return [(match, text.count("\n", 0, match.start()) + 1) for match in FENCE.finditer(text)]


def blocks(text: str) -> list[Block]:
    """The blocks that something happens to, each with the output that is stated for it."""
    found: list[Block] = []
    for match, line in fences(text):
        if match[1] == "output":
            assert found, f"line {line}: output of nothing"
            assert found[-1].output == "", f"line {line}: a second output of one block"
            found[-1] = Block(found[-1].language, found[-1].text, found[-1].line, match[2])
        elif match[1] != "text":
            found.append(Block(match[1], match[2], line, ""))
    return found


def pages() -> list[Path]:
    """Every page that people wrote."""
    every = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return [page for page in every if not GENERATED.match(page.read_text(encoding="utf-8"))]


def environment() -> dict[str, str]:
    """The examples find this Python as python, and no options of whoever runs the tests."""
    ours = ("MEMRT_", "CI")  # where CI is set, pytest cuts no line of its summary
    names = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**names, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def run(folder: Path, *command: object) -> str:
    """Standard output of a command that must succeed."""
    result = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert result.returncode == 0, f"{result.stdout}{result.stderr}"
    return result.stdout


def run_python(block: Block, folder: Path) -> str:
    name = PYTHON_NAME.match(block.text)
    script = folder / (name[1] if name else f"line_{block.line}.py")
    script.write_text(block.text, encoding="utf-8")
    if any(importlib.util.find_spec(name) is None for name in IMPORTS.findall(block.text)):
        compile(block.text, script, "exec")
        return block.output
    return run(folder, sys.executable, script)


def compile_c(block: Block, folder: Path) -> str:
    name = FILE_NAME.match(block.text)
    assert name, "a C example begins with a comment that names its file"
    (folder / name[1]).write_text(block.text, encoding="utf-8")
    folders = [memrt.get_include(), sysconfig.get_path("include"), np.get_include()]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    includes = [f"-I{folders[0]}", *(f"-isystem{folder}" for folder in folders[1:])]
    return run(folder, "cc", *flags, *includes, name[1])


def run_shell(block: Block, folder: Path) -> str:
    if CHORE.match(block.text):
        return check_chores(block.text)
    return run(folder, "bash", "-euo", "pipefail", "-c", block.text)


def check_chores(text: str) -> str:
    assert all(line.startswith("./dev") for line in text.splitlines()), "not only calls of ./dev"
    script = (ROOT / "dev").read_text(encoding="utf-8")
    for chore in CHORE.findall(text):
        assert chore == "" or f"chore_{chore}()" in script, f"./dev has no chore '{chore}'"
    return ""


RUNNERS: dict[str, Callable[[Block, Path], str]] = {
    "python": run_python,
    "c": compile_c,
    "sh": run_shell,
}


def run_block(block: Block, folder: Path) -> None:
    assert block.language in RUNNERS, f"a block of language '{block.language}' is not known here"
    assert RUNNERS[block.language](block, folder) == block.output


def run_page(text: str, folder: Path) -> None:
    for block in blocks(text):
        try:
            run_block(block, folder)
        except AssertionError as error:
            raise AssertionError(f"the example in line {block.line}: {error}") from None


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_work_as_written(page, tmp_path):
    run_page(page.read_text(encoding="utf-8"), tmp_path)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_c_example_is_built_by_commands_of_its_page(page):
    found = blocks(page.read_text(encoding="utf-8"))
    commands = "".join(block.text for block in found if block.language == "sh")
    names = [FILE_NAME.match(block.text)[1] for block in found if block.language == "c"]
    assert [name for name in names if name not in commands] == []


def test_examples_in_every_language_are_there():
    languages = {
        block.language for page in pages() for block in blocks(page.read_text(encoding="utf-8"))
    }
    assert languages == set(RUNNERS)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "print(1)\n"),
        ("python", "raise SystemExit(1)\n"),
        ("c", "int unnamed;\n"),
        ("c", "/* bad.c */\nint main(void) { return nothing; }\n"),
        ("sh", "echo unexpected\n"),
        ("sh", "false\n"),
        ("sh", "./dev unheard-of\n"),
        ("fortran", "end\n"),
    ],
)
def test_an_example_that_does_not_hold_is_found(tmp_path, language, text):
    with pytest.raises(AssertionError, match="the example in line 3"):
        run_page(f"# Page\n\n```{language}\n{text}```\n", tmp_path)
