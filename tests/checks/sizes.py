"""Check that no public header, source file or folder of the project is too large.

Usage: python tests/checks/sizes.py [ROOT]

Source files are the C, C++, Python, JavaScript and CSS files under api, bindings and runtime. A
module is one file, or several files of one folder whose names differ only in the suffix, such as
x.c and x.h. The check reads all files that git does not ignore.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

HEADER_LINES = 220
SOURCE_LINES = 400
FOLDER_MODULES = 15

PUBLIC = re.compile(r"(api|bindings)/include/.*\.(h|hpp)")
SOURCE = re.compile(r"(api|bindings|runtime)/.*\.(c|h|cpp|hpp|py|js|css)")
VENDORED = {"api/include/memrt/dlpack/dlpack.h"}

# Files and folders above the limits. An entry within the limits is a violation.
LONG_FILES: set[str] = set()
LARGE_FOLDERS = {
    "docs/benchmarks",
    "docs/decisions",
}


def project_files(root: Path) -> list[str]:
    """Return the paths of all files that git does not ignore, relative to the root."""
    command = ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted(name for name in output.split("\0") if name and (root / name).is_file())


def most_lines(path: str) -> int | None:
    """Return the maximum number of lines of a file, or None for a file without a limit."""
    if path in VENDORED:
        return None
    if PUBLIC.fullmatch(path):
        return HEADER_LINES
    return SOURCE_LINES if SOURCE.fullmatch(path) else None


def long_files(root: Path, paths: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each file above its limit, and a sentence about the file."""
    for path in paths:
        limit = most_lines(path)
        if limit is None:
            continue
        lines = len((root / path).read_text(encoding="utf-8").splitlines())
        if lines > limit:
            yield path, f"{path}: at most {limit} lines, got {lines}: split the file"


def large_folders(paths: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each folder with too many modules, and a sentence about the folder."""
    modules = defaultdict(set)
    for path in map(PurePosixPath, paths):
        modules[str(path.parent)].add(path.name.split(".")[0] or path.name)
    for folder, names in sorted(modules.items()):
        if len(names) > FOLDER_MODULES:
            limit = f"at most {FOLDER_MODULES} modules, got {len(names)}"
            yield folder, f"{folder}: {limit}: make folders by concept"


def judge(found: dict[str, str], known: set[str]) -> list[str]:
    """Return the sentences about unknown files or folders, and about known ones that fit now."""
    stale = sorted(known - found.keys())
    return [text for path, text in found.items() if path not in known] + [
        f"{path}: keeps the limit now: remove the exception in tests/checks/sizes.py"
        for path in stale
    ]


def violations(
    root: Path, long: set[str] = LONG_FILES, large: set[str] = LARGE_FOLDERS
) -> list[str]:
    """Return a sentence for each violation, with the given exceptions."""
    paths = project_files(root)
    return [
        *judge(dict(long_files(root, paths)), long),
        *judge(dict(large_folders(paths)), large),
    ]


def main(argv: list[str]) -> int:
    root = Path(argv[1] if len(argv) > 1 else ".")
    count = len(project_files(root))
    if count == 0:
        print(f"no file under {root.resolve()}: give the repository's root", file=sys.stderr)
        return 2
    found = violations(root)
    print("\n".join([*found, f"sizes: {count} files, {len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
