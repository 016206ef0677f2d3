"""The architecture page names every source file, and no file that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("api", "runtime", "tests/conformance", "bindings/src", "bindings/include")
NAME = re.compile(r"`(?:[\w/]+/)?(\w+\.[ch])`")


def named() -> set[str]:
    """C files that the page names, without their folders."""
    return set(NAME.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")))


def sources() -> list[Path]:
    """C files that there are."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.[ch]")]
    assert files, f"no source file under {ROOT}"
    return files


def test_every_source_file_is_named_itself_or_by_the_source_of_its_header():
    names = named()
    missing = [
        str(path.relative_to(ROOT))
        for path in sources()
        if path.name not in names and not (path.suffix == ".h" and f"{path.stem}.c" in names)
    ]
    assert missing == []


def test_every_file_that_is_named_is_there():
    assert sorted(named() - {path.name for path in sources()}) == []
