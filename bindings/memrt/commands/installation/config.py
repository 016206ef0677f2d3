"""``python -m memrt config``: print flags and folders for compiling against memrt."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable

import memrt
from memrt._support.installation import get_pkgconfig_dir
from memrt.commands.output.errors import CommandError

HELP = "Print flags and folders to compile C, C++ and Cython code against memrt."

EXAMPLES = """\
Each option prints one line, in the order of the options in this help. Paths with special characters
are quoted for a shell. An extension module needs only --cflags: memrt/import.h gets the functions
at run time. A program needs --libs, too. The flags of --libs contain an rpath, so that the program
starts without LD_LIBRARY_PATH.

exit status: 0; 2 if no option is given, or if a file is missing

examples:
  cc program.c -o program $(python -m memrt config --cflags --libs)
  cmake -S . -B build -Dmemrt_DIR="$(python -m memrt config --cmakedir)"
  PKG_CONFIG_PATH="$(python -m memrt config --pkgconfigdir)" pkg-config --cflags memrt
"""


def _existing(path: str) -> str:
    """Return the path. Failure: CommandError if no such file or folder exists."""
    if not os.path.exists(path):
        raise CommandError(f"{path} does not exist: install memrt again from a wheel or a clone")
    return path


def _cflags() -> str:
    return shlex.quote(f"-I{_existing(memrt.get_include())}")


def _libs() -> str:
    library = _existing(memrt.get_library())
    return shlex.join([library, f"-Wl,-rpath,{os.path.dirname(library)}"])


def _folder(get_folder: Callable[[], str]) -> Callable[[], str]:
    return lambda: shlex.quote(_existing(get_folder()))


_LINES: dict[str, tuple[Callable[[], str], str]] = {
    "version": (lambda: memrt.__version__, "version of memrt"),
    "cflags": (_cflags, "flags of the compiler: the include path"),
    "libs": (_libs, "flags of the linker: libmemrt, and an rpath to its folder"),
    "includedir": (_folder(memrt.get_include), "folder with memrt/memrt.h"),
    "cmakedir": (_folder(memrt.get_cmake_dir), "folder with memrtConfig.cmake"),
    "pkgconfigdir": (_folder(get_pkgconfig_dir), "folder with memrt.pc"),
}
"""Each option, with the function that returns its line, and its help."""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    for name, (_, text) in _LINES.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"print the {text}")


def execute(arguments: argparse.Namespace) -> None:
    chosen = [line for name, (line, _) in _LINES.items() if getattr(arguments, name)]
    if not chosen:
        options = ", ".join(f"--{name}" for name in _LINES)
        raise CommandError(f"config needs at least one option: give some of {options}")
    print("\n".join([line() for line in chosen]))
