"""The format of recordings: a line of JSON for the file, one for each process, one that ends it.

docs/reports.md describes it. What is read is checked to the last field, so that pages and pictures
can rely on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

FORMAT = "memrt recording"
VERSION = 1

Document: TypeAlias = dict[str, Any]
"""What was recorded of one process."""


class RecordingError(ValueError):
    """What is no recording, or none that can be read: one sentence that says why."""


def dumps(documents: Iterable[Document]) -> str:
    """Processes as the text of a file."""
    lines = [json.dumps(document, separators=(",", ":")) for document in documents]
    head = {"format": FORMAT, "version": VERSION, "processes": len(lines)}
    return "\n".join([json.dumps(head), *lines, json.dumps({"end": len(lines)}), ""])


def loads(data: bytes) -> list[Document]:
    """The processes of a file; RecordingError for another file, or a part of one."""
    first, *lines = data.split(b"\n")
    count = _expected(first)
    if len(lines) != count + 2 or lines[-1] or _parsed(lines[-2]) != {"end": count}:
        raise RecordingError("it is cut short: its end is missing; record the program again")
    documents = [_parsed(line) for line in lines[:count]]
    for document in documents:
        _check(document, _DOCUMENT, "a process")
        _check_columns(document["timeline"])
        _check_numbers(document)
    return documents


def _expected(line: bytes) -> int:
    """How many processes the first line promises."""
    head = _parsed(line)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise RecordingError("it is no recording of memrt; make one by 'run --record FILE SCRIPT'")
    version, count = head.get("version"), head.get("processes")
    if version != VERSION:
        raise RecordingError(
            f"it is of version {version!r} of the format, and this memrt reads version {VERSION}; "
            "read it with the memrt that wrote it"
        )
    if not isinstance(count, int) or count < 1:
        raise RecordingError("it is damaged: its first line promises no process")
    return count


def _parsed(line: bytes) -> Any:
    """A line's value; None for what is no JSON."""
    try:
        return json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


# --- What a process consists of: a type, a list of one shape, a tuple of shapes, a dict, or, in a
# frozenset, one of several. ---

_Shape: TypeAlias = Any
_TEXT_OR_NONE = frozenset((str, type(None)))
_NUMBER = frozenset((int, float))
_GROUP = {"bytes": int, "buffers": int, "place": _TEXT_OR_NONE, "lines": [str]}
_DOCUMENT: _Shape = {
    "memrt": str,
    "python": str,
    "numpy": str,
    "platform": str,
    "program": [str],
    "pid": int,
    "parent": int,
    "started": _NUMBER,
    "seconds": _NUMBER,
    "ended": str,
    "settings": [(str, str)],
    "options": [(str, str, str)],
    "stats": [(str, str, int)],
    "notes": [str],
    "timeline": {
        "t": [_NUMBER],
        "live": [int],
        "cached": [int],
        "resident": [int],
        "scopes": [str],
        "scoped": [[(int, int)]],
        "halvings": int,
    },
    "frames": [str],
    "sites": [(int, _TEXT_OR_NONE, [int])],
    "highest": {
        "t": _NUMBER,
        "bytes": int,
        "rows": [(int, _TEXT_OR_NONE, int, int)],
        "sizes": [(int, int, int)],
    },
    "total": [(int, int, int)],
    "live": {
        "columns": [str],
        "rows": [
            (int, int, _NUMBER, int, _TEXT_OR_NONE, _NUMBER, int, str, str, int, _TEXT_OR_NONE, int)
        ],
        "more": int,
    },
    "lost": [_GROUP],
    "held": [_GROUP],
    "holders": [{"title": str, "bytes": int, "lines": [str]}],
    "retention": {
        "count": int,
        "wasted": int,
        "buffers": [{"why": str, "wasted": int, "lines": [str]}],
    },
}


def _check(value: Any, shape: _Shape, where: str) -> None:
    """RecordingError unless `value` is of that shape."""
    if isinstance(shape, dict):
        _expect(isinstance(value, dict) and shape.keys() <= value.keys(), where)
        for name, part in shape.items():
            _check(value[name], part, name)
    elif isinstance(shape, list):
        _expect(isinstance(value, list), where)
        for item in value:
            _check(item, shape[0], where)
    elif isinstance(shape, tuple):
        _expect(isinstance(value, list) and len(value) == len(shape), where)
        for item, part in zip(value, shape, strict=True):
            _check(item, part, where)
    else:
        _expect(type(value) in (shape if isinstance(shape, frozenset) else (shape,)), where)


def _expect(holds: bool, where: str) -> None:
    if not holds:
        raise RecordingError(f"it is damaged: {where!r} is not as memrt writes it")


def _check_columns(timeline: dict[str, list[Any]]) -> None:
    lengths = {len(timeline[name]) for name in ("t", "live", "cached", "resident", "scoped")}
    _expect(len(lengths) == 1, "timeline")
    scopes = range(len(timeline["scopes"]))
    _expect(all(row[0] in scopes for rows in timeline["scoped"] for row in rows), "scoped")


def _check_numbers(document: Document) -> None:
    frames = range(len(document["frames"]))
    _expect(all(i in frames for site in document["sites"] for i in site[2]), "sites")
    sizes = (row[0] for row in document["highest"]["sizes"])
    _expect(all(bits in range(65) for bits in sizes), "sizes")
