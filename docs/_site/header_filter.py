"""Print a public header with its comments in the form that Doxygen reads. For INPUT_FILTER.

- The comment at the top becomes the comment of the file.
- `Ownership:`, `Threads:`, `Failure:` and `Since:` become paragraphs with titles.
- A plain comment inside of a struct becomes the title and the text of a group of members.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

FIELD = re.compile(r"( *///) *(Ownership|Threads|Failure|Since): *(.*)")
CONTINUATION = re.compile(r"( *///) {2,}(.*)")
STRUCT = re.compile(r"^typedef (?:struct|enum)[^;]*?\{\n.*?^\}", re.DOTALL | re.MULTILINE)
NOTE = re.compile(r"^( +)/\*(.*?)\*/\n", re.DOTALL | re.MULTILINE)
SENTENCE = re.compile(r"(.*?)[.:;](?: |$)(.*)")
GUARD = re.compile(r"(#ifndef \w+\n#define \w+\n\n)(?=///)")


def sentence(text: str) -> str:
    """Return the text with a capital letter at the start, unless it starts with a name."""
    return text[0].upper() + text[1:] if re.match(r"(?!memrt)[a-z]+[ ,]", text) else text


def group(indent: str, note: str) -> str:
    """Return the start of a group of members. The first sentence of the note is the title."""
    text = " ".join(note.replace("---", " ").replace("\n     *", " ").split())
    title, rest = SENTENCE.fullmatch(f"{text}.").groups()
    rest = sentence(rest.strip(". "))
    lines = [f"@name {title.rstrip(':. ')}", *([f"{rest}."] if rest else []), "@{"]
    return "".join(f"{indent}/// {line}\n" for line in lines)


def grouped(struct: str) -> str:
    """Return a struct with its plain comments as groups, each closed before the next group."""
    if NOTE.search(struct):  # Breathe shows groups first: the members above are a group, too
        struct = re.sub(r"(?<=\{\n)(?! */\*)", "    /* Members */\n", struct, count=1)
    notes = list(NOTE.finditer(struct))
    for number, note in reversed(list(enumerate(notes))):
        end = f"{note[1]}/// @}}\n" if number else ""
        struct = (
            struct[: note.start()] + end + group(note[1], note[2]) + "\n" + struct[note.end() :]
        )
    return re.sub(r"^\}", "    /// @}\n}", struct, flags=re.MULTILINE) if notes else struct


def fields(lines: list[str]) -> Iterator[str]:
    """Yield the lines, with fields as paragraphs and without the indentation of continuations."""
    for line in lines:
        if found := FIELD.match(line):
            yield f"{found[1]} @par {found[2]}"
            yield f"{found[1]} {sentence(found[3])}"
        elif found := CONTINUATION.match(line):
            yield f"{found[1]} {found[2]}"
        else:
            yield line


def filtered(text: str) -> str:
    text = GUARD.sub(r"\1/// @file\n", text)
    text = STRUCT.sub(lambda struct: grouped(struct[0]), text)
    return "\n".join(fields(text.splitlines())) + "\n"


if __name__ == "__main__":
    print(filtered(Path(sys.argv[1]).read_text(encoding="utf-8")), end="")
