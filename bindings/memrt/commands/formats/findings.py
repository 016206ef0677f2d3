"""The findings of a recording as lines for editors, with the levels of SARIF."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from typing import IO, NamedTuple

from memrt._profile.recording import Document


class Rule(NamedTuple):
    """A kind of finding."""

    level: str
    """error, warning or note, as in SARIF."""
    about: str


RULES = {
    "lost": Rule("error", "No Python object holds these buffers"),
    "growth": Rule("warning", "Held buffers of one line grow until the end"),
    "retained": Rule("warning", "Small views keep large buffers"),
    "duplicates": Rule("note", "Buffers have equal contents"),
    "temporaries": Rule("note", "A large part of the peak are temporaries of one statement"),
    "wide": Rule("note", "The values fit a narrower type"),
    "fragmentation": Rule("note", "Much free memory stays in memory"),
    "repeated": Rule("note", "A statement allocates one size again and again"),
    "untouched": Rule("note", "Arrays are much larger than the part that the program used"),
}
_SEVERITIES = {"error": "error", "warning": "warning", "note": "info"}


class Line(NamedTuple):
    """A source line of a call."""

    function: str
    file: str
    line: int


class PlacedFinding(NamedTuple):
    """A finding at its source line."""

    rule: str
    message: str
    nbytes: int
    calls: tuple[Line, ...]
    """Calls of the allocation site: the user's call first, then innermost first."""


def read_findings(documents: Iterable[Document]) -> list[PlacedFinding]:
    """Return the findings of all processes in the order of RULES, the most bytes first.

    Findings of rules that this memrt does not know are left out.
    """
    found = [
        PlacedFinding(
            each["rule"],
            f"{each['text']}. Next step: {each['fix']}",
            each["bytes"],
            tuple(Line(*call) for call in each["calls"]),
        )
        for document in documents
        for each in document.get("findings", [])
        if each["rule"] in RULES
    ]
    order = list(RULES)
    return sorted(found, key=lambda each: (order.index(each.rule), -each.nbytes))


def relative(file: str, root: str) -> str | None:
    """Return the path of a file below the folder `root`, or None for other files."""
    if not os.path.isabs(file):
        return None
    path = os.path.relpath(file, root)
    return None if path.startswith(os.pardir + os.sep) else path


def write_problems(documents: Sequence[Document], file: IO[bytes]) -> None:
    """Write a line for each finding that has a source line, as compilers print warnings."""
    root = os.getcwd()
    text = io.TextIOWrapper(file, "utf-8", errors="replace", write_through=True)
    for each in read_findings(documents):
        if each.calls:
            _, name, number = each.calls[0]
            severity = _SEVERITIES[RULES[each.rule].level]
            place = f"{relative(name, root) or name}:{number}"
            line = f"{place}: {severity}: {each.message} [{each.rule}]"
            text.write("".join(c if c.isprintable() else "?" for c in line) + "\n")
    text.detach()
