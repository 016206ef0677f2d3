"""Find names and source lines of native code in symbol tables and debug information.

libdw of elfutils reads both. It is loaded when the first native call is described; without libdw,
nothing is found.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_uint64, c_void_p
from functools import cache
from threading import RLock
from typing import Any, NamedTuple

_LIBRARY = "libdw.so.1"
_FUNCTION = 2  # STT_FUNC


class NativeLine(NamedTuple):
    """Place of a return address."""

    function: str | None
    """Name of the function; None if no symbol is known."""
    offset: int
    """Bytes from the start of the function, or of the object."""
    source: str | None
    """Source file; None without debug information."""
    line: int
    """Source line, or 0."""


class _Callbacks(ctypes.Structure):
    _fields_ = [  # Dwfl_Callbacks
        ("find_elf", c_void_p),
        ("find_debuginfo", c_void_p),
        ("section_address", c_void_p),
        ("debuginfo_path", c_void_p),
    ]


class _Symbol(ctypes.Structure):
    _fields_ = [  # GElf_Sym
        ("name", ctypes.c_uint32),
        ("info", ctypes.c_ubyte),
        ("other", ctypes.c_ubyte),
        ("section", ctypes.c_uint16),
        ("value", c_uint64),
        ("size", c_uint64),
    ]


_lock = RLock()  # libdw is not thread-safe


def _renew_lock() -> None:
    global _lock
    _lock = RLock()


os.register_at_fork(after_in_child=_renew_lock)

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "dwfl_begin": (c_void_p, [c_void_p]),
    "dwfl_end": (None, [c_void_p]),
    "dwfl_report_offline": (c_void_p, [c_void_p, c_char_p, c_char_p, c_int]),
    "dwfl_report_end": (c_int, [c_void_p, c_void_p, c_void_p]),
    "dwfl_module_info": (c_char_p, [c_void_p, c_void_p, POINTER(c_uint64), *[c_void_p] * 5]),
    "dwfl_module_getdwarf": (c_void_p, [c_void_p, POINTER(c_uint64)]),
    "dwfl_module_getsymtab": (c_int, [c_void_p]),
    "dwfl_module_getsym": (c_char_p, [c_void_p, c_int, POINTER(_Symbol), c_void_p]),
    "dwfl_module_addrinfo": (
        c_char_p,
        [c_void_p, c_uint64, POINTER(c_uint64), POINTER(_Symbol), *[c_void_p] * 3],
    ),
    "dwfl_module_getsrc": (c_void_p, [c_void_p, c_uint64]),
    "dwfl_lineinfo": (c_char_p, [c_void_p, c_void_p, POINTER(c_int), *[c_void_p] * 3]),
}


@cache
def _load() -> Any:
    """Return libdw, or None."""
    try:
        library = ctypes.CDLL(_LIBRARY)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError):
        return None
    return library


class _Module:
    """Shared object with its symbols, and its debug information if any.

    Stays open until the process ends.
    """

    def __init__(self, library: Any, module: int, callbacks: _Callbacks) -> None:
        start = c_uint64()
        library.dwfl_module_info(module, None, byref(start), *[None] * 5)
        self._library = library
        self._module = module
        self._callbacks = callbacks  # libdw keeps the address
        self._start = start.value
        self._starts: dict[str, int] | None = None
        self._has_lines = bool(library.dwfl_module_getdwarf(module, byref(c_uint64())))

    @classmethod
    def open(cls, file: str) -> _Module | None:
        library = _load()
        if library is None or not os.path.isfile(file):
            return None
        callbacks = _Callbacks(
            find_debuginfo=_address_of(library.dwfl_standard_find_debuginfo),
            section_address=_address_of(library.dwfl_offline_section_address),
        )
        session = library.dwfl_begin(byref(callbacks))
        name = os.fsencode(file)
        module = session and library.dwfl_report_offline(session, name, name, -1)
        if not module:
            library.dwfl_end(session)
            return None
        library.dwfl_report_end(session, None, None)
        return cls(library, module, callbacks)

    def _find_starts(self) -> dict[str, int]:
        """Return the start of each function. Of several with a name, the first global one."""
        library = self._library
        local: dict[str, int] = {}
        exported: dict[str, int] = {}
        symbol = _Symbol()
        for index in range(1, max(1, library.dwfl_module_getsymtab(self._module))):
            name = library.dwfl_module_getsym(self._module, index, byref(symbol), None)
            if name and symbol.info & 15 == _FUNCTION and symbol.value:
                names = exported if symbol.info >> 4 else local
                names.setdefault(os.fsdecode(name), symbol.value)
        return {**local, **exported}

    def _address(self, function: str | None, offset: int) -> int | None:
        if function is None:
            return self._start + offset
        if self._starts is None:
            self._starts = self._find_starts()
        start = self._starts.get(function)
        return None if start is None else start + offset

    def describe(self, function: str | None, offset: int) -> NativeLine:
        """Describe a return address. The call is before it, perhaps in an earlier line."""
        address = self._address(function, offset) if function is None or self._has_lines else None
        if address is None:
            return NativeLine(function, offset, None, 0)
        library, begin, number = self._library, c_uint64(), c_int()
        name = library.dwfl_module_addrinfo(
            self._module, address - 1, byref(begin), byref(_Symbol()), None, None, None
        )
        line = library.dwfl_module_getsrc(self._module, address - 1)
        source = (
            library.dwfl_lineinfo(line, None, byref(number), None, None, None) if line else None
        )
        if function is None and name:
            function, offset = os.fsdecode(name), begin.value + 1
        return NativeLine(function, offset, os.fsdecode(source) if source else None, number.value)


def _address_of(function: Any) -> int | None:
    return ctypes.cast(function, c_void_p).value


_open_module = cache(_Module.open)


@cache
def native_line(file: str | None, function: str | None, offset: int) -> NativeLine:
    """Return the function and source line of a return address.

    Parameters
    ----------
    file : str or None
        Shared object; None for code made at run time.
    function : str or None
        Function that the dynamic loader knows.
    offset : int
        Bytes from the start of the function, or of the object for None.

    Returns
    -------
    NativeLine
        Without libdw, symbols or debug information: the arguments, without a source.
    """
    if file is None:
        return NativeLine(function, offset, None, 0)
    with _lock:
        module = _open_module(file)
        if module is None:
            return NativeLine(function, offset, None, 0)
        return module.describe(function, offset)
