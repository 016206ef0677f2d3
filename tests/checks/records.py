"""Check that the recorded results in docs/reliability fit the current project.

Usage: python tests/checks/records.py [ROOT]

Each record names a date and a commit in the history of HEAD, never a tree with uncommitted changes.
The coverage records have a row for each source file with branches, of the core and of the bindings.
The record of failure points has a row for each public name of the Python package.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

BRANCH = re.compile(r"\b(if|for|while|switch)\b|\?|&&|\|\|")
CODE = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.DOTALL | re.MULTILINE,
)

# Source files of each record of coverage.
SOURCES = {
    "coverage": ("runtime/**/*.c", "api/**/*.c"),
    "coverage-bindings": ("bindings/src/**/*.c", "bindings/memrt/**/*.py"),
}
ELSEWHERE = re.compile(  # coverage.py sees neither code that Numba compiles, nor these processes
    r"bindings/memrt/(numba/|.*/_site/|commands/workers/replay_worker\.py)"
)

# The coverage is of a build without checks of invariants.
DEBUG = re.compile(r"^#if MEMRT_DEBUG\n.*?^#endif", re.DOTALL | re.MULTILINE)


def is_ancestor(root: Path, commit: str) -> bool:
    """Return True if the history of HEAD contains the commit, or if the clone is shallow."""
    git = ["git", "-C", str(root)]
    shallow = subprocess.run(
        [*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True
    )
    if shallow.stdout.strip() == "true":
        return True
    return (
        subprocess.run(
            [*git, "merge-base", "--is-ancestor", commit, "HEAD"], capture_output=True
        ).returncode
        == 0
    )


def judge_origin(root: Path, name: str, figures: dict) -> Iterator[str]:
    """Yield the faults in date and commit of one record."""
    facts = figures["facts"]
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", str(facts.get("date"))):
        yield f"{name}: date must be YYYY-MM-DD, got {facts.get('date')}"
    commit = str(facts.get("commit"))
    cells = [str(cell) for row in figures["rows"] for cell in row]
    dirty = [each for each in [commit, *cells] if re.fullmatch(r"[0-9a-f]{7,}-dirty", each)]
    for each in dirty:
        yield f"{name}: commit must be of a clean tree, got {each}"
    if not dirty and not is_ancestor(root, commit):
        yield f"{name}: commit must be in the history of HEAD, got {commit}"


def has_branches(path: Path) -> bool:
    text = DEBUG.sub("", path.read_text(encoding="utf-8"))
    return BRANCH.search(CODE.sub(" ", text)) is not None


def judge_coverage(root: Path, name: str, figures: dict) -> Iterator[str]:
    """Yield the source files with branches that a record of coverage lacks."""
    measured = {str(row[0]) for row in figures["rows"]}
    for pattern in SOURCES[name]:
        for path in sorted(root.glob(pattern)):
            file = str(path.relative_to(root))
            if file not in measured and not ELSEWHERE.match(file) and has_branches(path):
                yield f"{name}: {file} has branches and no row"


def judge_failure_points(figures: dict, public: list[str]) -> Iterator[str]:
    met = {str(row[0]).strip("`") for row in figures["rows"]}
    for full in public:
        if not any(each == full or each.startswith((f"{full}.", f"{full} ")) for each in met):
            yield f"failure-points: {full} is public and has no row"


def violations(root: Path, public: list[str]) -> list[str]:
    """Return a sentence for each fault of a record."""
    found = []
    folder = root / "docs" / "reliability"
    for path in sorted(folder.rglob("*.json")):
        figures = json.loads(path.read_text(encoding="utf-8"))
        name = path.relative_to(folder).with_suffix("").as_posix()
        found.extend(judge_origin(root, name, figures))
        if name in SOURCES:
            found.extend(judge_coverage(root, name, figures))
        if name == "failure-points":
            found.extend(judge_failure_points(figures, public))
    return found


def public_names() -> list[str]:
    """Return the names of public functions and types, as data and submodules never fail."""
    import memrt
    import memrt.adaptors

    modules = (memrt, memrt.types, memrt.debug, memrt.telemetry, memrt.testing, memrt.adaptors)
    return [
        f"{module.__name__}.{name}"
        for module in modules
        for name in module.__all__
        if callable(getattr(module, name))
    ]


def main(argv: list[str]) -> int:
    root = Path(argv[1] if len(argv) > 1 else ".").resolve()
    if not any((root / "docs" / "reliability").glob("*.json")):
        print(
            f"no record under {root}/docs/reliability: give the repository's root", file=sys.stderr
        )
        return 2
    found = violations(root, public_names())
    print(*found, sep="\n", end="\n" * bool(found))
    if found:
        print("run ./dev full CHORE at a clean commit to record a result again", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
