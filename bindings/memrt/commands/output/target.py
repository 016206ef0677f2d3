"""Write output files at the end of a program: checked at the start, replaced atomically."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from memrt.commands.output.errors import CommandError


class Target:
    """An output file that keeps its old contents until write() has written the complete file.

    The path is resolved at the start, so the program may change the working directory.
    """

    def __init__(self, path: str, force: bool) -> None:
        """Check that the file can be written.

        Parameters
        ----------
        force : bool
            Replace an existing file.

        Raises
        ------
        CommandError
            If the file cannot be written, or exists and `force` is false.
        """
        self.path = path
        self._target = os.path.realpath(path)
        if os.path.isdir(self._target):
            raise CommandError(f"cannot write {path!r}: the path is a folder")
        if os.path.lexists(self._target):
            if not os.path.isfile(self._target):
                raise CommandError(f"cannot write {path!r}: the path is not a regular file")
            if not force:
                raise CommandError(f"{path!r} exists already: name another file, or add --force")
        self._try()

    @property
    def real_path(self) -> str:
        """Return the absolute path without links."""
        return self._target

    def _try(self) -> None:
        try:
            with self._aside() as (_, beside):
                os.unlink(beside)
        except OSError as error:
            raise CommandError(f"cannot write {self.path!r}: {error.strerror}") from None

    def write(self, write: Callable[[BinaryIO], object]) -> None:
        """Call `write` with a new file, then replace the old file with the new file.

        Failure: raises OSError, or the exception of `write`, and the old file stays unchanged.
        """
        with self.replaced() as file:
            write(file)

    @contextlib.contextmanager
    def replaced(self) -> Iterator[BinaryIO]:
        """Provide a new file that replaces the old file after the block."""
        with self._aside() as (file, beside):
            yield file
            file.flush()
            os.replace(beside, self._target)

    @contextlib.contextmanager
    def _aside(self) -> Iterator[tuple[BinaryIO, str]]:
        """Provide a new file in the same folder, and its path. Remove the file on failure."""
        folder = os.path.dirname(self._target)
        beside = os.path.join(folder, f".memrt-{os.urandom(8).hex()}")
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        file = os.fdopen(os.open(beside, flags, 0o666), "wb")
        try:
            with file:
                yield file, beside
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise


def expect_distinct(targets: Iterable[Target]) -> None:
    """Raise CommandError if two targets are one file."""
    paths = [target.real_path for target in targets]
    if len(set(paths)) < len(paths):
        raise CommandError("two output files have the same path: choose different paths")


@contextlib.contextmanager
def new_file(path: str, force: bool, source: str) -> Iterator[BinaryIO]:
    """Provide a file to write, made from the file `source`.

    Raises
    ------
    CommandError
        If `path` is the source, or if writing fails.
    """
    if os.path.realpath(path) == os.path.realpath(source):
        raise CommandError(f"{path!r} is the input itself: name another output file")
    target = Target(path, force)
    try:
        with target.replaced() as file:
            yield file
    except OSError as error:
        raise CommandError(f"cannot write {path!r}: {error.strerror}") from None


def written(target: Target, write: Callable[[BinaryIO], object]) -> str | None:
    """Write a file. Return None, or one sentence with the reason of the failure."""
    try:
        target.write(write)
    except OSError as error:
        return f"cannot write {target.path!r}: {error.strerror}"
    except KeyboardInterrupt:
        return f"cannot write {target.path!r}: interrupted by Ctrl-C"
    except Exception as error:  # from a rendering package: other files must still be written
        return f"cannot write {target.path!r}: {type(error).__name__}: {_first_line(error)}"
    return None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
