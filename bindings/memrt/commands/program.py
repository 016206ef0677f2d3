"""Running a program in this process as the interpreter itself would."""

from __future__ import annotations

import argparse
import importlib.machinery
import io
import os
import pkgutil
import runpy
import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import memrt
from memrt.commands.errors import CommandError

_OURS = (os.path.dirname(memrt.__file__) + os.sep, runpy.__file__, "<frozen runpy>")


class Program(ABC):
    """Something to run, with its arguments."""

    def __init__(self, target: str, arguments: list[str]) -> None:
        self.target = target
        self.arguments = arguments

    @abstractmethod
    def load(self) -> None:
        """Find out whether it can be run; CommandError when not."""

    @abstractmethod
    def start(self) -> None:
        """Hand control to it."""

    def run(self) -> None:
        """Hand control to it. What it raises goes on to the interpreter, which ends as it would
        without memrt; only the frames below the program are kept out of the traceback."""
        sys.argv = [self.target, *self.arguments]
        try:
            self.start()
        except BaseException:
            sys.excepthook = _without_our_frames(sys.excepthook)
            raise


class Script(Program):
    """A file with Python source or bytecode, or a folder or zip file with a __main__.py."""

    _source = b""

    def load(self) -> None:
        if not os.path.isfile(self.target):
            self._expect_folder()
        elif not _is_archive(self.target):
            self._source = self._read()

    def _expect_folder(self) -> None:
        if not os.path.exists(self.target):
            raise CommandError(f"cannot run {self.target!r}: there is no such file")
        if not os.path.isfile(os.path.join(self.target, "__main__.py")):
            raise CommandError(f"cannot run {self.target!r}: there is no __main__.py in it")

    def _read(self) -> bytes:
        try:
            with io.open_code(os.path.abspath(self.target)) as file:
                return file.read()
        except OSError as error:
            raise CommandError(f"cannot run {self.target!r}: {error.strerror}") from None

    def start(self) -> None:
        if os.path.isdir(self.target) or _is_archive(self.target):
            _set_first_path(self.target)
            _run_as_main("__main__", False)
            return
        _set_first_path(os.path.dirname(os.path.realpath(self.target)))
        path = os.path.join(os.getcwd(), self.target)  # absolute, but not made pretty
        module = _new_main(path)
        exec(_compile(self._source, path), vars(module))


class Module(Program):
    """A module or package, as for ``python -m``."""

    def load(self) -> None:
        """Python itself says what is wrong with a module, when it is run."""

    def start(self) -> None:
        _run_as_main(self.target, True)


def _is_archive(path: str) -> bool:
    return os.path.isfile(path) and pkgutil.get_importer(path) is not None


def _set_first_path(folder: str) -> None:
    """Replace the entry that ``-m memrt`` made; isolated interpreters make none."""
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path[0] = folder


def _run_as_main(name: str, alter_argv: bool) -> None:
    """What the interpreter itself calls for ``-m``; the public functions of runpy put back the old
    __main__ too early for threads and atexit."""
    _new_main(None)
    runpy._run_module_as_main(name, alter_argv)  # type: ignore[attr-defined]


def _new_main(path: str | None) -> types.ModuleType:
    module = types.ModuleType("__main__")
    vars(module)["__builtins__"] = sys.modules["builtins"]
    if path is not None:
        loader = importlib.machinery.SourceFileLoader("__main__", path)
        vars(module).update(__file__=path, __cached__=None, __loader__=loader)
    _keep.append(sys.modules["__main__"])
    sys.modules["__main__"] = module
    return module


_keep: list[types.ModuleType] = []  # the frames that called us still use its globals


def _compile(source: bytes, path: str) -> types.CodeType:
    code: types.CodeType | None = pkgutil.read_code(io.BytesIO(source))
    return code or compile(source, path, "exec", dont_inherit=True)


def _without_our_frames(hook: Callable[..., Any]) -> Callable[..., Any]:
    def excepthook(
        kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None
    ) -> None:
        while traceback is not None and _is_ours(traceback):
            traceback = traceback.tb_next
        hook(kind, error.with_traceback(traceback), traceback)

    return excepthook


def _is_ours(traceback: types.TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith(_OURS)


def add_program_arguments(parser: argparse.ArgumentParser) -> None:
    """What names a program on a command line, behind all options; for :func:`program_named`."""
    parser.usage = "%(prog)s [options] (SCRIPT | -m MODULE) [argument ...]"
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE",
                        help="run a module, with the arguments that follow")  # fmt: skip
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def program_named(module: list[str] | None, words: list[str]) -> Program:
    """What a command line names: the words after -m, or a script with its arguments."""
    if module is not None:
        if not module:
            raise CommandError("-m needs the name of a module")
        return Module(module[0], module[1:])
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        raise CommandError("nothing to run: name a script, or a module with -m MODULE")
    return Script(words[0], words[1:])
