"""Render a recording as an HTML page: a single file that loads nothing from network or disk.

Style, data and scripts are inline. No text of the recorded program can become markup or end a
script element: the template escapes the title, and as_script() escapes the data.
"""

from __future__ import annotations

import base64
import json
import sys
from array import array
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Any

from memrt._profile.ending import COLUMNS
from memrt._profile.recording import Document
from memrt._support.extras import expect, needed

_WHY = "a page"  # subject of the message for a missing package

# Files of the script, in the order of their code in the page. The last file reads the recordings
# and draws the page, and so needs the constants of all other files.
_SCRIPT_PARTS = (
    "format",
    "elements",
    "table",
    "sites",
    "charts",
    "moments",
    "overview",
    "timeline",
    "peak",
    "flame_graph",
    "process_end",
    "settings",
    "processes",
    "comparison",
    "start",
)


def expect_packages() -> None:
    """Raise MissingPackageError if jinja2 is not installed."""
    expect("jinja2", _WHY)


def render(documents: list[Document]) -> bytes:
    """Return the HTML page of a recording, encoded as UTF-8.

    Lone surrogates, as in undecodable file names, become backslash escapes.

    Parameters
    ----------
    documents : list[Document]
        Document of the recorded process, then the documents of child processes.
    """
    jinja2 = needed("jinja2", _WHY)
    template = jinja2.Environment(autoescape=True).from_string(_read_asset("page.html"))
    text: str = template.render(
        title=" ".join(documents[0]["program"]),
        version=documents[0]["memrt"],
        chart_style=jinja2.utils.markupsafe.Markup(_read_asset("vendor/uPlot.min.css")),
        style=jinja2.utils.markupsafe.Markup(_read_asset("page.css")),
        data=jinja2.utils.markupsafe.Markup(as_script([_pack_buffers(each) for each in documents])),
        charts=jinja2.utils.markupsafe.Markup(_read_chart_library()),
        script=jinja2.utils.markupsafe.Markup(_join_script()),
    )
    return text.encode("utf-8", "backslashreplace")


# Array type codes of packed columns by bytes of a cell: unsigned integers, and a double for 8.
_TYPE_CODES = {1: "B", 2: "H", 4: "I", 8: "d"}


def _pack_buffers(document: Document) -> Document:
    """Return a document with packed columns in place of the rows of live buffers.

    Rows are most of a large page. A browser reads packed columns in a fraction of the time, and
    only of the process that the page shows.
    """
    live = document["live"]
    rows = live["rows"]
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else ((),) * len(COLUMNS)
    packed = {name: _pack(column) for name, column in zip(COLUMNS, columns, strict=True)}
    return {**document, "live": {"count": len(rows), "more": live["more"], "packed": packed}}


def _pack(column: Sequence[Any]) -> dict[str, Any]:
    """Return a column for the page: cells of `width` bytes in Base64, little-endian.

    A cell is the index of its value in `values`. Where `values` is None, the value is the cell plus
    `start`. With width 0, all rows have the only value.
    """
    values = list(dict.fromkeys(column))
    if len(values) <= 1:
        return {"width": 0, "values": values}
    if len(values) > 0x10000 and all(isinstance(value, (int, float)) for value in values):
        start, end = min(values), max(values)
        if end - start < 2**32 and all(isinstance(value, int) for value in values):
            return {"start": start, **_cells(4, [value - start for value in column])}
        return {"start": 0, **_cells(8, column)}
    index = {value: i for i, value in enumerate(values)}
    width = 1 if len(values) <= 0x100 else 2 if len(values) <= 0x10000 else 4
    return {**_cells(width, [index[value] for value in column]), "values": values}


def _cells(width: int, numbers: Sequence[float]) -> dict[str, Any]:
    cells: array[Any] = array(_TYPE_CODES[width], numbers)
    if sys.byteorder == "big":
        cells.byteswap()
    return {"width": width, "values": None, "cells": base64.b64encode(cells).decode("ascii")}


def as_script(value: object) -> str:
    """Return `value` as JSON that can stand inside a script element.

    The characters <, > and & become Unicode escapes, so no text in `value` can end the element.
    """
    text = json.dumps(value, separators=(",", ":"))  # ASCII only
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _read_chart_library() -> str:
    """Return the script of uPlot with its licence, as the licence requires of copies."""
    licence = _read_asset("vendor/LICENSE")
    return f"/*!\n{licence}*/\n{_read_asset('vendor/uPlot.iife.min.js')}"


def _join_script() -> str:
    """Return the script of the page: all parts in one strict function, which hides their names."""
    parts = "\n".join(_read_asset(f"page_script/{name}.js") for name in _SCRIPT_PARTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _read_asset(name: str) -> str:
    """Return the text of a file, from its path relative to the folder of this module."""
    return (resources.files("memrt") / "_profile" / name).read_text(encoding="utf-8")
