"""Record the child processes of a recorded process, and collect the recordings."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from memrt._profile.member import VARIABLE, Member
from memrt._profile.recording import Document, RecordingError, loads


class Family:
    """Child processes of this process, recorded whether forked or started as new interpreters.

    Parameters
    ----------
    options : dict[str, Any]
        Recording options: tracked, tracking, alignment, name, limit, settings.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._folder = ""

    def follow(self) -> None:
        """Record children that start from now on.

        Creates a temporary folder for the recordings. Sets the environment for new interpreters.
        """
        self._folder = tempfile.mkdtemp(prefix="memrt-")
        os.environ[VARIABLE] = json.dumps({**self._options, "folder": self._folder})
        site = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_site")
        paths = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = f"{site}{os.pathsep}{paths}" if paths else site
        Member(self._folder, self._options["settings"], self._options["tracked"]).follow_forks()

    def collect(self) -> tuple[list[Document], str | None]:
        """Return the recordings of the children, ordered by start time, and an optional note.

        Children without allocations are left out. The note counts the children that recorded
        nothing. Removes the folder.
        """
        documents: list[Document] = []
        silent = 0
        # The rename hides the folder from children that end later than their parent. Without the
        # rename, a child could write into the folder while rmtree removes it.
        ended = f"{self._folder}.ended"
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._folder, ended)
        for path in Path(ended).glob("*-*"):
            if path.suffix != ".new":
                try:
                    documents += loads(path.read_bytes())
                except (OSError, RecordingError):
                    silent += 1
        shutil.rmtree(ended, ignore_errors=True)
        made = [each for each in documents if _allocations(each)]
        made.sort(key=lambda each: float(each["started"]))
        note = f"{silent:,} of the child processes wrote no recording."
        return made, note if silent else None


def _allocations(document: Document) -> int:
    return next((number for name, _, number in document["stats"] if name == "alloc"), 0)
