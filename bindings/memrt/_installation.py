"""Where the parts of the package lie, for compiling against it."""

from __future__ import annotations

from pathlib import Path

from memrt import _memrt


def get_include() -> str:
    """The folder to put on a compiler's include path, for ``#include <memrt/memrt.h>``."""
    return str(Path(__file__).resolve().parent / "include")


def get_library() -> str:
    """The file of the libmemrt that is loaded in this process, to link against."""
    return _memrt.library_path()
