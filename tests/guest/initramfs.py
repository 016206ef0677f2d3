"""Archives in the format of an initial file system of Linux: cpio, "newc", uncompressed.

The kernel unpacks several archives in sequence, so a second archive can add files to a first one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

MAGIC = b"070701"
END = "TRAILER!!!"
ALIGNMENT = 4
BLOCK = 512
CONSOLE = os.makedev(5, 1)


def padding(length: int, alignment: int = ALIGNMENT) -> bytes:
    return bytes(-length % alignment)


class Archive:
    """Writer of one archive. Every file belongs to root."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.entries = 0

    def add(
        self, name: str, mode: int, content: bytes = b"", mtime: int = 0, rdev: int = 0
    ) -> None:
        """Add a file, a folder, a device, or a link whose content is the target."""
        self.entries += 1
        path = name.encode() + b"\0"
        numbers = (
            *(self.entries, mode, 0, 0, 1, mtime, len(content), 0, 0),
            *(os.major(rdev), os.minor(rdev), len(path), 0),
        )
        head = MAGIC + b"".join(b"%08X" % number for number in numbers) + path
        self.file.write(head + padding(len(head)) + content + padding(len(content)))

    def add_path(self, name: str, path: Path) -> None:
        """Add a file, a folder or a link of this machine. Ignores devices and sockets."""
        status = path.lstat()
        content = b""
        if stat.S_ISLNK(status.st_mode):
            content = os.readlink(path).encode()
        elif stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        elif not stat.S_ISDIR(status.st_mode):
            return
        self.add(name, status.st_mode, content, int(status.st_mtime))

    def add_folders(self, names: Iterable[str]) -> None:
        """Add the folders above the given files, each once, outer folders first."""
        parents = {str(parent) for name in names for parent in Path(name).parents}
        for parent in sorted(parents - {"."}):
            self.add(parent, stat.S_IFDIR | 0o755)

    def end(self) -> None:
        """Write the end mark, and fill the last block."""
        self.add(END, 0)
        self.file.write(padding(self.file.tell(), BLOCK))
