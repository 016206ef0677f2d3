"""Check and import optional packages of the extra 'report', needed by some commands only."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from memrt._support.import_path import without_program


class MissingPackageError(ImportError):
    """Missing optional package; the message names the package and the extra to install."""


def expect(name: str, why: str) -> None:
    """Check that a package of the extra 'report' is installed, without importing the package.

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
    what_to_do = "pip install 'memrt[report]'"
    return MissingPackageError(
        f"{why} needs the missing package {package}: {what_to_do}", name=package
    )
