"""Render a recording as an HTML page: a single file that loads nothing from network or disk.

Style, data and scripts are inline. No text of the recorded program can become markup or end a
script element: the template escapes the title, and as_script() escapes the data.
"""

from __future__ import annotations

import json
from importlib import resources

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
        data=jinja2.utils.markupsafe.Markup(as_script(documents)),
        charts=jinja2.utils.markupsafe.Markup(_read_chart_library()),
        script=jinja2.utils.markupsafe.Markup(_join_script()),
    )
    return text.encode("utf-8", "backslashreplace")


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
