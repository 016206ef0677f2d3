"""Locate the headers and the library of the package, for compiling against memrt."""

from __future__ import annotations

import os
from typing import Any

from memrt import _memrt

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def get_include() -> str:
    """Return the folder of the C headers, for a compiler's include path.

    Returns
    -------
    str
        Path of the folder with ``memrt/memrt.h``.

    Examples
    --------
    >>> import memrt, os
    >>> os.path.isfile(os.path.join(memrt.get_include(), "memrt", "memrt.h"))
    True
    """
    return os.path.join(_PACKAGE, "include")


def get_library() -> str:
    """Return the path of the libmemrt that this process has loaded, to link against.

    Returns
    -------
    str
        Path of the shared library.

    Examples
    --------
    >>> import memrt, os
    >>> os.path.basename(memrt.get_library())
    'libmemrt.so.1'
    """
    return _memrt.library_path()


def get_cmake_dir() -> str:
    """Return the folder of memrtConfig.cmake, for ``find_package(memrt)`` with ``memrt_DIR``.

    Returns
    -------
    str
        Path of the folder.

    Examples
    --------
    >>> import memrt, os
    >>> os.path.isfile(os.path.join(memrt.get_cmake_dir(), "memrtConfig.cmake"))
    True
    """
    return os.path.join(_PACKAGE, "lib", "cmake", "memrt")


def make_public(module: dict[str, Any]) -> None:
    """Set ``__module__`` of the functions and classes in ``__all__`` to the public module.

    Tracebacks, ``help`` and pickles then show the name that users import.
    """
    for name in module["__all__"]:
        thing = module[name]
        if getattr(thing, "__module__", "").startswith(("memrt._", "memrt.cuda._")):
            try:
                thing.__module__ = module["__name__"]
            except (AttributeError, TypeError):  # functions and types of the extension
                continue
