"""Find the exceptions that compiled code may raise.

Compiled code raises an exception by the address of a constant: the pickled class, arguments and
source line. The constants of a finished module are therefore the complete list.
"""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass
from typing import Any

_PICKLE = re.compile(r"\.const\.pickledata\.[^.]+(\.\d+)?")
_TEXT = re.compile(r'constant \[\d+ x i8\] c"(.*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(\\|[0-9A-Fa-f]{2})")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True)
class Raised:
    """An exception that a place in the source raises. `constant` is the name in the module."""

    constant: str
    name: str
    text: str

    @property
    def enumerator(self) -> str:
        """Return the name in C: ZERO_DIVISION_ERROR for ZeroDivisionError."""
        return _WORDS.sub("_", self.name).upper()


def find_raised(module: Any) -> list[Raised]:
    """Return the exceptions of a module of LLVM, in the order of the module."""
    found = []
    for variable in module.global_variables:
        pickled = _TEXT.search(str(variable)) if _PICKLE.fullmatch(variable.name) else None
        value = pickle.loads(_read_bytes(pickled[1])) if pickled else None
        if isinstance(value, tuple) and _is_exception(value):
            found.append(Raised(variable.name, value[0].__name__, _describe(*value)))
    return found


def _read_bytes(text: str) -> bytes:
    """Return the bytes of a string constant in LLVM's notation."""
    plain = _ESCAPE.sub(lambda each: "\\" if each[1] == "\\" else chr(int(each[1], 16)), text)
    return plain.encode("latin-1")


def _is_exception(value: tuple[Any, ...]) -> bool:
    """Return whether a value is a class of exceptions, its arguments and a source line."""
    return len(value) == 3 and isinstance(value[0], type) and issubclass(value[0], BaseException)


def _describe(kind: type, arguments: tuple[object, ...] | None, place: Any) -> str:
    """Return a line such as ``ValueError: width must be positive (kernels.py:12)``."""
    said = ", ".join(_first_line(each) for each in arguments or ())
    where = "" if place is None else f" ({place[1].rpartition('/')[2]}:{place[2]})"
    line = f"{kind.__name__}{': ' if said else ''}{said}{where}"
    return line.replace("*/", "* /")


def _first_line(argument: object) -> str:
    """Return an argument as text, or dots for an argument that is computed at run time."""
    if not isinstance(argument, str | int | float | complex):
        return "..."
    return str(argument).partition("\n")[0]
