"""Name the objects where paths start: modules, and frames of functions, generators, coroutines."""

from __future__ import annotations

import os
import sys
import types
from dataclasses import dataclass
from typing import Any

from memrt import _memrt
from memrt._holders.inspection import type_name

# Types of objects with a frame of their own: type, word for messages, descriptor of the frame.
_SUSPENDED = (
    (types.GeneratorType, "generator", types.GeneratorType.gi_frame),
    (types.CoroutineType, "coroutine", types.CoroutineType.cr_frame),
    (types.AsyncGeneratorType, "generator", types.AsyncGeneratorType.ag_frame),
)


@dataclass(frozen=True)
class Root:
    """Start of an expression: a variable of a function, or a module."""

    expression: str
    """Name of the variable or module. Empty if no variable of the frame has the object."""
    location: str = ""
    """Function, file and line of the frame, as text. Empty for a module."""
    kind: str = ""
    """Kind of the reference, as in Referrer. Empty for a module."""
    function: str | None = None
    file: str | None = None
    line: int | None = None


def module_root(module: object) -> Root:
    """Return the root for a module."""
    return Root(_module_name(module))


def _module_name(module: object) -> str:
    for name, found in list(dict.items(sys.modules)):
        if found is module and type(name) is str:
            return name
    return "<module>"


def root_at(value: object, path: tuple[Any, ...], at: int) -> Root | None:
    """Return the root at index `at` of a path: a frame, a generator or a coroutine; else None."""
    object_ = path[at]
    above = path[at + 1] if at + 1 < len(path) else None
    if type(object_) is types.FrameType:
        return _frame_root(value, object_, "", above)
    return _suspended_root(value, object_)


def _suspended_word(object_: object) -> str:
    """Return 'generator ' or 'coroutine ', with the space; '' for objects of other types."""
    for kind, word, _ in _SUSPENDED:
        if type(object_) is kind:
            return f"{word} "
    return ""


def _frame_root(value: object, frame: types.FrameType, word: str, above: object) -> Root:
    """Return the root for a frame that refers to `value`.

    Parameters
    ----------
    word : str
        Result of _suspended_word() for the object that has the frame, or ''.
    above : object
        Object that refers to the frame, such as a traceback, or None.
    """
    code = frame.f_code
    function = getattr(code, "co_qualname", code.co_name)
    line = frame.f_lineno
    file = code.co_filename
    word = word or _suspended_word(above)
    location = f"in {word}{function}() {os.path.basename(file)}:{line}"
    if above is not None and not word:
        location += f", kept by a {type_name(type(above))}"
    for name, found in _memrt.frame_variables(frame):
        if found is value:
            return Root(name, location, "local", function, file, line)
    return Root("", location, "object", function, file, line)


def _suspended_root(value: object, object_: object) -> Root | None:
    for kind, _, descriptor in _SUSPENDED:
        if type(object_) is kind:
            frame = descriptor.__get__(object_)
            word = _suspended_word(object_)
            return None if frame is None else _frame_root(value, frame, word, None)
    return None
