"""Locate the headers and the library of the package, for compiling against memrt."""

from __future__ import annotations

import os

from memrt import _memrt
from memrt._support.public import public

# CMake installs the extension, the headers and the libraries into one folder. In an editable
# install, the Python files are in another folder.
_PREFIX = os.path.dirname(os.path.realpath(_memrt.__file__))


@public("memrt")
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
    return os.path.join(_PREFIX, "include")


@public("memrt")
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


@public("memrt")
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
    return os.path.join(_PREFIX, "lib", "cmake", "memrt")


def get_pkgconfig_dir() -> str:
    """Return the folder of memrt.pc and memrt-nrt.pc, for ``PKG_CONFIG_PATH``."""
    return os.path.join(_PREFIX, "lib", "pkgconfig")
