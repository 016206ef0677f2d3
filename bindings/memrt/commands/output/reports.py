"""Write the outputs of recordings: a page, a picture, a recording file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import BinaryIO

from memrt._profile import page, picture
from memrt._profile.recording import Document, dumps
from memrt._support.extras import MissingPackageError
from memrt.commands.output.errors import CommandError
from memrt.commands.output.target import Target, expect_distinct, written

_Writer = Callable[[list[Document], BinaryIO], object]


class Outputs:
    """Output files requested on the command line, checked to be writable."""

    def __init__(
        self,
        *,
        html: str | None,
        plot: str | None,
        record: str | None,
        force: bool,
        others: Iterable[Target] = (),
    ) -> None:
        """Check all files and packages before the program runs.

        The targets in `others` are written elsewhere, and take part in the check for equal paths.

        Raises
        ------
        CommandError
            If a file cannot be written, a required package is missing, or two outputs are the same
            file.
        """
        self._files: list[tuple[str, Target, _Writer]] = []
        for path, what, expect, write in (
            (record, "recording", _nothing, _write_recording),
            (html, "page", page.expect_packages, _write_page),
            (plot, "picture", picture.expect_packages, _write_picture),
        ):
            if path is not None:
                _expect(expect)
                self._files.append((what, Target(path, force), write))
        expect_distinct([*others, *(target for _, target, _ in self._files)])

    def __len__(self) -> int:
        return len(self._files)

    def write(self, documents: list[Document]) -> list[str]:
        """Write all files. Return a sentence for each file that could not be written."""
        said = [
            written(target, lambda file, write=write: write(documents, file))  # type: ignore[misc]
            for _, target, write in self._files
        ]
        return [failure for failure in said if failure is not None]

    def said(self) -> list[str]:
        """Return a sentence with kind and path for each file."""
        return [f"memrt: {what} in {target.path}" for what, target, _ in self._files]


def _nothing() -> None:
    """Check nothing: a recording file needs no package beyond NumPy."""


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
