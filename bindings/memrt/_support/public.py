"""Public names: the module that users see, and the import at the first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

_T = TypeVar("_T")


def public(module: str) -> Callable[[_T], _T]:
    """Publish a function or class under the name that users import.

    ``__module__``, which tracebacks, ``help`` and pickles show, becomes the public module. The
    module gets the object, so that annotations in texts find the other types there.
    """

    def publish(thing: _T) -> _T:
        thing.__module__ = module
        setattr(sys.modules[module], thing.__name__, thing)  # type: ignore[attr-defined]
        return thing

    return publish


def import_at_first_use(package: str, origins: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function ``__getattr__`` of a public module that imports names at their first use.

    Most programs use few names, and save the time and memory of most imports. At the end of the
    interpreter, nothing can be imported: names that were not used before are missing.

    Parameters
    ----------
    package : str
        Name of the public module.
    origins : Mapping[str, str]
        For each module with the names, the names, separated by spaces. For `package` itself, the
        names of its modules.
    """
    homes = {name: module for module, names in origins.items() for name in names.split()}
    variables = sys.modules[package]

    def resolve(name: str) -> Any:
        if name not in homes:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=variables)
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(homes[name]), name)
        setattr(variables, name, value)
        return value

    return resolve
