"""Check and import packages of some commands: rich, and packages of the extra 'report'."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from memrt._support.import_path import without_program

_REQUIRED = frozenset({"rich"})
"""Packages that memrt requires. An installation by ``pip --no-deps`` lacks these."""


class MissingPackageError(ImportError):
    """Missing package; the message names the package and the pip command."""


def expect(name: str, why: str) -> None:
    """Check that a package is installed, without importing the package.

    A program that starts later does not see the package in ``sys.modules``.

    Parameters
    ----------
    why : str
        The feature that needs the package, as the start of a sentence.

    Raises
    ------
    MissingPackageError
        The package is not installed.
    """
    if importlib.util.find_spec(name) is None:
        raise _missing(name, why)


def needed(name: str, why: str) -> ModuleType:
    """Import and return a module of the extra 'report'.

    Parameters
    ----------
    why : str
        The feature that needs the module, as the start of a sentence.

    Raises
    ------
    MissingPackageError
        The module, or a package imported by the module, is missing.
    """
    try:
        with without_program():
            return importlib.import_module(name)
    except ImportError as error:
        raise _missing((error.name or name).partition(".")[0], why) from None


def _missing(package: str, why: str) -> MissingPackageError:
    command = f"pip install {package}" if package in _REQUIRED else "pip install 'memrt[report]'"
    return MissingPackageError(
        f"{why} needs the missing package {package}: {command}", name=package
    )
