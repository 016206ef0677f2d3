"""The architecture page names every source folder, and only existing folders and files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")
TOPS = ("api", "runtime", "bindings", "tests")


def source_folders() -> set[str]:
    """Return the folders with C files."""
    files = [path for top in TOPS for path in (ROOT / top).rglob("*.[ch]")]
    folders = {path.parent.relative_to(ROOT).as_posix() for path in files}
    assert len(folders) > 20, f"few source folders under {ROOT}"
    return folders


@pytest.mark.parametrize("folder", sorted(f for f in source_folders() if f.startswith("runtime/")))
def test_architecture_page_names_each_folder_of_the_runtime(folder):
    assert f"`{folder}`" in PAGE
    top = "/".join(folder.split("/")[:2])
    assert f"│ {top}/" in PAGE, "the picture of the layers lacks the folder"


@pytest.mark.parametrize("folder", sorted(f for f in source_folders() if "bindings/src/" in f))
def test_architecture_page_names_each_folder_of_the_extension(folder):
    assert f"`{folder}`" in PAGE


def test_architecture_page_names_only_existing_folders_and_files():
    folders = re.findall(r"`((?:api|runtime|bindings|tests)(?:/\w+)*)`", PAGE)
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []
    sources = {path.name for top in TOPS for path in (ROOT / top).rglob("*.[ch]")}
    assert sorted(set(re.findall(r"`(?:[\w/]+/)?(\w+\.[ch])`", PAGE)) - sources) == []
