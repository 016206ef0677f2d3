"""Size of the tables of typed containers, which C code of Numba allocates from malloc."""

from __future__ import annotations

import ctypes
import importlib
import sys
from functools import cache
from typing import Any

from memrt.numba import _contract

_CLASSES = {"Dict": "typeddict", "List": "typedlist", "Set": "typedset"}


class _List(ctypes.Structure):
    """Numba's struct NB_List."""

    _fields_ = (
        ("size", ctypes.c_ssize_t),
        ("item_size", ctypes.c_ssize_t),
        ("allocated", ctypes.c_ssize_t),
        ("is_mutable", ctypes.c_int),
        ("methods", ctypes.c_void_p * 2),
        ("table", ctypes.c_void_p),
    )


class _Keys(ctypes.Structure):
    """Numba's structs NB_Dict and NB_Set."""

    _fields_ = (("used", ctypes.c_ssize_t), ("table", ctypes.c_void_p))


def table_nbytes(container: Any) -> int:
    """Return the bytes that a typed container of Numba has allocated from malloc.

    C code of Numba allocates the table of entries, so neither memrt nor Numba's own counters
    include the table. Arrays and strings in the container are memory of memrt, and not part of the
    result.

    Parameters
    ----------
    container : numba.typed.Dict, numba.typed.List or numba.typed.Set
        Container that Python holds. No thread may change the container during the call.

    Returns
    -------
    int
        Bytes as malloc has rounded them, or 0 for a list whose type is unknown.

    Raises
    ------
    TypeError
        The object is no typed container.
    RuntimeError
        Numba has another layout of containers than the tested versions.

    Examples
    --------
    >>> import memrt.numba
    >>> memrt.numba.table_nbytes(numba.typed.List(range(1000)))  # doctest: +SKIP
    9024
    """
    kind = _kind_of(container)
    if kind == "":
        raise TypeError(
            f"container must be a numba.typed.Dict, List or Set, got {type(container).__name__}"
        )
    _verify()
    meminfo = getattr(container, "_opaque", None)
    if meminfo is None:
        return 0
    struct = ctypes.c_void_p.from_address(meminfo.data).value or 0
    layout: Any = _List if kind == "List" else _Keys
    return _usable_bytes(struct) + _usable_bytes(layout.from_address(struct).table)


def _kind_of(container: object) -> str:
    """Return the name of the container's class in numba.typed, or ""."""
    for name, module in _CLASSES.items():
        found = getattr(sys.modules.get(f"numba.typed.{module}"), name, None)
        if found is not None and isinstance(container, found):
            return name
    return ""


def _usable_bytes(address: int | None) -> int:
    if not address:
        return 0
    measure = ctypes.CDLL(None).malloc_usable_size
    measure.restype = ctypes.c_size_t
    return int(measure(ctypes.c_void_p(address)))


@cache
def _verify() -> None:
    problems = _contract.container_differences()
    if problems:
        version = importlib.import_module("numba").__version__
        raise RuntimeError(f"Numba {version} has unknown typed containers: {'; '.join(problems)}")
