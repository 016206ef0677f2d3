"""Render a recording as an HTML page: a single file, without network access or other files."""

from __future__ import annotations

import json
import re
from importlib import resources

from memrt._profile.recording import Document
from memrt._support.extras import expect, needed

_WHY = "a page"


def expect_packages() -> None:
    """Raise MissingPackageError if jinja2 or plotly is not installed."""
    expect("jinja2", _WHY)
    expect("plotly", _WHY)


def render(documents: list[Document]) -> bytes:
    """Return the HTML page of a recording, encoded as UTF-8."""
    jinja2, plotly = needed("jinja2", _WHY), needed("plotly.offline", _WHY)
    template = jinja2.Environment(autoescape=True).from_string(_file("page.html"))
    text: str = template.render(
        title=" ".join(documents[0]["program"]),
        version=documents[0]["memrt"],
        style=jinja2.utils.markupsafe.Markup(_file("page.css")),
        data=jinja2.utils.markupsafe.Markup(as_script(documents)),
        charts=jinja2.utils.markupsafe.Markup(_closed(plotly.get_plotlyjs())),
        script=jinja2.utils.markupsafe.Markup(_file("page.js")),
    )
    return text.encode("utf-8", "backslashreplace")


def as_script(value: object) -> str:
    """Return `value` as JSON, escaped for a script element, for any text in `value`."""
    text = json.dumps(value, separators=(",", ":"))  # ASCII only
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _closed(script: str) -> str:
    """Return JavaScript code with each ``</script`` escaped, so that no text ends the element."""
    return re.sub(r"</(?=script)", r"<\\/", script, flags=re.IGNORECASE)


def _file(name: str) -> str:
    return (resources.files("memrt") / "_profile" / name).read_text(encoding="utf-8")
