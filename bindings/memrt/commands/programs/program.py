"""Run programs in this process, in the same way as the interpreter itself."""

from __future__ import annotations

import argparse
import atexit
import builtins
import contextlib
import errno
import importlib.machinery
import importlib.util
import linecache
import os
import pkgutil
import runpy
import stat
import sys
import textwrap
import threading
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from memrt import _memrt
from memrt._support.import_path import add_first_path, folder_of_script
from memrt.commands.output.errors import CommandError


class Program(ABC):
    """A program, with its arguments."""

    def __init__(self, argv: list[str]) -> None:
        """`argv` is `sys.argv` at the start of the program."""
        self.argv = argv

    @property
    def name(self) -> str:
        """Start of the name of output files."""
        return "program"

    def load(self) -> None:  # noqa: B027
        """Raise CommandError if the program cannot start."""

    @abstractmethod
    def start(self) -> None:
        """Run the program to its end."""

    def end(self) -> None:  # noqa: B027
        """Undo the changes that the interpreter undoes at the end, before threads are joined."""

    def run(self) -> None:
        """Run the program to its end.

        Failure: exceptions propagate to the interpreter, which ends as it would without memrt. The
        printed traceback starts in the program.
        """
        sys.argv = list(self.argv)
        try:
            self.start()
        except BaseException as error:
            end = self.end
            if _ENDS_BEFORE_REPORT:  # pragma: no cover - newer than the Pythons of the gate
                end()
                end = _do_nothing
            if not isinstance(error, SystemExit):
                sys.excepthook = _from_program(sys.excepthook, end)
            raise
        self.end()


class Script(Program):
    """A file or pipe with Python source or bytecode, or a folder or zip file with a __main__."""

    _descriptor = -1

    @property
    def _path(self) -> str:
        return self.argv[0]

    @property
    def name(self) -> str:
        stem = os.path.splitext(os.path.basename(os.path.normpath(self._path)))[0]
        return stem or super().name

    def load(self) -> None:
        importer = pkgutil.get_importer(self._path)
        if importer is None:
            self._descriptor = _open_source(self._path)
        elif importer.find_spec("__main__") is None:
            raise CommandError(f"cannot run {self._path!r}: no __main__.py is inside")

    def start(self) -> None:
        path = os.path.join(os.getcwd(), self._path)  # absolute, not normalized
        if self._descriptor < 0:
            sys.path.insert(0, path)  # also in isolated mode, as the interpreter does
            _run_module("__main__", alter_argv=False)
            return
        add_first_path(folder_of_script(self._path))
        if _is_bytecode(self._path, self._descriptor):
            self._start_bytecode(path)
        else:
            loader = importlib.machinery.SourceFileLoader("__main__", path)
            variables = _new_main(__loader__=loader, **_file_variables(path))
            _memrt.run_file(self._descriptor, path, variables)

    def _start_bytecode(self, path: str) -> None:
        loader = importlib.machinery.SourcelessFileLoader("__main__", path)
        variables = _new_main(__loader__=loader, **_file_variables(path))
        with open(self._descriptor, "rb") as file:
            code = pkgutil.read_code(file)
        if code is None:
            raise RuntimeError("Bad magic number in .pyc file")
        _memrt.run_code(code, variables)

    def end(self) -> None:
        if self._descriptor >= 0:
            _forget_file()


class StandardInput(Program):
    """Python source on standard input."""

    def load(self) -> None:
        try:
            if sys.__stdin__ is None:  # closed at the start; libraries may use the descriptor now
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            self._descriptor = os.dup(0)
        except OSError as error:
            raise CommandError(f"cannot run standard input: {error.strerror}") from None
        _expect_no_terminal(self._descriptor, "standard input")

    def start(self) -> None:
        add_first_path("")
        variables = _new_main(**_file_variables("<stdin>"))
        _memrt.run_file(self._descriptor, "<stdin>", variables)

    def end(self) -> None:
        _forget_file()


class Command(Program):
    """Python source on the command line, as for ``python -c``."""

    def __init__(self, source: str, argv: list[str]) -> None:
        super().__init__(argv)
        self._source = source

    def load(self) -> None:
        try:
            self._source.encode()
        except UnicodeEncodeError as error:
            raise CommandError(f"cannot decode the code of -c: {error}") from None

    def start(self) -> None:
        add_first_path("")
        variables = _new_main()
        source = f"{self._source}\n"
        if sys.version_info >= (3, 14):
            source = textwrap.dedent(source)
        code = _memrt.call_outermost(compile, source, "<string>", "exec", 0, True)
        _register_source(code, source)
        _memrt.run_code(code, variables)


def _register_source(code: types.CodeType, source: str) -> None:
    """Let tracebacks show the lines of `source`, as Python does since 3.13.

    Python 3.13.0 finds lines by file name, later releases by code object.
    """
    register = getattr(linecache, "_register_code", None)
    if register is not None:
        by_code = hasattr(linecache, "_interactive_cache")
        register(code if by_code else code.co_filename, source, code.co_filename)


class Module(Program):
    """A module or package, as for ``python -m``."""

    def __init__(self, module: str, argv: list[str]) -> None:
        super().__init__(argv)
        self._module = module

    @property
    def name(self) -> str:
        return self._module.partition(".")[0] or super().name

    def start(self) -> None:
        with contextlib.suppress(OSError):  # the current folder was removed
            add_first_path(os.getcwd())
        _run_module(self._module, alter_argv=True)


# --- Steps of the interpreter before a program starts. ---


def _open_source(path: str) -> int:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise CommandError(f"cannot run {path!r}: {reason}") from None
    _expect_no_terminal(descriptor, repr(path))
    return descriptor


def _expect_no_terminal(descriptor: int, name: str) -> None:
    if os.isatty(descriptor):
        raise CommandError(
            f"cannot run {name}: a program must be a file or a pipe, got a terminal; for an "
            "interactive session use python -i -m memrt run -c ''"
        )


def _is_bytecode(path: str, descriptor: int) -> bool:
    """Return True for .pyc files, by name or by content."""
    if path.endswith(".pyc"):
        return True
    magic = importlib.util.MAGIC_NUMBER
    is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    return is_file and os.pread(descriptor, len(magic), 0) == magic


def _run_module(name: str, *, alter_argv: bool) -> None:
    """Call the function that the interpreter itself calls for ``-m``.

    The public functions of runpy restore the old __main__ too early for threads and atexit.
    """
    _new_main()
    if alter_argv:
        sys.argv[0] = "-m"
    _memrt.call_outermost(runpy._run_module_as_main, name, alter_argv)  # type: ignore[attr-defined]


def _file_variables(path: str) -> dict[str, object]:
    """Return the variables that the interpreter adds for a script."""
    if sys.version_info >= (3, 15):  # pragma: no cover - newer than the Pythons of the gate
        return {"__file__": path}
    return {"__file__": path, "__cached__": None}


def _new_main(**attributes: object) -> dict[str, Any]:
    """Make a new module __main__ and return its variables, in the interpreter's order."""
    module = types.ModuleType("__main__")
    variables = vars(module)
    variables["__loader__"] = importlib.machinery.BuiltinImporter
    if sys.version_info < (3, 14):
        variables["__annotations__"] = {}
    variables["__builtins__"] = builtins
    variables.update(attributes)
    _keep.append(sys.modules["__main__"])
    sys.modules["__main__"] = module
    return variables


_keep: list[types.ModuleType] = []  # callers still use the variables of the old __main__


def _forget_file() -> None:
    """Remove the variables that the interpreter removes after the end of a script."""
    variables = getattr(sys.modules.get("__main__"), "__dict__", {})
    variables.pop("__file__", None)
    variables.pop("__cached__", None)


# --- The end of a program. ---

# True: the interpreter removes the variables of a script before the report of an exception, and
# also before SystemExit ends the process. Earlier releases remove the variables after the report.
_ENDS_BEFORE_REPORT = sys.version_info >= (3, 14, 7) or ((3, 13, 15) <= sys.version_info < (3, 14))


def _do_nothing() -> None:
    """Stand for the end of a program that has ended already."""


def run_exit_functions() -> None:
    """Join the threads of the program and run all exit functions, before the interpreter does.

    A command can then still choose the exit status. Afterwards the interpreter ends normally: no
    threads or exit functions are left, files are flushed and modules finalized.
    """
    _memrt.call_at_exit(threading._shutdown, threading)  # type: ignore[attr-defined]
    _memrt.call_at_exit(atexit._run_exitfuncs, atexit)


def _from_program(hook: Callable[..., Any], end: Callable[[], None]) -> Callable[..., Any]:
    """Return a `sys.excepthook` that calls `hook` with the traceback inside the program."""

    def excepthook(
        kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None
    ) -> None:
        sys.excepthook = hook
        traceback = _inside_program(traceback)
        sys.last_traceback = traceback
        try:
            _memrt.call_outermost(hook, kind, error.with_traceback(traceback), traceback)
        finally:
            end()

    return excepthook


def _inside_program(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Return the traceback without the entries above this file and in this file."""
    while traceback is not None and not _is_here(traceback):
        traceback = traceback.tb_next
    while traceback is not None and _is_here(traceback):
        traceback = traceback.tb_next
    return traceback


def _is_here(traceback: types.TracebackType) -> bool:
    return traceback.tb_frame.f_globals is globals()


# --- The command line. ---


def add_program_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the help of the program's words. `parser` never sees them: split_words() takes them."""
    parser.usage = "%(prog)s [options] (SCRIPT | -m MODULE | -c CODE | -) [argument ...]"
    parser.add_argument("-m", metavar="MODULE", dest=argparse.SUPPRESS,
                        help="run a module with the following arguments")  # fmt: skip
    parser.add_argument("-c", metavar="CODE", dest=argparse.SUPPRESS,
                        help="run code with the following arguments")  # fmt: skip
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def split_words(parser: argparse.ArgumentParser, words: list[str]) -> tuple[list[str], list[str]]:
    """Split the words behind a command into memrt's options and the program with its arguments."""
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("-", "--") or word.startswith(("-m", "-c")) or not word.startswith("-"):
            break
        at += 2 if _takes_next_word(parser, word) else 1
    return words[:at], words[at:]


def _takes_next_word(parser: argparse.ArgumentParser, word: str) -> bool:
    """Return True for an option, also abbreviated, whose value is the next word."""
    options = parser._option_string_actions
    if word in options:
        return options[word].nargs is None
    found = {id(action): action for option, action in options.items() if option.startswith(word)}
    return word.startswith("--") and len(found) == 1 and next(iter(found.values())).nargs is None


def program_named(words: list[str]) -> Program:
    """Return the program that words of the command line name, with its arguments."""
    if words[:1] == ["--"]:
        words = words[1:]
    elif words and words[0].startswith(("-m", "-c")):
        return _program_of_option(words[0][:2], [words[0][2:], *words[1:]])
    elif words[:1] == ["-"]:
        return StandardInput(words)
    if not words:
        raise CommandError("no program to run: name a script, a module with -m, code with -c, or -")
    return Script(words)


def _program_of_option(option: str, words: list[str]) -> Program:
    """Return the program of -m or -c, whose value is the first word that is not empty."""
    if not words[0]:
        del words[0]
    if not words:
        needs = "the name of a module" if option == "-m" else "code to run"
        raise CommandError(f"{option} must be followed by {needs}")
    argv = [option, *words[1:]]
    return Module(words[0], argv) if option == "-m" else Command(words[0], argv)
