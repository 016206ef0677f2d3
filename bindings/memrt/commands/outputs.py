"""What is made of recordings: a page, a picture, a file to keep."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import BinaryIO

from memrt._extras import MissingPackageError
from memrt._report import page, picture
from memrt._report.recording import Document, dumps
from memrt.commands.errors import CommandError
from memrt.commands.target import Target, written

_Writer = Callable[[list[Document], BinaryIO], object]


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Those that all commands share which make pages and pictures."""
    parser.add_argument("--plot", metavar="PNG", help="draw the timeline into PNG")
    parser.add_argument("--force", action="store_true", help="replace files that are there")


class Outputs:
    """The files that were asked for, which are known to be writeable."""

    def __init__(
        self, *, html: str | None, plot: str | None, record: str | None, force: bool
    ) -> None:
        """CommandError when one cannot be written, or a package for it is missing."""
        self._files: list[tuple[str, Target, _Writer]] = []
        for path, what, expect, write in (
            (record, "recording", _nothing, _write_recording),
            (html, "page", page.expect_packages, _write_page),
            (plot, "picture", picture.expect_packages, _write_picture),
        ):
            if path is not None:
                _expect(expect)
                self._files.append((what, Target(path, force), write))
        targets = [os.path.realpath(target.path) for _, target, _ in self._files]
        if len(set(targets)) < len(targets):
            raise CommandError("two files to write have one name: give each its own")

    def __bool__(self) -> bool:
        return bool(self._files)

    def write(self, documents: list[Document]) -> list[str]:
        """Write all of them; a sentence for each that could not be."""
        said = [
            written(target, lambda file, write=write: write(documents, file))  # type: ignore[misc]
            for _, target, write in self._files
        ]
        return [failure for failure in said if failure is not None]

    def said(self) -> list[str]:
        """What was written where."""
        return [f"memrt: {what} in {target.path}" for what, target, _ in self._files]


def _nothing() -> None:
    """What a recording needs beyond NumPy."""


def _expect(packages: Callable[[], None]) -> None:
    try:
        packages()
    except MissingPackageError as error:
        raise CommandError(str(error)) from None


def _write_recording(documents: list[Document], file: BinaryIO) -> None:
    file.write(dumps(documents).encode("ascii"))


def _write_page(documents: list[Document], file: BinaryIO) -> None:
    file.write(page.render(documents))


def _write_picture(documents: list[Document], file: BinaryIO) -> None:
    picture.draw(documents[0], file)
