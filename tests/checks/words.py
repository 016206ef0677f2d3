"""Check that the project's prose is plain: few riddle words and pronouns, and short test names.

Usage: python tests/checks/words.py [--all] [--folders] [ROOT]

The check reads comments, docstrings, messages, `--help` texts, Markdown pages and test names of all
tracked files, and counts vague words (RIDDLES) and pronouns per 1,000 words of prose. A string
literal counts as prose if it has four words. Lists of exceptions, such as
tests/coverage/uncovered.txt, count with their reasons. docs/internals/development.md states the
rules. Generated pages are left out; their sources are checked. Files of less than 60 words count
together, by folder. No library counts words per 1,000 over C comments and test names: Vale and
proselint judge single phrases.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RIDDLES = re.compile(
    r"\b(what|who|whoever|whom|nobody|somebody|anybody|tells?|told|(?:un)?born|births?|deaths?"
    r"|others|likewise|believe[sd]?|awake|heeds?|perhaps|by which|of which|that of|those of"
    r"|those that|those who|the ones?(?= (?:that|who|of|which|or|for|with|in)\b)|(?:is|are) to be"
    r"|(?:is|are) no(?! longer| more| way| room)|says|said|nothing but|none of|such a|looked at"
    r"|looks at)\b",
    re.IGNORECASE,
)
PRONOUNS = re.compile(r"\b(it|its|they|them|this|these|that|those|one|ones|which)\b", re.IGNORECASE)
WORDS = re.compile(r"[A-Za-z']+")
CODE = re.compile(r"``[^`]*``|`[^`]*`")
C_TOKENS = re.compile(
    r'"((?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\\n])+\'|//[/!<]*([^\n]*)|/\*(.*?)\*/', re.DOTALL
)
PROSE = re.compile(r"(?:\b[a-z]{2,}\b.*?){4}", re.DOTALL)  # four words in lower case
PROGRAM = re.compile(r"\n.*\n", re.DOTALL)  # literals of several lines are programs
C_TESTS = re.compile(r"^TEST(?:_[A-Z]+)?\((\w+)", re.MULTILINE)
PYTHON_TESTS = re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE)
GENERATED = re.compile(r"docs/(benchmarks|reliability)\.md")
LEFT_OUT = re.compile(  # vendored files, and the words of this check with their samples
    r"api/include/memrt/dlpack/dlpack\.h|bindings/memrt/_profile/vendor/"
    r"|tests/fuzz/corpus/|tests/checks/(?:tests/test_)?words\.py"
)

FILE_LIMITS = (8, 55)  # riddle words and pronouns per 1,000 words of one file
PROJECT_LIMITS = (3, 40)
SMALL = 60  # words
NAME_MOST = 60  # characters of a test's name


def markdown_lines(text: str) -> Iterator[str]:
    """Yield the lines of a page outside code blocks, without link targets."""
    fence = None
    for line in text.splitlines():
        mark = re.match(r"\s*(```|~~~)", line)
        if mark:
            fence = None if fence == mark[1] else fence or mark[1]
        elif fence is None and not line.startswith("    "):
            yield re.sub(r"\]\([^)]*\)", "]", line)


def python_lines(text: str) -> Iterator[str]:
    """Yield comments, docstrings without doctest input, and other strings that are prose."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("#! ")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    seen = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node):
            seen.add(node.body[0].value)
            for line in ast.get_docstring(node).splitlines():
                if not line.lstrip().startswith((">>>", "...")):
                    yield line
        elif isinstance(node, ast.Constant) and node not in seen:
            value = str(node.value)
            if PROSE.search(value) and not PROGRAM.search(value):
                yield value


def c_lines(text: str) -> Iterator[str]:
    """Yield comments and prose strings of C and of languages with the same comments."""
    for match in C_TOKENS.finditer(text):
        for line in (match[2] or match[3] or "").splitlines():
            yield line.strip(" *!<")
        if match[1] and PROSE.search(match[1]):
            yield match[1]


def hash_lines(text: str) -> Iterator[str]:
    """Yield the comments of shell and CMake files."""
    for line in text.splitlines():
        match = re.search(r"(?:^|\s)#(?!!)\s?(.*)$", line)
        if match:
            yield match[1]


def entry_lines(text: str, head: int) -> Iterator[str]:
    """Yield the comments of a list, and the reason of each entry after `head` lines of code."""
    for paragraph in text.strip().split("\n\n"):
        comment = paragraph.startswith("#")
        yield from hash_lines(paragraph) if comment else paragraph.splitlines()[head:]


# Lists of entries with reasons, and the number of lines before each reason.
ENTRY_LISTS = {
    "tests/coverage/uncovered.txt": 2,
    "tests/models/orders.txt": 2,
    "tests/mutation/bindings_survivors.txt": 1,
    "tests/mutation/survivors.txt": 1,
}
READERS = {
    **dict.fromkeys((".c", ".h", ".cpp", ".hpp", ".js", ".css"), c_lines),
    **dict.fromkeys((".py", ".pyi"), python_lines),
    **dict.fromkeys((".txt", ".cmake", ".sh", ""), hash_lines),
    ".md": markdown_lines,
}


def prose_of(name: str, text: str) -> list[str]:
    """Return the lines of prose of a file, or an empty list for an unknown kind of file."""
    if name in ENTRY_LISTS:
        return list(entry_lines(text, ENTRY_LISTS[name]))
    reader = READERS.get(Path(name).suffix)
    return [] if reader is None else list(reader(text))


@dataclass
class Count:
    """The words of prose of one file or folder."""

    words: int = 0
    riddles: int = 0
    pronouns: int = 0

    def add(self, lines: list[str]) -> None:
        for line in lines:
            plain = CODE.sub("", line)
            self.words += len(WORDS.findall(plain))
            self.riddles += len(RIDDLES.findall(plain))
            self.pronouns += len(PRONOUNS.findall(plain))

    def exceeds(self, limits: tuple[int, int]) -> bool:
        return any(
            1000 * found > limit * self.words
            for found, limit in zip((self.riddles, self.pronouns), limits, strict=True)
        )

    def __str__(self) -> str:
        words = max(self.words, 1)
        riddles, pronouns = 1000 * self.riddles / words, 1000 * self.pronouns / words
        return f"{self.words:7,} words, {riddles:5.1f} riddle words and {pronouns:5.1f} pronouns"


def tracked(root: Path) -> list[str]:
    command = ["git", "-C", str(root), "ls-files", "-z"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    return [n for n in names if n and not GENERATED.fullmatch(n) and not LEFT_OUT.match(n)]


def long_names(name: str, text: str) -> Iterator[str]:
    """Yield a sentence for each test name above the limit."""
    if name.startswith("tests/") and name.endswith((".c", ".py")):
        for test in (C_TESTS if name.endswith(".c") else PYTHON_TESTS).findall(text):
            if len(test) > NAME_MOST:
                yield f"{name}: test name must have at most {NAME_MOST} characters, got {test}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="print each file")
    parser.add_argument("--folders", action="store_true", help="print the words per folder")
    parser.add_argument("root", nargs="?", type=Path, default=Path())
    options = parser.parse_args()
    files: dict[str, Count] = defaultdict(Count)
    folders: dict[str, Count] = defaultdict(Count)
    total, faults = Count(), []
    for name in tracked(options.root):
        path = options.root / name
        if path.is_symlink() or not path.is_file() or path.suffix not in READERS:
            continue
        text = path.read_text(encoding="utf-8")
        lines = prose_of(name, text)
        alone = Count()
        alone.add(lines)
        small = f"{path.relative_to(options.root).parent}/ (small files)"
        for count in (files[small if alone.words < SMALL else name], folders[name.split("/")[0]]):
            count.add(lines)
        total.add(lines)
        faults.extend(long_names(name, text))
    for name, count in files.items():
        if count.words >= SMALL and count.exceeds(FILE_LIMITS):
            faults.append(f"{name}: {count} per 1,000; limits {FILE_LIMITS[0]}, {FILE_LIMITS[1]}")
        elif options.all:
            print(f"{name}: {count}")
    if total.exceeds(PROJECT_LIMITS):
        faults.append(f"project: limits are {PROJECT_LIMITS[0]} and {PROJECT_LIMITS[1]} per 1,000")
    for name, count in sorted(folders.items()) if options.folders else ():
        print(f"{name:16} {count} per 1,000")
    print(*faults, sep="\n", end="\n" * bool(faults))
    print(f"{total} per 1,000 in {len(files)} files and folders; {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
