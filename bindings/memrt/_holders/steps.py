"""Name the steps of a path: attributes, items of containers, closure variables, caches."""

from __future__ import annotations

import collections
import functools
import types
from dataclasses import dataclass
from typing import Any

import numpy as np

from memrt import _memrt
from memrt._holders.inspection import is_a, key_text, member_name, type_name
from memrt._holders.positions import Positions

_base = np.ndarray.base.__get__
_lru_cache = type(functools.lru_cache(len))


@dataclass(frozen=True)
class Step:
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


def step_to(value: object, object_: object, above: object, positions: Positions) -> Step:
    """Return the step from `value` to the referring object `object_`, to which `above` refers."""
    if is_a(object_, dict):
        return _dict_step(value, object_, above, positions)  # type: ignore[arg-type]
    if is_a(object_, list) or is_a(object_, tuple):
        return _sequence_step(value, object_, above, positions)
    if is_a(object_, np.ndarray):
        return _array_step(value, object_, positions)
    if is_a(object_, collections.deque):
        return _deque_step(value, object_)
    if is_a(object_, set) or is_a(object_, frozenset):
        return Step(" (an element)", "item")
    if type(object_) is _lru_cache and member_name(object_, value) is None:
        return Step(" (a cached result)", "cache")
    if type(object_) is types.CellType:
        return Step("", "closure")
    return _instance_step(value, object_, positions)


def _attribute_step(
    value: object, dict_: dict[Any, Any], owner: object, used: int, positions: Positions
) -> Step | None:
    """Return the step to `owner`, whose attribute dict is `dict_`; None if no attribute fits."""
    position = positions.find(dict_, value)
    if position is None or position[0] != "value" or type(position[1]) is not str:
        return None
    kind = "global" if is_a(owner, types.ModuleType) else "attribute"
    return Step(f".{position[1]}", kind, position[1], used, owner)


def _dict_step(value: object, dict_: dict[Any, Any], above: object, positions: Positions) -> Step:
    """Return the step to a dict; to `above` if the dict has the attributes or cache of `above`."""
    if above is not None and _memrt.instance_dict(above) is dict_:
        step = _attribute_step(value, dict_, above, 2, positions)
        if step is not None:
            return step
    if type(above) is _lru_cache:
        return Step(" (a cached result)", "cache", used=2)
    position = positions.find(dict_, value)
    if position is None:
        return Step("[...]", "item")
    if position[0] == "key":
        return Step(f" (the key {key_text(position[1])})", "item")
    return Step(f"[{key_text(position[1])}]", "item", owner=dict_)


def _sequence_step(value: object, sequence: Any, above: object, positions: Positions) -> Step:
    """Return the step to a sequence; to `above` if `above` is a function and `value` a cell."""
    position = positions.find(sequence, value)
    if position is None:  # the sequence has changed since the search
        return Step("[...]", "item")
    index: int = position[1]
    if type(value) is types.CellType and type(above) is types.FunctionType:
        names = types.FunctionType.__code__.__get__(above).co_freevars  # type: ignore[attr-defined]
        if index < len(names):
            return Step(f" (closure variable `{names[index]}`)", "closure", names[index], 2)
    return Step(f"[{index}]", "item")


def _deque_step(value: object, deque: Any) -> Step:
    try:
        for index, item in enumerate(collections.deque.__iter__(deque)):
            if item is value:
                return Step(f"[{index}]", "item")
    except RuntimeError:  # another thread changes the deque
        pass
    return Step("[...]", "item")


def _instance_step(value: object, object_: object, positions: Positions) -> Step:
    name = member_name(object_, value)
    if name is not None:
        return Step(f".{name}", "attribute", name, owner=object_)
    dict_ = _memrt.instance_dict(object_)
    step = None if dict_ is None else _attribute_step(value, dict_, object_, 1, positions)
    return step if step is not None else Step(f" (a {type_name(type(object_))})")


def _array_step(value: object, array: Any, positions: Positions) -> Step:
    if _memrt.find_place(array, value) is not None:
        return _sequence_step(value, array, None, positions)
    if _base(array) is value:
        return Step(".base", "attribute", "base", owner=array)
    return _instance_step(value, array, positions)
