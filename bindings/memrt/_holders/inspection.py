"""Inspect objects of the user's program without running code of the objects.

The functions compare objects by identity only, never hash or print an object, and read attributes
only in ways that run no code of the object's class.
"""

from __future__ import annotations

import types
from collections.abc import Iterable

_mro = type.__dict__["__mro__"].__get__
_type_name = type.__dict__["__name__"].__get__
_type_dict = type.__dict__["__dict__"].__get__

# Attributes of C classes that hold a reference, and are not member descriptors: type, name.
_C_ATTRIBUTES = (
    (types.FunctionType, "__defaults__"),
    (types.FunctionType, "__kwdefaults__"),
    (types.BuiltinFunctionType, "__self__"),
)
_REPR_TYPES = (str, bytes, int, float, complex, bool, type(None))  # repr() runs no user code
_KEY_MOST = 60  # maximum number of characters of a key
_BITS_MOST = 128  # of an int
_ITEMS_MOST = 4  # of a tuple


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


def is_a(object_: object, kind: type) -> bool:
    """Return isinstance(object_, kind), without the object's ``__class__`` or the metaclass."""
    return is_among(kind, _mro(type(object_)))


def key_text(key: object, depth: int = 2) -> str:
    """Return a key as Python code if its type is built in; for other types the name of the type.

    Long keys are cut and end in ``...``. Integers of more than 128 bits, and tuples nested more
    than `depth` levels deep, also become the name of the type.
    """
    kind = type(key)
    if kind is int and key.bit_length() > _BITS_MOST:  # type: ignore[attr-defined]
        return "<int>"
    if is_among(kind, _REPR_TYPES):
        text = repr(key if kind not in (str, bytes) else key[:_KEY_MOST])  # type: ignore[index]
        return text if len(text) <= _KEY_MOST else f"{text[:_KEY_MOST]}..."
    if depth > 0 and is_among(tuple, _mro(kind)):
        name = "" if kind is tuple else type_name(kind)  # the name of a named tuple
        return name + _tuple_text(key, depth)  # type: ignore[arg-type]
    return f"<{type_name(kind)}>"


def _tuple_text(key: tuple[object, ...], depth: int) -> str:
    first = tuple.__getitem__(key, slice(_ITEMS_MOST))
    items = [key_text(item, depth - 1) for item in first]
    more = ["..."] if tuple.__len__(key) > _ITEMS_MOST else []
    return f"({', '.join([*items, *more])}{',' if len(items) == 1 else ''})"


def member_name(object_: object, value: object) -> str | None:
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
