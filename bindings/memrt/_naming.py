"""Names for what refers to an object: variables, attributes, places in containers.

Objects are those of users: nothing here compares, hashes or prints one, or looks up an attribute by
a way that its class may have a say in.
"""

from __future__ import annotations

import collections
import functools
import os
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from memrt import _memrt

_mro = type.__dict__["__mro__"].__get__
_type_name = type.__dict__["__name__"].__get__
_type_dict = type.__dict__["__dict__"].__get__
_base = np.ndarray.base.__get__
_lru_cache = type(functools.lru_cache(len))

# Kinds of objects with a frame of their own, with the name of the attribute.
_SUSPENDED = (
    (types.GeneratorType, "generator", types.GeneratorType.gi_frame),
    (types.CoroutineType, "coroutine", types.CoroutineType.cr_frame),
    (types.AsyncGeneratorType, "generator", types.AsyncGeneratorType.ag_frame),
)
# What classes in C show of their references otherwise than as members.
_SHOWN = (
    (types.FunctionType, "__defaults__"),
    (types.FunctionType, "__kwdefaults__"),
    (types.BuiltinFunctionType, "__self__"),
)
_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_LONGEST = 60  # characters of a key


@dataclass(frozen=True)
class Referrer:
    """Something that refers to an object that keeps a buffer alive."""

    kind: str
    """'local', 'global', 'attribute', 'item', 'closure', 'cache', or 'object' for anything else."""
    text: str
    """What it is and where, in words."""
    expression: str | None
    """How a program would write it, as far as that can be said: ``app.CACHE['x']``."""
    function: str | None
    """The function whose variable leads to it."""
    file: str | None
    """The file of that function."""
    line: int | None
    """The line that it is at."""
    count: int
    """How many references these are."""


@dataclass(frozen=True)
class _Step:
    """From an object to one that refers to it."""

    access: str
    """What a program writes behind the referring object; with a space in front: words."""
    kind: str = "object"
    name: str = ""
    used: int = 1
    """Objects of the path that the step takes."""
    owner: Any = None
    """The object that has the attribute."""


@dataclass(frozen=True)
class _Root:
    """Where a path begins."""

    expression: str
    place: str = ""
    kind: str = ""
    function: str | None = None
    file: str | None = None
    line: int | None = None


def type_name(kind: type) -> str:
    """The name of a class, whatever its metaclass says."""
    return str(_type_name(kind))


def is_among(thing: object, things: Iterable[object]) -> bool:
    """Whether it is one of them, itself: nothing is compared."""
    for each in things:  # noqa: SIM110 - a closure that lacks memory loses references
        if each is thing:
            return True
    return False


def _is_a(object_: object, kind: type) -> bool:
    return is_among(kind, _mro(type(object_)))


def key_text(key: object, depth: int = 2) -> str:
    """A key as a program writes it, if it is of a kind whose text is Python's own."""
    kind = type(key)
    if kind is int and key.bit_length() > 128:  # type: ignore[attr-defined]
        return "<int>"
    if is_among(kind, _PLAIN):
        text = repr(key if kind not in (str, bytes) else key[:_LONGEST])  # type: ignore[index]
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    if depth > 0 and is_among(tuple, _mro(kind)):
        name = "" if kind is tuple else type_name(kind)  # which named tuples have
        return name + _tuple_text(key, depth)  # type: ignore[arg-type]
    return f"<{type_name(kind)}>"


def _tuple_text(key: tuple[object, ...], depth: int) -> str:
    first = tuple.__getitem__(key, slice(4))
    items = [key_text(item, depth - 1) for item in first]
    more = ["..."] if tuple.__len__(key) > 4 else []
    return f"({', '.join([*items, *more])}{',' if len(items) == 1 else ''})"


# --- One step. ---


def _member(object_: object, value: object) -> str | None:
    """The name of the slot of an object, or of what its class in C shows, that has a value."""
    for kind, name in _SHOWN:
        if type(object_) is kind and _type_dict(kind)[name].__get__(object_) is value:
            return name
    for kind in _mro(type(object_)):
        for name, descriptor in list(_type_dict(kind).items()):
            if type(descriptor) is types.MemberDescriptorType:
                try:
                    found = descriptor.__get__(object_)
                except AttributeError:
                    continue
                if found is value and type(name) is str:
                    return name
    return None


def _attribute_step(value: object, dict_: dict[Any, Any], owner: object, used: int) -> _Step | None:
    place = _memrt.find_place(dict_, value)
    if place is None or place[0] != "value" or type(place[1]) is not str:
        return None
    kind = "global" if _is_a(owner, types.ModuleType) else "attribute"
    return _Step(f".{place[1]}", kind, place[1], used, owner)


def _dict_step(value: object, dict_: dict[Any, Any], above: object) -> _Step:
    if above is not None and _memrt.instance_dict(above) is dict_:
        step = _attribute_step(value, dict_, above, 2)
        if step is not None:
            return step
    if type(above) is _lru_cache:
        return _Step(" (a cached result)", "cache", used=2)
    place = _memrt.find_place(dict_, value)
    if place is None:
        return _Step("[...]", "item")
    if place[0] == "key":
        return _Step(f" (the key {key_text(place[1])})", "item")
    return _Step(f"[{key_text(place[1])}]", "item", owner=dict_)


def _sequence_step(value: object, sequence: Any, above: object) -> _Step:
    place = _memrt.find_place(sequence, value)
    if place is None:  # it was changed meanwhile
        return _Step("[...]", "item")
    index: int = place[1]
    if type(value) is types.CellType and type(above) is types.FunctionType:
        names = types.FunctionType.__code__.__get__(above).co_freevars  # type: ignore[attr-defined]
        if index < len(names):
            return _Step(f" (closure variable `{names[index]}`)", "closure", names[index], 2)
    return _Step(f"[{index}]", "item")


def _deque_step(value: object, deque: Any) -> _Step:
    try:
        for index, item in enumerate(collections.deque.__iter__(deque)):
            if item is value:
                return _Step(f"[{index}]", "item")
    except RuntimeError:  # another thread changes it
        pass
    return _Step("[...]", "item")


def _instance_step(value: object, object_: object) -> _Step:
    name = _member(object_, value)
    if name is not None:
        return _Step(f".{name}", "attribute", name, owner=object_)
    dict_ = _memrt.instance_dict(object_)
    step = None if dict_ is None else _attribute_step(value, dict_, object_, 1)
    return step if step is not None else _Step(f" (a {type_name(type(object_))})")


def _array_step(value: object, array: Any) -> _Step:
    if _memrt.find_place(array, value) is not None:
        return _sequence_step(value, array, None)
    if _base(array) is value:
        return _Step(".base", "attribute", "base", owner=array)
    return _instance_step(value, array)


def _step(value: object, object_: object, above: object) -> _Step:
    """From `value` to `object_`, which refers to it and is referred to by `above`."""
    if _is_a(object_, dict):
        return _dict_step(value, object_, above)  # type: ignore[arg-type]
    if _is_a(object_, list) or _is_a(object_, tuple):
        return _sequence_step(value, object_, above)
    if _is_a(object_, np.ndarray):
        return _array_step(value, object_)
    if _is_a(object_, collections.deque):
        return _deque_step(value, object_)
    if _is_a(object_, set) or _is_a(object_, frozenset):
        return _Step(" (an element)", "item")
    if type(object_) is _lru_cache and _member(object_, value) is None:
        return _Step(" (a cached result)", "cache")
    if type(object_) is types.CellType:
        return _Step("", "closure")
    return _instance_step(value, object_)


# --- Where a path begins. ---


def _suspended_what(object_: object) -> str:
    """What an object with a frame of its own is, with a space behind; '' for any other."""
    for kind, what, _ in _SUSPENDED:
        if type(object_) is kind:
            return f"{what} "
    return ""


def _frame_root(value: object, frame: types.FrameType, what: str, above: object) -> _Root:
    code = frame.f_code
    function = getattr(code, "co_qualname", code.co_name)
    line = frame.f_lineno
    file = code.co_filename
    what = what or _suspended_what(above)
    place = f"in {what}{function}() {os.path.basename(file)}:{line}"
    if above is not None and not what:
        place += f", kept by a {type_name(type(above))}"
    for name, found in _memrt.frame_variables(frame):
        if found is value:
            return _Root(name, place, "local", function, file, line)
    return _Root("", place, "object", function, file, line)


def _suspended_root(value: object, object_: object) -> _Root | None:
    for kind, _, descriptor in _SUSPENDED:
        if type(object_) is kind:
            frame = descriptor.__get__(object_)
            what = _suspended_what(object_)
            return None if frame is None else _frame_root(value, frame, what, None)
    return None


def _module_name(module: object) -> str:
    for name, found in list(dict.items(sys.modules)):
        if found is module and type(name) is str:
            return name
    return "<module>"


def _root(value: object, path: tuple[Any, ...], at: int) -> _Root | None:
    """What the rest of a path begins with, if it is a function or a module."""
    object_ = path[at]
    above = path[at + 1] if at + 1 < len(path) else None
    if type(object_) is types.FrameType:
        return _frame_root(value, object_, "", above)
    return _suspended_root(value, object_)


def _walk(
    target: object, path: tuple[Any, ...], steps: int
) -> tuple[list[_Step], _Root | None, object]:
    """Steps from an object up, where they end, and the last object."""
    taken: list[_Step] = []
    value, at = target, 0
    while at < len(path):
        root = _root(value, path, at)
        if root is not None:
            return taken, root, path[at]
        if _is_a(path[at], types.ModuleType):
            return taken, _Root(_module_name(path[at])), path[at]
        if steps > len(path) and at == len(path) - 1:
            taken.append(_Step(" ... "))  # the path was cut before its last object
            return taken, None, path[at]
        above = path[at + 1] if at + 1 < len(path) else None
        step = _step(value, path[at], above)
        taken.append(step)
        at += step.used
        value = path[at - 1]
        if step.kind == "global":
            return taken, _Root(_module_name(value)), value
    return taken, None, value


# --- All of it. ---


def _expression(root: str, taken: list[_Step]) -> str:
    return root + "".join(step.access for step in reversed(taken))


def _first(taken: list[_Step]) -> _Step | None:
    """The first step that a program writes."""
    for step in taken:
        if step.access:
            return step
    return None


def _first_kind(taken: list[_Step], root: _Root | None) -> str:
    first = _first(taken)
    if first is not None:
        return first.kind
    return root.kind if root is not None and root.kind else "object"


def _words(kind: str, taken: list[_Step], root: _Root | None, expression: str) -> str:
    first = _first(taken)
    what = ""
    if kind == "attribute" and first is not None:
        what = f"attribute `{first.name}` of {_owner_name(first.owner)}"
    if root is None:
        return what or f"{expression}, which nothing that was found leads to"
    if not root.place:
        return f"{what}, {expression}" if what else expression
    if not root.expression and not taken:
        return f"a value {root.place}"
    where = f"{'local ' if kind == 'local' else ''}`{expression}` {root.place}"
    return f"{what}, {where}" if what else where


def _owner_name(owner: object) -> str:
    if _is_a(owner, type):
        return f"class {type_name(owner)}"  # type: ignore[arg-type]
    return type_name(type(owner))


def refer(target: object, path: tuple[Any, ...], steps: int, count: int) -> Referrer:
    """Name the reference to `target` of the first object of a path to where it is reached from."""
    taken, root, last = _walk(target, path, steps)
    start = f"<{type_name(type(last))}>" if root is None else root.expression
    if root is not None and root.place and not start:
        start = "..."
    expression = _expression(start, taken)
    kind = _first_kind(taken, root)
    text = _words(kind, taken, root, expression)
    if root is None:
        return Referrer(kind, text, None, None, None, None, count)
    return Referrer(kind, text, expression, root.function, root.file, root.line, count)
