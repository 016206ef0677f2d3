"""Where the parts of the package lie, for compiling against it."""

from __future__ import annotations

import os

from memrt import _memrt

_INCLUDE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "include")


def get_include() -> str:
    """The folder to put on a compiler's include path, for ``#include <memrt/memrt.h>``."""
    return _INCLUDE


def get_library() -> str:
    """The file of the libmemrt that is loaded in this process, to link against."""
    return _memrt.library_path()
