"""Check that the core has at least two assertions per 100 lines of code.

Usage: python tests/checks/assertions.py [ROOT]

The core is `runtime/` and `api/` without the public headers. A line of code is a line that is
neither blank nor only a comment. An assertion is a use of MEMRT__ASSERT, MEMRT__ASSERT_HELD or
MEMRT__HOLDS, the conditions of memrt__<structure>_is_valid(). Static assertions do not count.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LEAST = 2.0  # assertions per 100 lines of code
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
DEFINITION = re.compile(r"^[ \t]*#[ \t]*define (?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
ASSERTION = re.compile(r"\bMEMRT__(?:ASSERT|ASSERT_HELD|HOLDS)\(")


@dataclass(frozen=True)
class Count:
    """Lines of code and assertions of some files."""

    lines: int = 0
    assertions: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.lines + other.lines, self.assertions + other.assertions)

    @property
    def density(self) -> float:
        return 100 * self.assertions / self.lines if self.lines else 0.0


def without_comments(text: str) -> str:
    """Replace comments by their line ends, and strings by empty strings."""
    return TOKEN.sub(
        lambda found: '""' if found[0][0] == '"' else "\n" * found[0].count("\n"), text
    )


def count_text(text: str) -> Count:
    code = without_comments(text)
    lines = sum(1 for line in code.splitlines() if line.strip())
    return Count(lines, len(ASSERTION.findall(DEFINITION.sub("", code))))


def core_files(root: Path) -> Iterator[Path]:
    for top in ("runtime", "api"):
        for path in sorted((root / top).rglob("*.[ch]")):
            if "include" not in path.relative_to(root).parts:
                yield path


def count_folders(root: Path) -> dict[str, Count]:
    """Return the counts of each folder of the core."""
    counts: dict[str, Count] = {}
    for path in core_files(root):
        folder = path.parent.relative_to(root).as_posix()
        counts[folder] = counts.get(folder, Count()) + count_text(path.read_text(encoding="utf-8"))
    return counts


def violations(root: Path) -> list[str]:
    """Return a sentence if the core has too few assertions."""
    total = sum(count_folders(root).values(), Count())
    if total.density >= LEAST:
        return []
    return [
        f"the core must have {LEAST} assertions per 100 lines of code, got {total.density:.2f}: "
        f"{total.assertions} in {total.lines} lines"
    ]


def main(argv: list[str]) -> int:
    root = Path(argv[1]) if len(argv) > 1 else Path(__file__).resolve().parents[2]
    counts = count_folders(root)
    for folder, count in [*sorted(counts.items()), ("core", sum(counts.values(), Count()))]:
        print(f"{folder}: {count.assertions} in {count.lines} lines, {count.density:.2f} per 100")
    found = violations(root)
    for sentence in found:
        print(sentence, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
