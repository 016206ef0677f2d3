"""Files that are to be written at the end: refused at the start, and replaced only when whole."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from typing import BinaryIO

from memrt.commands.errors import CommandError


class Target:
    """A file that is there as it was until write() has written all of it.

    Where the program changes folders, it stays where it was asked for.
    """

    def __init__(self, path: str, force: bool) -> None:
        """CommandError when it cannot be written, or is there and `force` does not say to go on."""
        self.path = path
        self._target = os.path.realpath(path)
        if os.path.isdir(self._target):
            raise CommandError(f"cannot write {path!r}: it is a folder")
        if os.path.lexists(self._target):
            if not os.path.isfile(self._target):
                raise CommandError(f"cannot write {path!r}: it is no ordinary file")
            if not force:
                raise CommandError(f"{path!r} is there already: name another file, or add --force")
        self._try()

    def _try(self) -> None:
        try:
            with self._aside() as (_, beside):
                os.unlink(beside)
        except OSError as error:
            raise CommandError(f"cannot write {self.path!r}: {error.strerror}") from None

    def write(self, write: Callable[[BinaryIO], object]) -> None:
        """Have `write` fill a new file, which then takes the place of the old; else raise OSError
        and leave all as it was."""
        with self._aside() as (file, beside):
            write(file)
            file.flush()
            os.replace(beside, self._target)

    @contextlib.contextmanager
    def _aside(self) -> Iterator[tuple[BinaryIO, str]]:
        """A new file in the same folder, and its path; removed where something fails."""
        folder = os.path.dirname(self._target)
        beside = os.path.join(folder, f".memrt-{secrets.token_hex(8)}")
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        file = os.fdopen(os.open(beside, flags, 0o666), "wb")
        try:
            with file:
                yield file, beside
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise


def written(target: Target, write: Callable[[BinaryIO], object]) -> str | None:
    """Write a file; None, or one sentence that says why it could not be."""
    try:
        target.write(write)
    except OSError as error:
        return f"cannot write {target.path!r}: {error.strerror}"
    except KeyboardInterrupt:
        return f"did not write {target.path!r}: interrupted by Ctrl-C"
    except Exception as error:  # of a package that draws: the other files are to be written
        return f"cannot write {target.path!r}: {type(error).__name__}: {_first_line(error)}"
    return None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
