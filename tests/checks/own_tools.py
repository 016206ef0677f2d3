"""Check that each long tool states why no library replaces the tool.

Usage: python tests/checks/own_tools.py [ROOT]

A tool is `dev`, or a file of Python, C or shell under tests/ that is not a test. A tool of more
than 150 lines needs one sentence of the form "No library ...: reason." The header of a C file may
hold the sentence.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

MOST = 150  # lines of a tool without a reason
REASON = re.compile(r"\bNo library [^.:]+:[^.]{10,}\.")
TESTS = re.compile(r"tests/abi/|(?:.*/)?(?:test_[^/]*|conftest\.py)$")
C_TESTS = re.compile(r"^TEST(?:_EACH)?\(", re.MULTILINE)


def violations(root: Path) -> list[str]:
    """Return a sentence for each long tool without a reason."""
    git = ["git", "-C", str(root), "ls-files", "dev", "tests/*.py", "tests/*.c", "tests/*.sh"]
    found = []
    for name in subprocess.run(git, capture_output=True, text=True, check=True).stdout.split():
        text = (root / name).read_text(encoding="utf-8")
        header = (root / name).with_suffix(".h")
        lines = text.count("\n")
        if lines <= MOST or TESTS.match(name) or C_TESTS.search(text):
            continue
        if not REASON.search(text + (header.read_text() if header.exists() else "")):
            found.append(f"{name}: {lines} lines need a sentence 'No library ...: reason.'")
    return found


def main() -> int:
    found = violations(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print(*found, f"own tools: {len(found)} violations", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
