"""Record the child processes of a recorded process, and collect the recordings."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

from memrt._profile.member import VARIABLE, Member, write_document
from memrt._profile.recording import Document, RecordingError, loads
from memrt._support.child_site import add_site
from memrt._support.process_folder import make_folder, remove_folder


class Family:
    """Child processes of this process, recorded whether forked or started as new interpreters.

    Parameters
    ----------
    options : dict[str, Any]
        Recording options: tracked, tracking, alignment, name, limit, all_frames, settings, outputs.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._folder = ""

    def follow(self) -> None:
        """Record children that start from now on.

        Creates a temporary folder for the recordings. Sets the environment for new interpreters,
        and for a program that replaces this program by ``os.exec*``.
        """
        self._folder = folder_before_exec() or make_folder()
        self._own = os.path.join(self._folder, f"{os.getpid()}-own{secrets.token_hex(4)}")
        os.environ[VARIABLE] = json.dumps(
            {**self._options, "folder": self._folder, "main": os.getpid()}
        )
        add_site()
        Member(self._folder, self._options["settings"], self._options["tracked"]).follow_forks()

    def save(self, document: Document) -> None:
        """Store the recording of this process so far, in case the process is killed."""
        write_document(self._own, document)

    def keep(self, document: Document) -> list[Document]:
        """Store the recording of this process for the program after ``os.exec*``.

        Returns all recordings so far.
        """
        self._forget_own()  # os.execvp tries one folder after another
        others, _ = load_documents(Path(self._folder))
        self.save(document)
        return [document, *others]

    def _forget_own(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._own)

    def collect(self) -> tuple[list[Document], str | None]:
        """Return the recordings of the children, ordered by start time, and an optional note.

        Children without allocations are left out. The note counts the children that recorded
        nothing. Removes the folder.
        """
        self._forget_own()  # the complete recording replaces the saved one
        return collect_folder(self._folder)


def folder_before_exec() -> str | None:
    """Return the folder of this process before ``os.exec*``, or None."""
    try:
        options: dict[str, Any] = json.loads(os.environ[VARIABLE])
        folder = str(options["folder"])
    except (KeyError, ValueError):
        return None
    return folder if options.get("main") == os.getpid() and os.path.isdir(folder) else None


def collect_folder(folder: str, main: int = 0) -> tuple[list[Document], str | None]:
    """Return the recordings of a folder by start time, and an optional note. Remove the folder.

    The process with the id `main` is included without allocations, too.
    """
    ended = remove_folder(folder)
    documents, silent = load_documents(ended, main)
    shutil.rmtree(ended, ignore_errors=True)
    note = f"{silent:,} of the child processes wrote no recording."
    return documents, note if silent else None


def load_documents(folder: Path, main: int = 0) -> tuple[list[Document], int]:
    """Return the recordings with allocations by start time, and the number of processes without."""
    documents: list[Document] = []
    silent = 0
    for path in folder.glob("*-*"):
        if path.suffix != ".new":
            try:
                documents += loads(path.read_bytes())
            except (OSError, RecordingError):
                silent += 1
    made = [each for each in documents if _allocations(each) or each["pid"] == main]
    made.sort(key=lambda each: float(each["started"]))
    return made, silent


def _allocations(document: Document) -> int:
    return next((number for name, _, number in document["stats"] if name == "alloc"), 0)
