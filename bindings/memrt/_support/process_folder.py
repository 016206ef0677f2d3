"""Temporary folders with the files of a process and its children."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path

_NAME = re.compile(r"memrt-(\d+)-(\d+)-(\d+)-.*")


def make_folder() -> str:
    """Create a temporary folder of this process, with mode 0700, and return the path.

    Folders of processes that were killed are removed first. The name holds the process id, the
    start time, and the number of the process-id namespace.
    """
    _sweep(Path(tempfile.gettempdir()))
    pid = os.getpid()
    return tempfile.mkdtemp(prefix=f"memrt-{_namespace()}-{pid}-{start_time(pid)}-")


def remove_folder(folder: str) -> Path:
    """Rename a folder, for a removal by shutil.rmtree, and return the new path.

    The rename hides the folder from children that end later than their parent. Without the rename,
    a child could write into the folder during the removal.
    """
    ended = f"{folder}.ended"
    with contextlib.suppress(FileNotFoundError):
        os.rename(folder, ended)
    return Path(ended)


def start_time(pid: int) -> int:
    """Return the start of a process in clock ticks since boot; -1: zombie, or no process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return -1
    fields = text.rpartition(")")[2].split()
    return -1 if fields[0] in "ZX" else int(fields[19])


def _namespace() -> int:
    """Return the number of the process-id namespace: containers may share a temporary folder."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _sweep(parent: Path) -> None:
    here = str(_namespace())
    with contextlib.suppress(OSError):
        for entry in os.scandir(parent):
            numbers = _NAME.fullmatch(entry.name)
            if (
                numbers is not None
                and numbers[1] == here
                and start_time(int(numbers[2])) != int(numbers[3])
                and _is_own_folder(entry)
            ):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    about = entry.stat(follow_symlinks=False)
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
