"""Import finder that loads memrt in place of Numba's runtime module.

This file imports only the standard library. Child processes load the file at start-up, and an
import of memrt and NumPy would slow down programs that never use Numba. Child processes load the
file of the parent's memrt, while the child's Python may have another version of memrt. The two
versions share only the name and the arguments of :func:`spec_here`.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from types import ModuleType

TARGET = "numba.core.runtime._nrt_python"


class Finder:
    """Meta-path finder for one module, whose code is in the memrt extension module."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != TARGET or not _has_memrt():
            return None
        spec: ModuleSpec | None = importlib.import_module("memrt.numba._finder").spec_here()
        return spec


def spec_here() -> ModuleSpec | None:
    """Return the spec of the module in this process's memrt; None keeps Numba's own runtime.

    Raises
    ------
    ImportError
        Numba differs in an interface that memrt relies on.
    """
    importlib.import_module("memrt.numba._contract").verify()
    extension = str(importlib.import_module("memrt._memrt").__file__)
    return spec_from_file_location(TARGET, extension, loader=_Loader(TARGET, extension))


class _Loader(ExtensionFileLoader):
    """Loader of the module. Connects the threads of compiled code after the load."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        importlib.import_module("memrt.numba._threads").connect(module)


def _has_memrt() -> bool:
    """Return False in a child process from another environment, which keeps Numba's own runtime."""
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
