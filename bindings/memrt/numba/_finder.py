"""The finder that puts memrt in the place of Numba's runtime module.

It stands alone: child processes load this file at start-up, where importing memrt and NumPy would
be paid for by programs that never use Numba. The file is that of the parent's memrt, and a child's
Python may have another version: all that the two share is the name and the arguments of spec_here.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import find_spec, spec_from_file_location

TARGET = "numba.core.runtime._nrt_python"


class Finder:
    """A meta-path finder for one module, whose code lies in memrt's own extension."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != TARGET or not _has_memrt():
            return None
        spec: ModuleSpec | None = importlib.import_module("memrt.numba._finder").spec_here()
        return spec


def spec_here() -> ModuleSpec | None:
    """Of the module in the memrt of this process; None leaves Numba its own."""
    importlib.import_module("memrt.numba._contract").verify()
    extension = str(importlib.import_module("memrt._memrt").__file__)
    return spec_from_file_location(TARGET, extension, loader=ExtensionFileLoader(TARGET, extension))


def _has_memrt() -> bool:
    """False in a child process whose Python is of another environment: it keeps Numba's runtime."""
    try:
        return find_spec("memrt.numba") is not None
    except ModuleNotFoundError:
        return False


def is_in_place() -> bool:
    return any(getattr(finder, "__qualname__", "") == "Finder"
               and getattr(finder, "__module__", "").endswith("numba._finder")
               for finder in sys.meta_path)  # fmt: skip


def put_in_place() -> None:
    if not is_in_place():
        sys.meta_path.insert(0, Finder)
