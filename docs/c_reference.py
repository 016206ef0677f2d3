"""Write docs/c-reference.md from the comments of the public headers.

Usage: python docs/c_reference.py [--check]

With --check nothing is written; the exit status is 1 if the page does not match the headers.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "c-reference.md"
HEADERS = (
    "api/include/memrt/memrt.h",
    "api/include/memrt/external.h",
    "api/include/memrt/api.h",
    "api/include/memrt/meminfo.h",
    "api/include/memrt/meminfo/create.h",
    "api/include/memrt/meminfo/resizable.h",
    "api/include/memrt/meminfo/block.h",
    "api/include/memrt/policy.h",
    "api/include/memrt/allocator.h",
    "api/include/memrt/scope.h",
    "api/include/memrt/observe/stats.h",
    "api/include/memrt/observe/tracking.h",
    "api/include/memrt/observe/site.h",
    "api/include/memrt/meminfo/holder.h",
    "api/include/memrt/observe/watcher.h",
    "api/include/memrt/process/fault_injection.h",
    "api/include/memrt/process/option.h",
    "api/include/memrt/process/process.h",
    "api/include/memrt/process/symbol.h",
    "api/include/memrt/observe/trace.h",
    "api/include/memrt/observe/trace_file.h",
    "api/include/memrt/meminfo/exchange.h",
    "api/include/memrt/dlpack.h",
    "api/include/memrt/arrow.h",
    "api/include/memrt/cuda.h",
    "api/include/memrt/status.h",
    "api/include/memrt/version.h",
    "api/include/memrt/check.h",
    "bindings/include/memrt/import.h",
    "bindings/include/memrt/numpy.h",
)

HEAD = re.compile(r"\A#ifndef .*\n#define .*\n\n((?:///.*\n)+)\n")
COMMENT = re.compile(r"\s*///(?!<) ?(.*)")
PLAIN = re.compile(r"\s+/\*(?! ---)")
TRAILING = re.compile(r"(.*?)\s*///< ?(.*)")
SECTION = re.compile(r"\s*/\* --- (.*)")
SLOT = re.compile(r"(memrt_\w+_fn) \w+(?: MEMRT_MUST_CHECK)?;")
FIELD = re.compile(r"(Ownership|Threads|Failure|Since): *(.*)")
NAMES = (
    re.compile(r"\(\*(\w+)\)"),  # a function pointer
    re.compile(r"#define (\w+)"),
    re.compile(r"typedef (?:struct|enum) \w+ (\w+);"),
    re.compile(r"typedef (?:struct|enum) (\w+)"),
    re.compile(r"(\w+)\("),  # a function
    re.compile(r"(\w+)(?:\[\w+\])?(?: = \w+)?(?: MEMRT_MUST_CHECK)?[;,]$"),  # a member
)


@dataclass
class Item:
    """A declaration with its comment."""

    code: list[str]
    text: list[str] = field(default_factory=list)
    section: str = ""
    note: str = ""
    members: list[Item] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The declared name. For a struct with members, `_t` is appended to the tag."""
        joined = " ".join(line.strip() for line in self.code)
        name = next(match[1] for pattern in NAMES if (match := pattern.search(joined)))
        return f"{name}_t" if self.members else name


def is_whole(code: list[str]) -> bool:
    """Return True if the lines are a complete declaration."""
    last = code[-1].rstrip()
    if code[0].startswith("#"):
        return not last.endswith("\\")
    joined = " ".join(code)
    return joined.count("(") == joined.count(")") and last.endswith((";", ",", "{", "}"))


def is_noise(line: str) -> bool:
    """Return True for lines without a declaration for the reader, such as include guards."""
    if line.startswith("#define"):
        return re.fullmatch(r"#define \w+_H|#define MEMRT_(MUST_CHECK|EXPORT).*", line) is not None
    return line.startswith("#") or line.strip() in {"", 'extern "C" {', "}"}


def skip_bodies(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines, with each body of an inline function replaced by a semicolon."""
    for line in lines:
        if line == "{":
            while next(lines) != "}":
                pass
            yield ";"
        else:
            yield line


def join_trailing(lines: list[str]) -> Iterator[str]:
    """Yield the lines, with continuation lines of trailing comments joined to the first line."""
    whole = ""
    for line in lines:
        if line.lstrip().startswith("///<"):
            whole += line.lstrip().removeprefix("///<")
        else:
            yield whole
            whole = line
    yield whole


def section_title(line: str, lines: Iterator[str]) -> str:
    """Return the text of a section comment, which groups members of the table."""
    text = SECTION.match(line)[1]
    while "*/" not in text:
        text += " " + next(lines).strip()
    return text.split("---")[0].strip().rstrip(".")


def comment_text(line: str, lines: Iterator[str]) -> str:
    """Return the text of a plain comment about the members that follow."""
    text = line
    while "*/" not in text:
        text += " " + next(lines).strip()
    return text.strip().removeprefix("/*").removesuffix("*/").strip()


def declarations(lines: Iterator[str]) -> Iterator[Item]:
    """Yield all declarations up to the end of the file or of the struct, in order."""
    text: list[str] = []
    code: list[str] = []
    section = note = ""
    for line in lines:
        if SECTION.match(line):
            section = section_title(line, lines)
        elif not code and PLAIN.match(line):
            note = comment_text(line, lines)
        elif match := COMMENT.match(line):
            text.append(match[1])
        elif line.startswith("}") and line != "}":
            return
        elif code or not is_noise(line):
            if match := TRAILING.match(line):
                line = match[1]
                text.append(match[2])
            code.append(line)
            if is_whole(code):
                item = Item(code, text, section, note)
                if line.endswith("{"):
                    item.members = list(declarations(lines))
                if "__" not in item.name:
                    yield item
                text, code, section, note = [], [], "", ""
        elif not line.strip():
            text = []


def prose(text: list[str]) -> list[str]:
    """Return a comment as Markdown lines. Fields such as Ownership become list items."""
    lines: list[str] = []
    in_list = False
    for line in text:
        if match := FIELD.match(line):
            lines += [] if in_list else [""]
            lines.append(f"- **{match[1]}**: {match[2]}")
            in_list = True
        else:
            in_list = in_list and line.startswith(" ")
            lines.append("  " * in_list + line.strip())
    return lines


def head(text: str) -> list[str]:
    """Return the file comment of a header as Markdown lines, or [] without a file comment."""
    match = HEAD.match(text)
    return ["", *prose(COMMENT.findall(match[1]))] if match else []


def is_row(item: Item) -> bool:
    """Return True if a member fits into a row of a table."""
    return len(item.text) <= 1 and "(*" not in item.code[0]


def rows(items: list[Item]) -> list[str]:
    """Return a Markdown table of members and comments."""
    lines = ["", "| member | meaning |", "|---|---|"]
    for item in items:
        code = " ".join(item.code[0].split()).rstrip(";,")
        lines.append(f"| `{code}` | {meaning(item)} |")
    return lines


def meaning(item: Item) -> str:
    """Return the comment of a member. For a slot of the table, return a link to its contract."""
    match = SLOT.fullmatch(item.code[0].strip())
    if match and not item.text:
        return f"[contract](#{match[1]})"
    return " ".join(item.text)


def block(item: Item, level: str) -> list[str]:
    """Return the Markdown lines of one declaration with comment."""
    code = textwrap.dedent("\n".join(line for line in item.code if line != ";"))
    return ["", f"{level} {item.name}", "", "```c", code, "```", "", *prose(item.text)]


def structure(item: Item) -> list[str]:
    """Return the Markdown lines of a struct or enum with members."""
    lines = ["", f"### {item.name}", "", *prose(item.text)]
    small: list[Item] = []
    for member in item.members:
        if member.section:
            lines += (rows(small) if small else []) + ["", f"**{member.section}**"]
            small = []
        if member.note:
            lines += (rows(small) if small else []) + ["", member.note]
            small = []
        if is_row(member):
            small.append(member)
        else:
            lines += rows(small) if small else []
            small = []
            lines += block(member, "####")
    return lines + (rows(small) if small else [])


def page() -> str:
    """Return the text of the whole reference."""
    lines = ["# C reference", "", "Written from the headers by `./dev docs`; do not edit."]
    for header in HEADERS:
        lines += ["", f"## {header.partition('include/')[2]}"]
        text = (ROOT / header).read_text(encoding="utf-8")
        lines += head(text)
        for item in declarations(skip_bodies(join_trailing(text.splitlines()))):
            lines += structure(item) if item.members else block(item, "###")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="check that the page is current, write nothing"
    )
    options = parser.parse_args()
    text = page()
    if options.check:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        print(
            f"{PAGE.relative_to(ROOT)} does not match the headers: run ./dev docs", file=sys.stderr
        )
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
