"""A family: all processes below one that is recorded, and what they recorded."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from memrt._report.member import VARIABLE, Member
from memrt._report.recording import Document, RecordingError, loads


class Family:
    """Has the children of this process recorded, whether forked or started as Pythons of their own.

    :param asked: how: tracked, tracking, alignment, name, settings.
    """

    def __init__(self, asked: dict[str, Any]) -> None:
        self._asked = asked
        self._folder = ""

    def follow(self) -> None:
        """Follow children from now on."""
        self._folder = tempfile.mkdtemp(prefix="memrt-")
        os.environ[VARIABLE] = json.dumps({**self._asked, "folder": self._folder})
        site = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_site")
        paths = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = f"{site}{os.pathsep}{paths}" if paths else site
        Member(self._folder, self._asked["settings"], self._asked["tracked"]).follow_forks()

    def collect(self) -> tuple[list[Document], str | None]:
        """What children recorded, in the order in which they began; how many recorded nothing, in
        words. Those that made no memory are left out. The folder is gone after this."""
        documents: list[Document] = []
        silent = 0
        for path in Path(self._folder).glob("*-*"):
            if path.suffix != ".new":
                try:
                    documents += loads(path.read_bytes())
                except (OSError, RecordingError):
                    silent += 1
        shutil.rmtree(self._folder, ignore_errors=True)
        made = [each for each in documents if _births(each)]
        made.sort(key=lambda each: float(each["started"]))
        note = f"{silent:,} of the child processes left before anything was recorded."
        return made, note if silent else None


def _births(document: Document) -> int:
    return next((number for name, _, number in document["stats"] if name == "alloc"), 0)
