"""Find the source lines in a recording that a person should look at, and print them as lines."""

from __future__ import annotations

import io
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple

from memrt._profile.recording import Document
from memrt._support.units import human_bytes, plural


class Rule(NamedTuple):
    """A kind of finding."""

    id: str
    level: str
    """error, warning or note, as in SARIF."""
    about: str
    help: str


LOST = Rule(
    "lost-buffer",
    "error",
    "Buffers are lost: no Python object holds them",
    "Compiled code acquired references and did not release them.",
)
RETAINED = Rule(
    "view-keeps-buffer",
    "warning",
    "Small views keep large buffers alive",
    "Store a copy of the part: table[:10].copy() in place of table[:10].",
)
HELD = Rule(
    "held-at-end",
    "note",
    "Buffers are live at the end of the program",
    "Drop the last reference, for example by del, or store a weak reference.",
)
RULES = (LOST, RETAINED, HELD)


class Line(NamedTuple):
    """A source line of a call."""

    function: str
    file: str
    line: int


class Finding(NamedTuple):
    """A finding at one source line."""

    rule: Rule
    message: str
    nbytes: int
    buffers: int
    place: Line | None
    """Innermost call in the project; without such a call, the allocation site; None: unknown."""
    calls: tuple[Line, ...]
    """Calls of the allocation site, innermost call first."""


def find(documents: Iterable[Document], root: str) -> list[Finding]:
    """Return the findings of all processes, the kind with the highest level first.

    Parameters
    ----------
    documents : Iterable[Document]
        Recording.
    root : str
        Folder of the project.
    """
    found = [each for document in documents for each in _findings_of(document, root)]
    return sorted(found, key=lambda each: (RULES.index(each.rule), -each.nbytes))


def _findings_of(document: Document, root: str) -> Iterator[Finding]:
    folders: list[str] = document["roots"]["project"]
    for group in document["lost"]:
        yield _of_group(LOST, group, "is lost: no Python object holds {}", root, folders)
    yield from _retained(document["retention"]["buffers"], root, folders)
    for group in document["held"]:
        yield _of_group(HELD, group, "is live at the end", root, folders)


_LINE = re.compile(r"(?:called from )?(.*?) at (.*):(\d+)", re.DOTALL)
_CALLED, _BRANCH = "called from ", "└"
_CALLS = (_CALLED, "through ")


def _of_group(
    rule: Rule, group: dict[str, Any], what: str, root: str, folders: Sequence[str]
) -> Finding:
    lines: list[str] = group["lines"]
    one = group["buffers"] == 1
    what = what.format("it" if one else "them")
    amount = f"{plural(group['buffers'], 'buffer')} of {human_bytes(group['bytes'])}"
    holders = [x for x in lines if not x.startswith(_CALLS) and _BRANCH not in x][:1]
    message = ": ".join([f"{amount} {what if one else what.replace('is ', 'are ', 1)}", *holders])
    places = [group["place"] or "", *(x for x in lines if x.startswith(_CALLED))]
    calls = _lines(places, folders)
    return Finding(
        *(rule, message, group["bytes"], group["buffers"], _in_project(calls, root), calls)
    )


def _retained(
    buffers: Sequence[dict[str, Any]], root: str, folders: Sequence[str]
) -> Iterator[Finding]:
    """Yield one finding for each allocation site."""
    by_place = defaultdict(list)
    for each in buffers:
        by_place[each["lines"][0].partition("allocated in ")[2] if each["lines"] else ""].append(
            each
        )
    for place, group in by_place.items():
        wasted, calls = sum(each["wasted"] for each in group), _lines([place], folders)
        amount = f"{human_bytes(wasted)} in {plural(len(group), 'buffer')}"
        message = f"small views keep {amount} alive: store copies of the parts"
        place_in = _in_project(calls, root)
        yield Finding(RETAINED, message, wasted, len(group), place_in, calls)


def _lines(texts: Iterable[str], folders: Sequence[str]) -> tuple[Line, ...]:
    """Return the source lines in texts, without equal neighbours. `folders` are of the project."""
    found: list[Line] = []
    for text in texts:
        match = _LINE.fullmatch(text)
        line = None
        if match is not None:
            line = Line(match[1], _whole_path(match[2], folders), int(match[3]))
        if line is not None and line not in found[-1:]:
            found.append(line)
    return tuple(found)


def _whole_path(file: str, folders: Sequence[str]) -> str:
    """Return the path of a file that a text names by its path in a folder of the project."""
    paths = [os.path.join(folder, file) for folder in folders]
    return next((path for path in paths if os.path.exists(path)), file)


def _in_project(calls: Sequence[Line], root: str) -> Line | None:
    inside = (call for call in calls if relative(call.file, root) is not None)
    return next(inside, calls[0] if calls else None)


def relative(file: str, root: str) -> str | None:
    """Return the path of a file below the folder `root`, or None for other files.

    Installed packages below the folder are not of the project.
    """
    if not os.path.isabs(file):
        return None
    path = os.path.relpath(file, root)
    is_outside = path.startswith(os.pardir + os.sep) or "site-packages" in path
    return None if is_outside else path


_SEVERITIES = {"error": "error", "warning": "warning", "note": "info"}


def write_problems(documents: Sequence[Document], file: IO[bytes]) -> None:
    """Write a line for each finding that has a source line, as compilers print warnings."""
    root = os.getcwd()
    text = io.TextIOWrapper(file, "utf-8", errors="replace", write_through=True)
    for each in find(documents, root):
        if each.place is not None:
            path = relative(each.place.file, root) or each.place.file
            severity = _SEVERITIES[each.rule.level]
            line = f"{path}:{each.place.line}: {severity}: {each.message} [{each.rule.id}]"
            text.write("".join(c if c.isprintable() else "?" for c in line) + "\n")
    text.detach()
