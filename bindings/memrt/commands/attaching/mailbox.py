"""Exchange a request and an answer with another process by files in a folder of its user.

The process takes the request by renaming the file. A request that was withdrawn before has no
effect, even if the process runs the injected code later.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memrt.commands.attaching.target import Target
from memrt.commands.output.errors import CommandError

REQUEST, TAKEN, ANSWER, RECORDING = "request", "taken", "answer", "recording"
SCRIPT = "script.py"
_PERIOD = 0.02


class Mailbox:
    """Folder with mode 0700 that belongs to the user of a process.

    Root works on the files with the rights of that user, who controls the folder.
    """

    def __init__(self, target: Target, request: dict[str, Any]) -> None:
        """Create the folder with the request.

        Raises
        ------
        CommandError
            The folder cannot be created.
        """
        self._target = target
        try:
            with _rights_of(target):
                folder = tempfile.mkdtemp("", f"attach-{target.pid}-", _user_folder(target))
                self.folder = Path(folder)
                self.add(REQUEST, json.dumps(request))
        except OSError as error:
            raise CommandError(
                f"cannot exchange files with process {target.pid}: {error.strerror}"
            ) from None

    def add(self, name: str, text: str) -> Path:
        """Write a file, and return its path."""
        path = self.folder / name
        with _rights_of(self._target):
            path.write_bytes(text.encode())
        return path

    def withdraw(self) -> bool:
        """Withdraw the request. Return false if the process has taken the request."""
        try:
            with _rights_of(self._target):
                (self.folder / REQUEST).rename(self.folder / "withdrawn")
        except OSError:
            return False
        return True

    def wait(self, name: str, seconds: float) -> bytes | None:
        """Return the contents of a file from the process, or None after `seconds`.

        Raises
        ------
        CommandError
            The process has ended without the file.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            runs = self._target.runs
            with _rights_of(self._target):
                found = self._read(name)
            if found is not None:
                return found
            if not runs:
                raise CommandError(f"process {self._target.pid} has ended")
            time.sleep(_PERIOD)
        return None

    def _read(self, name: str) -> bytes | None:
        """Return the contents of a regular file of the user of the process; None without a file."""
        try:
            descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            if stat.S_ISREG(about.st_mode) and about.st_uid == self._target.user:
                return file.read()
        return None

    def remove(self) -> None:
        """Remove the folder."""
        with _rights_of(self._target):
            shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def _rights_of(target: Target) -> Iterator[None]:
    """Give root the rights of the user of the process, and no rights of root.

    Imports can fail meanwhile, because the user may not be allowed to read Python's files.
    """
    if target.user == os.geteuid():
        yield
        return
    groups, group, user = os.getgroups(), os.getegid(), os.geteuid()
    os.setgroups([])
    os.setegid(target.group)
    os.seteuid(target.user)
    try:
        yield
    finally:
        os.seteuid(user)
        os.setegid(group)
        os.setgroups(groups)


def _user_folder(target: Target) -> str:
    """Return the folder of the user's statistics pages, created if missing."""
    folder = f"/dev/shm/memrt-{target.user}"
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    about = os.lstat(folder)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != target.user or about.st_mode & 0o077:
        raise CommandError(f"{folder} must be a folder of user {target.user}, with mode 0700")
    return folder
