"""Read and write recordings: a JSON line for the file, a line per process, and an end line.

docs/internals/recording-format.md describes the format. The reader validates every field, so that
pages and pictures can rely on the contents.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

FORMAT = "memrt recording"
VERSION = 1

Document: TypeAlias = dict[str, Any]
"""The recording of one process."""


class RecordingError(ValueError):
    """A file is not a recording or cannot be read. The message is one sentence with the reason."""


def dumps(documents: Iterable[Document]) -> str:
    """Return the text of a recording file with one line per process."""
    lines = [json.dumps(document, separators=(",", ":")) for document in documents]
    head = {"format": FORMAT, "version": VERSION, "processes": len(lines)}
    return "\n".join([json.dumps(head), *lines, json.dumps({"end": len(lines)}), ""])


def loads(data: bytes) -> list[Document]:
    """Return the documents of a recording file.

    Raises
    ------
    RecordingError
        For a file of another format or version, a truncated or a damaged file.
    """
    first, *lines = data.split(b"\n")
    count = _expected(first)
    if len(lines) != count + 2 or lines[-1] or _parsed(lines[-2]) != {"end": count}:
        raise RecordingError("the recording is truncated: record the program again")
    documents = [_parsed(line) for line in lines[:count]]
    for document in documents:
        _check(document, _DOCUMENT, "process")
        for name, (shape, default) in _OPTIONAL.items():
            _check(document.get(name, default), shape, name)
        _check_columns(document["timeline"])
        _check_memory(document.get("memory_over_time"))
        _check_numbers(document)
    return documents


def _expected(line: bytes) -> int:
    """Return the number of processes in the first line, after a check of format and version."""
    head = _parsed(line)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise RecordingError(
            "not a memrt recording: make a recording by `run --record FILE SCRIPT`"
        )
    version, count = head.get("version"), head.get("processes")
    if version != VERSION:
        raise RecordingError(
            f"format version must be {VERSION} for this memrt, got {version!r}: use the memrt that "
            "wrote the recording"
        )
    if not isinstance(count, int) or count < 1:
        raise RecordingError(
            f"the recording is damaged: processes must be 1 or more, got {count!r}"
        )
    return count


def _parsed(line: bytes) -> Any:
    """Return the value of a JSON line, or None if the line is not valid JSON."""
    try:
        return json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


# --- The schema of a process. A shape is a type, a list of one shape, a tuple of shapes, a dict, or
# a frozenset of alternative types. ---

_Shape: TypeAlias = Any
_TEXT_OR_NONE = frozenset((str, type(None)))
_NUMBER = frozenset((int, float))
_INTEGER_OR_NONE = frozenset((int, type(None)))
_MEMORY: _Shape = [(str, str, _INTEGER_OR_NONE, _INTEGER_OR_NONE)]
_HUGE_PAGES: _Shape = {"asked": int, "got": _INTEGER_OR_NONE}
_NO_HUGE_PAGES = {"asked": 0, "got": 0}
_USER_CALLS: _Shape = [(int, int, int)]
_SOURCES: _Shape = [(int, int, int, [str])]
_ROOTS: _Shape = {"project": [str], "library": [str]}
_LISTINGS: _Shape = [
    {
        "t": _NUMBER,
        "bytes": int,
        "rows": [(int, _TEXT_OR_NONE, int, int)],
        "came": [(int, int, int)],
    }
]
_FINDINGS: _Shape = [
    {
        "rule": str,
        "bytes": int,
        "text": str,
        "fix": str,
        "place": _TEXT_OR_NONE,
        "holder": _TEXT_OR_NONE,
        "calls": [(str, str, int)],
    }
]
_MEMORY_OVER_TIME: _Shape = {"t": [_NUMBER], "parts": [{"name": str, "resident": [int]}]}
_GROUP = {"bytes": int, "buffers": int, "place": _TEXT_OR_NONE, "lines": [str]}
_HOLDER_GROUP: _Shape = {
    "site": int,
    "holder": str,
    "buffers": int,
    "bytes": int,
    "wasted": int,
    "lines": [str],
}
_GROUPS: _Shape = {"holders": [_HOLDER_GROUP], "retention": [_HOLDER_GROUP]}
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

_OPTIONAL: dict[str, tuple[_Shape, Any]] = {
    "memory": (_MEMORY, []),
    "huge_pages": (_HUGE_PAGES, _NO_HUGE_PAGES),
    "memory_over_time": (_MEMORY_OVER_TIME, {"t": [], "parts": []}),
    "user_calls": (_USER_CALLS, []),
    "sources": (_SOURCES, []),
    "groups": (_GROUPS, {"holders": [], "retention": []}),
    "findings": (_FINDINGS, []),
    "listings": (_LISTINGS, []),
    "roots": (_ROOTS, {"project": [], "library": []}),
}
"""Fields that recordings of earlier releases lack, with the value that stands for their absence."""


def _check(value: Any, shape: _Shape, where: str) -> None:
    """Raise RecordingError unless `value` has the given shape."""
    if isinstance(shape, dict):
        _expect(isinstance(value, dict) and shape.keys() <= value.keys(), where)
        for name, part in shape.items():
            _check(value[name], part, name)
    elif isinstance(shape, list):
        _expect(isinstance(value, list), where)
        _check_all(value, shape[0], where)
    else:
        _check_all([value], shape, where)


def _check_all(values: Sequence[Any], shape: _Shape, where: str) -> None:
    """Raise RecordingError unless each value has the given shape. Rows are checked by column."""
    if isinstance(shape, tuple):
        _expect(set(map(type, values)) <= {list} and set(map(len, values)) <= {len(shape)}, where)
        for column, part in zip(zip(*values, strict=True), shape, strict=False):
            _check_all(column, part, where)
    elif isinstance(shape, dict | list):
        for value in values:
            _check(value, shape, where)
    else:
        found = set(map(type, values))
        _expect(found <= (shape if isinstance(shape, frozenset) else {shape}), where)
        if found & _NUMBER:
            numbers = [value for value in values if value is not None]
            _expect(min(numbers) >= -(2**63) and max(numbers) < 2**64, where)


def _expect(holds: bool, where: str) -> None:
    if not holds:
        raise RecordingError(f"the recording is damaged: {where!r} has an invalid value")


def _check_columns(timeline: dict[str, list[Any]]) -> None:
    lengths = {len(timeline[name]) for name in ("t", "live", "cached", "resident", "scoped")}
    _expect(len(lengths) == 1, "timeline")
    scopes = range(len(timeline["scopes"]))
    _expect(all(row[0] in scopes for rows in timeline["scoped"] for row in rows), "scoped")


def _check_memory(memory: dict[str, list[Any]] | None) -> None:
    if memory is not None:
        lengths = {len(memory["t"]), *(len(part["resident"]) for part in memory["parts"])}
        _expect(len(lengths) == 1, "memory_over_time")


def _check_numbers(document: Document) -> None:
    frames = range(len(document["frames"]))
    _expect(all(i in frames for site in document["sites"] for i in site[2]), "sites")
    calls = (i for row in document.get("user_calls", []) for i in row[1:])
    _expect(all(i == -1 or i in frames for i in calls), "user_calls")
    _expect(all(row[0] in frames for row in document.get("sources", [])), "sources")
    sizes = (row[0] for row in document["highest"]["sizes"])
    _expect(all(bits in range(65) for bits in sizes), "sizes")
