"""Decide which calls are the user's own code, and how the places of calls are written.

The user's code is Python code outside of ``site-packages``, the standard library, memrt and NumPy.
Paths are relative to the current folder at the start, or to the project of the script.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy

from memrt import _memrt

_MEMRT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(numpy.__file__)) + os.sep
_INSTALLED = re.compile(r".*/(?:site|dist)-packages/")
_INTERNAL = ("<frozen", "<__array_function__")
_TEST_RUNNERS = tuple(f"{os.sep}{package}{os.sep}" for package in ("_pytest", "pluggy"))
_MARKERS = ("pyproject.toml", ".git", "setup.py")
_CELL = re.compile(r"<ipython-input-(\d+)-\w+>")

_named_cells: dict[str, str] = {}


class Call(Protocol):
    """A call of a stack: see :class:`memrt.types.Frame`."""

    @property
    def file(self) -> str | None: ...
    @property
    def line(self) -> int: ...
    @property
    def is_native(self) -> bool: ...


class LibraryCall(NamedTuple):
    """Line of the user's code that calls a library."""

    file: str | None
    line: int
    library: str | None
    """File of the called function."""


_Call = TypeVar("_Call", bound=Call)


def _current_folder() -> str:
    with contextlib.suppress(OSError):  # the folder was removed
        return os.getcwd()
    return ""


_started_in = _current_folder()


class _Choice:
    """Setting of the process: see show_all_frames()."""

    all_frames = False


def show_all_frames(choice: bool) -> None:
    """Treat all calls as the user's code, and write all paths in full; or return to the default."""
    _Choice.all_frames = choice


def shows_all_frames() -> bool:
    """Return the last argument of show_all_frames()."""
    return _Choice.all_frames


# --- Folders. ---


@cache
def library_folders() -> tuple[str, ...]:
    """Return the folders of the standard library and of installed packages, longest first."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {path for name in names if (path := sysconfig.get_path(name))}
    folders.add(os.path.dirname(sysconfig.__file__))  # virtual environments share one library
    return tuple(sorted((path + os.sep for path in folders), key=len, reverse=True))


@cache
def _script_folder() -> str:
    """Return the folder of the installed commands, such as pytest."""
    return (sysconfig.get_path("scripts") or os.devnull) + os.sep


def project_folders() -> tuple[str, ...]:
    """Return the current folder at the start, and the project folder of the script."""
    folders = [_started_in, _project_of(_folder_of_script())]
    return tuple(dict.fromkeys(path + os.sep for path in folders if path.strip(os.sep)))


def _folder_of_script() -> str:
    """Return the folder of the program; empty for code without a file."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if not isinstance(file, str):  # the end of a program removes __file__
        words = getattr(sys, "argv", None) or [""]
        file = words[0] if isinstance(words[0], str) and words[0] not in ("-c", "-m", "-") else ""
    return os.path.dirname(os.path.join(_started_in, file)) if file else ""


@cache
def _project_of(folder: str) -> str:
    """Return the nearest folder with a marker of a project, from `folder` upwards; or ''."""
    while folder.strip(os.sep):
        if any(os.path.exists(os.path.join(folder, marker)) for marker in _MARKERS):
            return folder
        folder = os.path.dirname(folder)
    return ""


def roots() -> dict[str, list[str]]:
    """Return the folders that decide about places, for a report on another machine."""
    return {
        "project": list(project_folders()),
        "library": [*library_folders(), _MEMRT, _NUMPY],
    }


# --- Calls. ---


def _is_internal(call: Call) -> bool:
    """Return whether a call is code of memrt or of the interpreter, or is native."""
    return call.is_native or call.file is None or _is_internal_file(call.file)


@cache
def _is_internal_file(file: str) -> bool:
    return file.startswith((_MEMRT, *_INTERNAL))


@cache
def _is_library(file: str) -> bool:
    installed = _INSTALLED.match(file) is not None
    return installed or file.startswith((_NUMPY, _script_folder(), *library_folders()))


def is_user_call(call: Call) -> bool:
    """Return whether a call is the user's own code."""
    return not _is_internal(call) and not _is_library(call.file or "")


def _is_other_package(call: Call) -> bool:
    """Return whether a call is code of an installed package other than memrt and NumPy."""
    file = call.file or ""
    if _is_internal(call) or file.startswith((_NUMPY, _script_folder())):
        return False
    return _INSTALLED.match(file) is not None


def _is_library_call(call: Call) -> bool:
    return not _is_internal(call)


def user_call(calls: Sequence[_Call]) -> _Call:
    """Return the innermost call of the user's code, from calls with the innermost call first.

    Without such a call, the innermost call of another package, then of NumPy or the standard
    library. Without all of these, the first call.
    """
    if not shows_all_frames():
        for belongs in (is_user_call, _is_other_package, _is_library_call):
            for call in calls:
                if belongs(call):
                    return call
    return calls[0]


def has_user_call(calls: Sequence[Call]) -> bool:
    """Return whether the call of user_call() is the user's own, or all calls are shown."""
    return shows_all_frames() or is_user_call(user_call(calls))


def library_calls(calls: Sequence[_Call]) -> list[_Call]:
    """Return the calls of libraries that the call of user_call() leads to, innermost first."""
    chosen = user_call(calls)
    inner = itertools.takewhile(lambda call: call is not chosen, calls)
    return [call for call in inner if not _is_internal(call)]


def library_call(calls: Sequence[_Call]) -> _Call | None:
    """Return the innermost call of a library that the call of user_call() leads to, or None."""
    return next(iter(library_calls(calls)), None)


def outermost_library_call(calls: Sequence[Call]) -> LibraryCall | None:
    """Return the call of a library at the call of user_call(), or None."""
    inner = library_calls(calls)
    chosen = user_call(calls)
    return LibraryCall(chosen.file, chosen.line, inner[-1].file) if inner else None


def running_library_calls() -> set[LibraryCall]:
    """Return the calls of libraries by the user's code that run now, of all threads.

    Empty where the GIL is off, because the calls of other threads are not readable.
    """
    found: set[LibraryCall] = set()
    try:
        threads = _memrt.running_calls()
    except RuntimeError:
        return found
    for calls in threads:
        library = None
        for file, line in calls:
            if _is_internal_file(file):
                continue
            if _is_library(file):
                library = file
                continue
            if library is not None:
                found.add(LibraryCall(file, line, library))
            library = None
    return found


def is_a_runners(call: Call) -> bool:
    """Return whether a call is Python code of memrt, of pytest, or of the program launcher.

    With show_all_frames(), no call is.
    """
    file = call.file or ""
    if shows_all_frames():
        return False
    is_tests = any(package in file for package in _TEST_RUNNERS)
    runpy = tuple(f"{folder}runpy.py" for folder in library_folders())
    return is_tests or file.startswith((_MEMRT, "<frozen", *runpy))


def program_frames(calls: Sequence[_Call]) -> Sequence[_Call]:
    """Return the calls of the program, without the calls of the runner.

    If all calls belong to the runner, all calls are returned.
    """
    return [call for call in calls if not is_a_runners(call)] or calls


# --- Texts. ---


def where(file: str, line: int) -> str:
    """Return a place as text: ``service.py:24``, or ``In[2], line 5`` in a notebook."""
    cell = None if shows_all_frames() else cell_of(file)
    if cell is not None:
        return f"{cell}, line {line}" if line else cell
    return f"{short_path(file)}:{line}" if line else short_path(file)


def short_path(file: str) -> str:
    """Return a path relative to the folder of the library or to the project; else unchanged.

    The folder of the library comes first, because an environment may be a folder of the project.
    """
    if shows_all_frames():
        return file
    installed = _INSTALLED.match(file)
    if installed is not None:
        return file[installed.end() :]
    return _below(file, library_folders()) or _below(file, project_folders()) or file


def _below(file: str, folders: Iterable[str]) -> str:
    """Return the path relative to the first folder that contains `file`, or ''."""
    for folder in folders:
        if file.startswith(folder):
            return file[len(folder) :]
    return ""


def name_cell(file: str, cell: str) -> None:
    """Set the name of the cell that a file name of code stands for.

    IPython counts code that a magic runs as code of the next cell.
    """
    _named_cells[file] = cell


def cell_of(file: str) -> str | None:
    """Return the name of a notebook's cell, such as ``In[2]``, by the file name of its code."""
    if file in _named_cells:
        return _named_cells[file]
    cell = _CELL.fullmatch(file)
    if cell is not None:
        return f"In[{cell[1]}]"
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    named = None if name_of is None else name_of(file)
    return named[1] if isinstance(named, tuple) and len(named) == 2 else None
