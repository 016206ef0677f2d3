"""Write the pages of the Python reference: one per public module, and one of the commands."""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import memrt
from memrt.commands import parser

GROUP = re.compile(r"^(\w[\w ]*): ([\w, \n]+)\.$", re.MULTILINE)
INNER = ("numba.refprune",)  # public modules inside packages
INDEX = """\
Python reference
================

.. toctree::
   :maxdepth: 1

"""


def modules() -> list[ModuleType]:
    """Return the package and its public modules."""
    names = [name for _, name, _ in pkgutil.iter_modules(memrt.__path__) if name[0] != "_"]
    found = [importlib.import_module(f"memrt.{name}") for name in sorted([*names, *INNER])]
    return [memrt, *(module for module in found if hasattr(module, "__all__"))]


def names(module: ModuleType) -> list[str]:
    """Return the public names of a module, without modules."""
    return [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]


def groups(module: ModuleType) -> dict[str, list[str]]:
    """Return the public names by heading of the module's docstring. Other names come last."""
    public = names(module)
    listed = {title: re.split(r",\s+", names) for title, names in GROUP.findall(module.__doc__)}
    found = {title: entries for title, entries in listed.items() if set(entries) <= set(public)}
    grouped = {name for entries in found.values() for name in entries}
    rest = [name for name in public if name not in grouped]
    if rest:
        found["Classes and functions" if not found else "More"] = rest
    return found


def directive(module: ModuleType, name: str) -> str:
    thing = getattr(module, name)
    if inspect.isclass(thing):
        options = ["members", "undoc-members"]
        if any(base.__module__.startswith("memrt.") for base in thing.__mro__[1:]):
            options.append("inherited-members")
        return f".. autoclass:: {name}\n" + "".join(f"   :{option}:\n" for option in options)
    return f".. auto{'function' if callable(thing) else 'data'}:: {name}\n"


def heading(title: str, line: str) -> str:
    return f"{title}\n{line * len(title)}\n"


def page(module: ModuleType) -> str:
    """Return the page of a module: an overview by group, then all entries."""
    text = [heading(module.__name__, "="), f".. automodule:: {module.__name__}\n"]
    text.append(f".. currentmodule:: {module.__name__}\n")
    for title, entries in groups(module).items():
        text += [heading(title, "-"), *(directive(module, name) for name in entries)]
    return "\n".join(text)


def commands() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield name and parser of each command."""
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def command_page() -> str:
    """Return the page with the help of all commands."""
    text = [heading("Commands", "=")]
    for name, command in commands():
        help_lines = command.format_help().splitlines()
        text += [f".. _command-{name}:\n", heading(f"python -m memrt {name}", "-")]
        text += [".. code-block:: text\n", *(f"   {line}".rstrip() for line in help_lines), ""]
    return "\n".join(text)


def write(pages: Path) -> None:
    """Write all pages of the Python reference."""
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    stems = []
    for module in modules():
        stems.append(module.__name__)
        (pages / f"{module.__name__}.rst").write_text(page(module), encoding="utf-8")
    (pages / "commands.rst").write_text(command_page(), encoding="utf-8")
    lines = "".join(f"   {stem}\n" for stem in [*stems, "commands"])
    (pages / "index.rst").write_text(INDEX + lines, encoding="utf-8")
