"""Manage the first entry of `sys.path`: removed for memrt's commands, added for a program."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

_added: list[str] = []


def remove_first_path() -> None:
    """Remove the entry that the interpreter added for memrt: the current folder for
    ``python -m memrt``, the folder of the script for ``memrt``.

    Modules of that folder must not shadow modules that memrt imports.
    """
    if _is_safe_path() or not sys.path:
        return
    folders = ["", os.path.dirname(os.path.realpath(sys.argv[0]))]
    with contextlib.suppress(OSError):  # the current folder no longer exists
        folders.append(os.getcwd())
    if sys.path[0] in folders:
        del sys.path[0]


def add_first_path(folder: str) -> None:
    """Add the folder of a program to the front of `sys.path`, as the interpreter does."""
    if not _is_safe_path():
        sys.path.insert(0, folder)
        _added.append(folder)


@contextlib.contextmanager
def without_program() -> Iterator[None]:
    """Keep memrt from importing modules of the program's folder in place of installed packages."""
    hidden = sys.path[:1] if sys.path[:1] == _added else []
    del sys.path[: len(hidden)]
    try:
        yield
    finally:
        sys.path[:0] = hidden


def folder_of_script(path: str) -> str:
    """Return the entry of `sys.path` for a script: its folder, with links resolved.

    For a pipe, such as /dev/fd/3, the last link names no file. The interpreter then resolves only
    one link, and so does this function.
    """
    with contextlib.suppress(OSError):
        return os.path.dirname(os.path.realpath(path, strict=True))
    with contextlib.suppress(OSError):
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return os.path.dirname(path)


def _is_safe_path() -> bool:
    return bool(getattr(sys.flags, "safe_path", sys.flags.isolated))
