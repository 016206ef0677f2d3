"""Memory in files: the allocator of ``memrt.Policy(file=...)`` and ``memrt.Policy(memfd=True)``."""

from __future__ import annotations

import os
import tempfile

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
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:  # with a random name as its file name
        raise OSError(error.errno, os.strerror(error.errno or 0), path) from None
    return _memrt.allocator_file(path)
