"""Write the figures of all tests, dumps of failed tests, and the summary for GitHub Actions."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
from typing import Any

import pytest

from memrt._pytest_plugin.summary import Figures, heaviest
from memrt._support.units import human_bytes, plural

FORMAT = "memrt tests"
VERSION = 1
_FILE = "tests.json"
_SUMMARY = "GITHUB_STEP_SUMMARY"


class Report:
    """Folder of --memrt-report: the figures of all tests, and a dump for each leak or growth.

    Processes: the workers of pytest-xdist write dumps, and the main process the figures.
    """

    def __init__(self, folder: str) -> None:
        """Create the folder, unless the folder exists.

        Raises
        ------
        pytest.UsageError
            The folder cannot be created.
        """
        self._folder = os.path.abspath(folder)
        try:
            os.makedirs(self._folder, exist_ok=True)
        except OSError as error:
            text = f"--memrt-report must be a folder, got {folder!r}: {error.strerror}"
            raise pytest.UsageError(text) from None

    def dump(self, test: str) -> str:
        """Replace the dump of a test, and return a line with the path or with the failure."""
        from memrt._profile.dump import dump

        name = re.sub(r"[^\w.-]+", "_", test)[-150:]
        path = os.path.join(self._folder, f"{name}.memrt")
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            dump(path)
        except OSError as error:
            return f"memrt: no recording was written: {error.strerror}"
        return f"recording of the live buffers: {path}"

    def write(self, figures: Figures) -> str:
        """Replace the file of all figures, and return a line with the path or with the failure."""
        rows = [{"test": test, **numbers} for test, numbers in figures.items()]
        content = {"format": FORMAT, "version": VERSION, "tests": rows}
        path = os.path.join(self._folder, _FILE)
        beside = f"{path}.{os.getpid()}"
        try:
            with open(beside, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=1)
            os.replace(beside, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            return f"memrt: no figures were written: {error.strerror}"
        return f"figures of {plural(len(figures), 'test')}: {path}"


def append_step_summary(figures: Figures, top: int) -> str | None:
    """Append a table of the heaviest tests to the summary of a job of GitHub Actions.

    Returns None, or a line with the failure. Elsewhere nothing happens.
    """
    path = os.environ.get(_SUMMARY)
    if not path:
        return None
    lines = [
        "### memrt: the heaviest tests",
        "",
        "| peak | total | blocks | left | test | most from |",
        "|---:|---:|---:|---:|---|---|",
        *(_row(test, numbers) for test, numbers in heaviest(figures, top)),
        "",
        f"{plural(len(figures), 'test')} measured",
        "",
    ]
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write("\n".join(["", *lines]))
    except OSError as error:
        return f"memrt: cannot append to {_SUMMARY}: {error.strerror}"
    return None


def _row(test: str, figures: dict[str, Any]) -> str:
    left = human_bytes(figures["left"]) if "left" in figures else "failed"
    cells = (human_bytes(figures["peak"]), human_bytes(figures["total"]), f"{figures['blocks']:,}")
    line = "" if figures["line"] is None else _code(figures["line"])
    return f"| {' | '.join(cells)} | {left} | {_code(test)} | {line} |"


def _code(text: str) -> str:
    """Return text as code in a cell of a table of Markdown."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return f"<code>{html.escape(printable).replace('|', '&#124;')}</code>"
