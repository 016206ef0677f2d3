"""Name the referrers of an object: variables, attributes, positions in containers.

The search of the extension returns paths of referring objects. A path runs from the direct referrer
of an object up to a frame, a module, or the end of the search. This module turns each path into
text and a Python expression, such as ``app.CACHE['x']``.

The objects belong to the user's program. This module therefore compares objects by identity only,
never hashes or prints an object, and reads attributes only in ways that run no code of the object's
class.
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

# Types of objects with a frame of their own: type, word for messages, descriptor of the frame.
_SUSPENDED = (
    (types.GeneratorType, "generator", types.GeneratorType.gi_frame),
    (types.CoroutineType, "coroutine", types.CoroutineType.cr_frame),
    (types.AsyncGeneratorType, "generator", types.AsyncGeneratorType.ag_frame),
)
# Attributes of C classes that hold a reference, and are not member descriptors: type, name.
_C_ATTRIBUTES = (
    (types.FunctionType, "__defaults__"),
    (types.FunctionType, "__kwdefaults__"),
    (types.BuiltinFunctionType, "__self__"),
)
_REPR_TYPES = (str, bytes, int, float, complex, bool, type(None))  # repr() runs no user code
_KEY_MOST = 60  # maximum number of characters of a key


@dataclass(frozen=True)
class Referrer:
    """Reference from the program to an object that keeps a buffer alive.

    Examples
    --------
    >>> import memrt
    >>> class Cache:
    ...     pass
    >>> Cache.table = memrt.zeros(100)
    >>> [array] = memrt.holders(Cache.table).holders[0].holders
    >>> [referrer.kind for referrer in array.referrers]
    ['attribute']
    """

    kind: str
    """'local', 'global', 'attribute', 'item', 'closure', 'cache', or 'object' for anything else."""
    text: str
    """Description of the referrer and the path from a variable."""
    expression: str | None
    """Python expression for the reference, such as ``app.CACHE['x']``; None if not known."""
    function: str | None
    """Function whose variable leads to the reference."""
    file: str | None
    """Source file of the function."""
    line: int | None
    """Current line of the function."""
    count: int
    """Number of references."""


@dataclass(frozen=True)
class _Step:
    """Step of a path, from an object to a referring object.

    A step covers one object of the path, or two: a container and the object that owns the
    container, such as an attribute dict and the instance.
    """

    access: str
    """Text to append to the expression for the referring object: Python code such as ``.name`` or
    ``[0]``, or a description after a space, such as `` (an element)``. Empty for a closure cell."""
    kind: str = "object"
    """Kind of the reference, as in Referrer."""
    name: str = ""
    """Name of the attribute or variable."""
    used: int = 1
    """Number of objects of the path that the step covers: 1 or 2."""
    owner: Any = None
    """Object that has the attribute."""

    @property
    def shape(self) -> str:
        """Access with index and key left out, so similar references get equal texts."""
        if self.kind != "item":
            return self.access
        if self.access.startswith("["):
            return "[...]"
        return " (a key)" if self.access.startswith(" (the key") else self.access


@dataclass(frozen=True)
class _Root:
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


def type_name(kind: type) -> str:
    """Return the name of a class without calling the metaclass."""
    return str(_type_name(kind))


def is_among(thing: object, things: Iterable[object]) -> bool:
    """Return whether `thing` is one of `things`, by identity and without comparisons."""
    # any() would need a closure, and a closure leaks references if out of memory.
    for each in things:  # noqa: SIM110
        if each is thing:
            return True
    return False


def _is_a(object_: object, kind: type) -> bool:
    """Return isinstance(object_, kind), without the object's ``__class__`` or the metaclass."""
    return is_among(kind, _mro(type(object_)))


def key_text(key: object, depth: int = 2) -> str:
    """Return a key as Python code if its type is built in; for other types the name of the type.

    Long keys are cut and end in ``...``. Integers of more than 128 bits, and tuples nested more
    than `depth` levels deep, also become the name of the type.
    """
    kind = type(key)
    if kind is int and key.bit_length() > 128:  # type: ignore[attr-defined]
        return "<int>"
    if is_among(kind, _REPR_TYPES):
        text = repr(key if kind not in (str, bytes) else key[:_KEY_MOST])  # type: ignore[index]
        return text if len(text) <= _KEY_MOST else f"{text[:_KEY_MOST]}..."
    if depth > 0 and is_among(tuple, _mro(kind)):
        name = "" if kind is tuple else type_name(kind)  # the name of a named tuple
        return name + _tuple_text(key, depth)  # type: ignore[arg-type]
    return f"<{type_name(kind)}>"


def _tuple_text(key: tuple[object, ...], depth: int) -> str:
    first = tuple.__getitem__(key, slice(4))
    items = [key_text(item, depth - 1) for item in first]
    more = ["..."] if tuple.__len__(key) > 4 else []
    return f"({', '.join([*items, *more])}{',' if len(items) == 1 else ''})"


# --- Positions in containers. ---

_Way = tuple[object, tuple[Any, ...]]  # a target object, and the path of its referring objects
_BATCHED = (dict, list, tuple)  # containers that one search can examine for several objects


class _Positions:
    """Positions of objects in containers.

    A container with several wanted objects is searched once for all of them. A search per object
    would take time proportional to items of the container times wanted objects.

    Parameters
    ----------
    ways : Iterable[_Way]
        Targets with paths. Each object on a path is a wanted object of the next object on the path.
    """

    def __init__(self, ways: Iterable[_Way]) -> None:
        self._found: dict[int, dict[int, tuple[str, Any] | None]] = {}
        wanted: dict[int, tuple[Any, dict[int, Any]]] = {}
        seen: set[int] = set()
        for target, path in ways:
            value = target
            for container in path:
                if is_among(type(container), _BATCHED):
                    wanted.setdefault(id(container), (container, {}))[1][id(value)] = value
                if id(container) in seen:  # paths through one object share all objects above
                    break
                seen.add(id(container))
                value = container
        for key in wanted:  # wanted.items() crashes CPython 3.11 when out of memory
            container, values = wanted[key]
            if len(values) > 1:
                positions = _memrt.find_places(container, list(values.values()))
                self._found[key] = dict(zip(values, positions, strict=True))

    def find(self, container: Any, value: object) -> tuple[str, Any] | None:
        """Return the position of an object in a container, as _memrt.find_place() does.

        An object that the constructor did not search for costs a search of the container.
        """
        found = self._found.get(id(container))
        if found is None or id(value) not in found:
            return _memrt.find_place(container, value)
        return found[id(value)]


# --- One step. ---


def _member(object_: object, value: object) -> str | None:
    """Return the name of the slot or C attribute of `object_` that holds `value`, or None."""
    for kind, name in _C_ATTRIBUTES:
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


def _attribute_step(
    value: object, dict_: dict[Any, Any], owner: object, used: int, positions: _Positions
) -> _Step | None:
    """Return the step to `owner`, whose attribute dict is `dict_`; None if no attribute fits."""
    position = positions.find(dict_, value)
    if position is None or position[0] != "value" or type(position[1]) is not str:
        return None
    kind = "global" if _is_a(owner, types.ModuleType) else "attribute"
    return _Step(f".{position[1]}", kind, position[1], used, owner)


def _dict_step(value: object, dict_: dict[Any, Any], above: object, positions: _Positions) -> _Step:
    """Return the step to a dict; to `above` if the dict has the attributes or cache of `above`."""
    if above is not None and _memrt.instance_dict(above) is dict_:
        step = _attribute_step(value, dict_, above, 2, positions)
        if step is not None:
            return step
    if type(above) is _lru_cache:
        return _Step(" (a cached result)", "cache", used=2)
    position = positions.find(dict_, value)
    if position is None:
        return _Step("[...]", "item")
    if position[0] == "key":
        return _Step(f" (the key {key_text(position[1])})", "item")
    return _Step(f"[{key_text(position[1])}]", "item", owner=dict_)


def _sequence_step(value: object, sequence: Any, above: object, positions: _Positions) -> _Step:
    """Return the step to a sequence; to `above` if `above` is a function and `value` a cell."""
    position = positions.find(sequence, value)
    if position is None:  # the sequence has changed since the search
        return _Step("[...]", "item")
    index: int = position[1]
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
    except RuntimeError:  # another thread changes the deque
        pass
    return _Step("[...]", "item")


def _instance_step(value: object, object_: object, positions: _Positions) -> _Step:
    name = _member(object_, value)
    if name is not None:
        return _Step(f".{name}", "attribute", name, owner=object_)
    dict_ = _memrt.instance_dict(object_)
    step = None if dict_ is None else _attribute_step(value, dict_, object_, 1, positions)
    return step if step is not None else _Step(f" (a {type_name(type(object_))})")


def _array_step(value: object, array: Any, positions: _Positions) -> _Step:
    if _memrt.find_place(array, value) is not None:
        return _sequence_step(value, array, None, positions)
    if _base(array) is value:
        return _Step(".base", "attribute", "base", owner=array)
    return _instance_step(value, array, positions)


def _step(value: object, object_: object, above: object, positions: _Positions) -> _Step:
    """Return the step from `value` to the referring object `object_`, to which `above` refers."""
    if _is_a(object_, dict):
        return _dict_step(value, object_, above, positions)  # type: ignore[arg-type]
    if _is_a(object_, list) or _is_a(object_, tuple):
        return _sequence_step(value, object_, above, positions)
    if _is_a(object_, np.ndarray):
        return _array_step(value, object_, positions)
    if _is_a(object_, collections.deque):
        return _deque_step(value, object_)
    if _is_a(object_, set) or _is_a(object_, frozenset):
        return _Step(" (an element)", "item")
    if type(object_) is _lru_cache and _member(object_, value) is None:
        return _Step(" (a cached result)", "cache")
    if type(object_) is types.CellType:
        return _Step("", "closure")
    return _instance_step(value, object_, positions)


# --- Starts of paths. ---


def _suspended_word(object_: object) -> str:
    """Return 'generator ' or 'coroutine ', with the space; '' for objects of other types."""
    for kind, word, _ in _SUSPENDED:
        if type(object_) is kind:
            return f"{word} "
    return ""


def _frame_root(value: object, frame: types.FrameType, word: str, above: object) -> _Root:
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
            return _Root(name, location, "local", function, file, line)
    return _Root("", location, "object", function, file, line)


def _suspended_root(value: object, object_: object) -> _Root | None:
    for kind, _, descriptor in _SUSPENDED:
        if type(object_) is kind:
            frame = descriptor.__get__(object_)
            word = _suspended_word(object_)
            return None if frame is None else _frame_root(value, frame, word, None)
    return None


def _module_name(module: object) -> str:
    for name, found in list(dict.items(sys.modules)):
        if found is module and type(name) is str:
            return name
    return "<module>"


def _root(value: object, path: tuple[Any, ...], at: int) -> _Root | None:
    """Return the root at index `at` of a path: a frame, a generator or a coroutine; else None."""
    object_ = path[at]
    above = path[at + 1] if at + 1 < len(path) else None
    if type(object_) is types.FrameType:
        return _frame_root(value, object_, "", above)
    return _suspended_root(value, object_)


_Walk = tuple[list[_Step], _Root | None, object]  # steps, root, last object


def _walk(target: object, path: tuple[Any, ...], steps: int, positions: _Positions) -> _Walk:
    """Return the steps along a path of referring objects, the root, and the last object.

    The root is None if the path ends without a variable, a function or a module. `steps` is the
    length of the whole path: more than ``len(path)`` if the path was cut before the last object.
    """
    taken: list[_Step] = []
    value, at = target, 0
    while at < len(path):
        root = _root(value, path, at)
        if root is not None:
            return taken, root, path[at]
        if _is_a(path[at], types.ModuleType):
            return taken, _Root(_module_name(path[at])), path[at]
        if steps > len(path) and at == len(path) - 1:
            taken.append(_Step(" ... "))  # stands for the objects that were cut
            return taken, None, path[at]
        above = path[at + 1] if at + 1 < len(path) else None
        step = _step(value, path[at], above, positions)
        taken.append(step)
        at += step.used
        value = path[at - 1]
        if step.kind == "global":
            return taken, _Root(_module_name(value)), value
    return taken, None, value


# --- Texts. ---


def _expression(root: str, accesses: list[str]) -> str:
    return root + "".join(reversed(accesses))


def _first_step(taken: list[_Step]) -> _Step | None:
    """Return the step nearest to the target that adds text to the expression, or None."""
    for step in taken:
        if step.access:
            return step
    return None


def _first_kind(taken: list[_Step], root: _Root | None) -> str:
    first = _first_step(taken)
    if first is not None:
        return first.kind
    return root.kind if root is not None and root.kind else "object"


def _description(kind: str, taken: list[_Step], root: _Root | None, expression: str) -> str:
    first = _first_step(taken)
    attribute = ""
    if kind == "attribute" and first is not None:
        attribute = f"attribute `{first.name}` of {_owner_name(first.owner)}"
    if root is None:
        return attribute or f"{expression}, without a known path from a variable"
    if not root.location:
        return f"{attribute}, {expression}" if attribute else expression
    if not root.expression and not taken:
        return f"a value {root.location}"
    where = f"{'local ' if kind == 'local' else ''}`{expression}` {root.location}"
    return f"{attribute}, {where}" if attribute else where


def _owner_name(owner: object) -> str:
    if _is_a(owner, type):
        return f"class {type_name(owner)}"  # type: ignore[arg-type]
    return type_name(type(owner))


def _start_text(root: _Root | None, last: object) -> str:
    if root is None:
        return f"<{type_name(type(last))}>"
    return "..." if root.location and not root.expression else root.expression


class Namer:
    """Namer of the references to a set of objects.

    The objects and paths must outlive the namer, because caches of the namer use ``id()``.

    Parameters
    ----------
    ways : Iterable[_Way]
        Objects, each with a path of referring objects.
    """

    def __init__(self, ways: Iterable[_Way]) -> None:
        self._positions = _Positions(ways)
        self._tails: dict[int, _Walk] = {}  # by id(): walk from a container to the root

    def refer(self, target: object, path: tuple[Any, ...], steps: int, count: int) -> Referrer:
        """Name the reference from the first object of a path to `target`.

        Parameters
        ----------
        path : tuple[Any, ...]
            Objects from the direct referrer of `target` up to a variable or module.
        steps : int
            Length of the whole path; more than ``len(path)`` if the path was cut.
        count : int
            Number of references from the first object.
        """
        taken, root, last = self._walk(target, path, steps)
        expression = _expression(_start_text(root, last), [step.access for step in taken])
        kind = _first_kind(taken, root)
        text = _description(kind, taken, root, expression)
        if root is None:
            return Referrer(kind, text, None, None, None, None, count)
        return Referrer(kind, text, expression, root.function, root.file, root.line, count)

    def shape(self, target: object, path: tuple[Any, ...], steps: int) -> str:
        """Return the text of refer() for groups of similar references.

        The text has no indexes and keys, and the expression is in backticks.
        """
        taken, root, last = self._walk(target, path, steps)
        expression = _expression(_start_text(root, last), [step.shape for step in taken])
        if root is None:
            return f"`{expression}`, without a known path from a variable"
        if not root.location:
            return f"`{expression}`"
        return (
            f"`{expression}` {root.location}"
            if root.expression or taken
            else f"a value {root.location}"
        )

    def _walk(self, target: object, path: tuple[Any, ...], steps: int) -> _Walk:
        """Return the walk of _walk(). Objects in one container share the walk above the container.

        Only the first step differs between the objects. A first step of two objects, or to a
        module, is not shared.
        """
        if len(path) < 2 or not is_among(type(path[0]), _BATCHED):
            return _walk(target, path, steps, self._positions)
        first = _step(target, path[0], path[1], self._positions)
        if first.used != 1 or first.kind == "global":
            return _walk(target, path, steps, self._positions)
        tail = self._tails.get(id(path[0]))
        if tail is None:
            tail = _walk(path[0], path[1:], steps - 1, self._positions)
            self._tails[id(path[0])] = tail
        taken, root, last = tail
        return [first, *taken], root, last
