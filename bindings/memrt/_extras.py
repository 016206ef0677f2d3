"""Packages that only some commands need, and which extra brings them."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType


class MissingPackageError(ImportError):
    """One sentence that says what is missing and what to install."""


def expect(name: str, why: str) -> None:
    """MissingPackageError when a package of the extra 'report' is not there; says what to install.

    It is not imported: a program that is to run yet need not see it.

    :param why: what it is needed for, as the start of a sentence.
    """
    if importlib.util.find_spec(name) is None:
        raise _missing(name, why)


def needed(name: str, why: str) -> ModuleType:
    """A module of the extra 'report'; likewise."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise _missing((error.name or name).partition(".")[0], why) from None


def _missing(package: str, why: str) -> MissingPackageError:
    what_to_do = "which is not installed: pip install 'memrt[report]'"
    return MissingPackageError(f"{why} needs {package}, {what_to_do}", name=package)
