"""Lay out tables as lines of text: within a width, or without a limit."""

from __future__ import annotations

import re
from unicodedata import east_asian_width

from memrt.commands.live_view.tables import Row, Table

# Columns that a narrow window omits, in this order.
_SPARED = ("failed", "blocks", "cached", "updated", "total", "resident", "peak", "trend", "rate")
_LEFT = frozenset(
    {
        "program",
        "state",
        "trend",
        "policy",
        "scope",
        "part",
        "reason",
        "worker",
        "prefix",
        "site",
        "",
    }
)
_ROOM = 24  # minimum width of the name column
_PLAIN_ROOM = 60  # maximum width of the name column in plain text
_GAP = 2


def text_width(text: str) -> int:
    """Return the number of columns that a terminal needs for a text."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def cut(text: str, width: int) -> str:
    """Return the text, or its beginning with an ellipsis, in at most `width` columns."""
    if text_width(text) <= width:
        return text
    kept = ""
    for letter in text:
        if text_width(kept + letter) >= width:
            break
        kept += letter
    return f"{kept}…"


def fold(text: str, width: int) -> list[str]:
    """Return the text as lines of at most `width` columns, broken between words."""
    lines = [""]
    for word in re.findall(r"\S+\s*", text):
        if lines[-1] and text_width(lines[-1] + word.rstrip()) > width:
            lines.append("")
        lines[-1] += word
        while text_width(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return [line.rstrip() for line in lines]


class Lines:
    """Lines of a table: the header, and a line for each row.

    Parameters
    ----------
    width : int or None
        Columns of the window. Columns of the table are omitted, and names cut, to fit. None: plain
        text, with all columns.
    sort : str
        Column that is never omitted.
    """

    def __init__(self, table: Table, width: int | None, sort: str) -> None:
        cells = [table.header, *(row.cells for row in table.rows)]
        if width is not None:
            for name in _SPARED:
                if name != sort and name in cells[0] and _figures_width(cells) + _ROOM > width:
                    cells = _without(cells, cells[0].index(name))
        room = _PLAIN_ROOM if width is None else max(width - _figures_width(cells), 1)
        if len(cells[0]) > 1 or width is not None:
            cells = [[cut(line[0], room), *line[1:]] for line in cells]
        widths = [max(map(text_width, column)) for column in zip(*cells, strict=True)]
        lines = [_line(line, widths, cells[0]) for line in cells]
        self.header, self.lines = lines[0], lines[1:]
        self.rows: list[Row] = table.rows


def _figures_width(cells: list[list[str]]) -> int:
    """Return the width of all columns except the names."""
    columns = list(zip(*cells, strict=True))[1:]
    return sum(max(map(text_width, column)) + _GAP for column in columns)


def _without(cells: list[list[str]], index: int) -> list[list[str]]:
    return [[*line[:index], *line[index + 1 :]] for line in cells]


def _line(cells: list[str], widths: list[int], header: list[str]) -> str:
    padded = []
    for cell, width, name in zip(cells, widths, header, strict=True):
        space = " " * (width - text_width(cell))
        padded.append(cell + space if name in _LEFT else space + cell)
    return (" " * _GAP).join(padded).rstrip()


def plain_text(tables: list[Table], sort: str) -> str:
    """Return the tables as text without a limit of width."""
    parts = []
    for table in tables:
        lines = Lines(table, None, sort) if table.rows else None
        shown = [] if lines is None else [lines.header, *lines.lines]
        parts.append("\n".join(line for line in (table.title, *shown) if line))
    return "\n\n".join(parts)
