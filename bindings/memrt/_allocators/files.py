"""Memory in files: the allocator of ``memrt.Policy(file=...)`` and ``memrt.Policy(memfd=True)``."""

from __future__ import annotations

import os

from memrt import _memrt


def file_capsule(folder: str | os.PathLike[str] | None, memfd: bool) -> object:
    """Return a capsule with an allocator of files in a folder, or of files in memory.

    Raises
    ------
    ValueError
        Both kinds are chosen.
    TypeError
        `folder` is not a path.
    OSError
        No file can be made in the folder.
    MemoryError
        The allocation of the allocator failed.
    """
    if folder is None:
        return _memrt.allocator_file(None)
    if memfd:
        raise ValueError("memfd must be False for a policy with a file")
    path = os.fspath(folder)
    if not isinstance(path, str):
        raise TypeError(f"file must be a text or a path, got {type(path).__name__}")
    try:
        return _memrt.allocator_file(path)
    except ValueError:
        os.close(os.open(path, os.O_TMPFILE | os.O_RDWR, 0o600))  # raises the reason of the system
        raise
