"""Every example of the README and of docs/ works as written.

The language of a fenced block selects the check. All blocks of a page run in order, in the same
folder. If the page continues another page, the blocks of the other page run before:

python  runs by itself; the first line may name the script, so that a sh block can run the script
c       is a file, named by the first line, that a sh block builds; it compiles without a warning
sh      runs by itself; lines that call ./dev must name an existing chore, and do not run
output  is the standard output of the block before; a block without output must print nothing
text    is a picture for people
{...}   is a directive of the site

Generated pages have no examples. A python block that imports Numba, JAX, Dask or pyarrow runs
where the library is installed, as in ./dev suites numba and ./dev suites clients; elsewhere it must
compile. If the block is a named script, the c and sh blocks after it also run only there.
"""

from __future__ import annotations

import contextlib
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
from waiting import only_user_of_dead_pages

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```([\w{}-]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE_NAME = re.compile(r"/\* (\w+\.c) \*/\n")
PYTHON_NAME = re.compile(r"# (\w+\.py)\n")
CHORE = re.compile(r"^\./dev *([\w-]*)", re.MULTILINE)
GENERATED = re.compile(r"\A# .*\n\n.*\b[Ww]ritten (from|by)\b.*\bdo not edit\b")
IMPORTS = re.compile(r"^import (dask|jax|numba|pyarrow)$", re.MULTILINE)
CONTINUES = re.compile(r"^<!-- continues: ([\w-]+\.md) -->$", re.MULTILINE)
TIMEOUT = 60


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    output: str


def fences(text: str) -> list[tuple[re.Match[str], int]]:
    """Return all fenced blocks with the number of their first line."""
    return [(match, text.count("\n", 0, match.start()) + 1) for match in FENCE.finditer(text)]


def blocks(text: str) -> list[Block]:
    """Return the blocks to check, each with its stated output."""
    found: list[Block] = []
    for match, line in fences(text):
        if match[1] == "output":
            assert found, f"line {line}: output without a block before"
            assert found[-1].output == "", f"line {line}: second output of a block"
            found[-1] = Block(found[-1].language, found[-1].text, found[-1].line, match[2])
        elif match[1] != "text" and match[1][0] != "{":
            found.append(Block(match[1], match[2], line, ""))
    return found


def pages() -> list[Path]:
    """Return all pages that people wrote."""
    every = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return [page for page in every if not GENERATED.match(page.read_text(encoding="utf-8"))]


def environment() -> dict[str, str]:
    """Return an environment for examples: `python` is this Python, memrt's options are unset."""
    ours = ("MEMRT_", "CI")  # with CI set, pytest does not cut summary lines
    names = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**names, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def run(folder: Path, *command: object) -> str:
    """Return the standard output of a command that must succeed."""
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


def lacks_library(block: Block) -> bool:
    """Return whether a Python block imports a library that is not installed."""
    return any(importlib.util.find_spec(name) is None for name in IMPORTS.findall(block.text))


def run_python(block: Block, folder: Path) -> str:
    name = PYTHON_NAME.match(block.text)
    script = folder / (name[1] if name else f"line_{block.line}.py")
    script.write_text(block.text, encoding="utf-8")
    if lacks_library(block):
        compile(block.text, script, "exec")
        return block.output
    return run(folder, sys.executable, script)


def compile_c(block: Block, folder: Path) -> str:
    name = FILE_NAME.match(block.text)
    assert name, "a C example must begin with a comment with the file name"
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
    assert all(line.startswith("./dev") for line in text.splitlines()), (
        "all lines must be calls of ./dev"
    )
    script = (ROOT / "dev").read_text(encoding="utf-8")
    for chore in CHORE.findall(text):
        assert chore == "" or f"chore_{chore}()" in script, f"./dev has no chore {chore!r}"
    return ""


RUNNERS: dict[str, Callable[[Block, Path], str]] = {
    "python": run_python,
    "c": compile_c,
    "sh": run_shell,
}


def run_block(block: Block, folder: Path) -> None:
    assert block.language in RUNNERS, f"unknown language {block.language!r}"
    alone = only_user_of_dead_pages() if "--clean" in block.text else contextlib.nullcontext()
    with alone:
        assert RUNNERS[block.language](block, folder) == block.output


def run_pages(page: Path, folder: Path) -> None:
    """Run the blocks of a page, after the blocks of the page that the page continues."""
    text = page.read_text(encoding="utf-8")
    if found := CONTINUES.search(text):
        run_pages(page.parent / found[1], folder)
    run_page(text, folder)


def run_page(text: str, folder: Path) -> None:
    needs_script = False
    for block in blocks(text):
        if block.language == "python":
            needs_script = PYTHON_NAME.match(block.text) is not None and lacks_library(block)
        elif needs_script:
            continue
        try:
            run_block(block, folder)
        except AssertionError as error:
            raise AssertionError(f"the example in line {block.line}: {error}") from None


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_work_as_written(page, tmp_path):
    run_pages(page, tmp_path)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_c_example_is_built_by_commands_of_its_page(page):
    found = blocks(page.read_text(encoding="utf-8"))
    commands = "".join(block.text for block in found if block.language == "sh")
    names = [FILE_NAME.match(block.text)[1] for block in found if block.language == "c"]
    assert [name for name in names if name not in commands] == []


def test_examples_exist_in_every_language():
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
def test_wrong_example_is_found_with_its_line(tmp_path, language, text):
    with pytest.raises(AssertionError, match="the example in line 3"):
        run_page(f"# Page\n\n```{language}\n{text}```\n", tmp_path)
