"""CPython's capsule functions for structs that ctypes describes."""

from __future__ import annotations

import ctypes

_lent: list[object] = []  # an entry for each struct, until the consumer's release

_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype = ctypes.c_char_p
_name.argtypes = (ctypes.py_object,)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.argtypes = (ctypes.py_object, ctypes.c_char_p)


def capsule_of(struct: ctypes.Structure, name: bytes) -> object:
    """Return a capsule that frees nothing. The caller keeps the struct and the name alive."""
    return _new(ctypes.addressof(struct), name, None)


def name_of(capsule: object) -> bytes:
    return _name(capsule)


def address_in(capsule: object) -> int:
    return _pointer(capsule, name_of(capsule))


def rename(capsule: object, name: bytes) -> None:
    """Rename a capsule without copying the name. The caller keeps the name alive."""
    _rename(capsule, name)


def lend(producer: object) -> None:
    """Keep a producer alive until `give_back`: the collector must not free the functions in a
    struct which a consumer holds.
    """
    _lent.append(producer)


def give_back(producer: object) -> None:
    """End a loan, if there is one."""
    if producer in _lent:
        _lent.remove(producer)


def forget_loans() -> None:
    """End the loans of capsules without a consumer, when no consumer holds a struct."""
    _lent.clear()
