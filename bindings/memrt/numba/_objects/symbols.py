"""Check that a C program can supply all symbols of an object file, without Python."""

from __future__ import annotations

import ctypes
import os
import struct

import memrt
from memrt.numba._objects.errors import ObjectError

NRT_LIBRARY = os.path.join(os.path.dirname(memrt.get_library()), "libmemrt_nrt.so.1")
_COMPILER_LIBRARY = "libgcc_s.so.1"  # supplies functions such as __powidf2, which LLVM calls

_SECTION, _SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
_SYMBOL_TABLE = 2

# Reasons by the beginnings of symbols, the most specific first.
_REASONS = {
    ("numba_parallel_for", "get_num_threads", "set_num_threads", "get_parallel_chunksize"):
        "remove parallel=True",
    ("numba_xx", "numba_ez_", "numba_xgesv"): "linear algebra of Numba needs SciPy",
    ("numba_list_", "numba_dict_"): "typed lists and dicts need Python: use arrays",
    ("numba_get_py_random", "numba_get_np_random", "numba_rnd_"):
        "random numbers of Numba need Python",
    ("_numba_hashsecret", "numba_gettyperecord", "numba_get_PyUnicode"):
        "hashes and case conversion of strings need Python",
    ("__svml_",): "set NUMBA_DISABLE_INTEL_SVML=1",
    ("Py", "_Py", "numba_"): "Python objects, such as print() uses, need Python",
}  # fmt: skip
_SHOWN = 3


def undefined_symbols(data: bytes) -> list[str]:
    """Return the undefined symbols of a 64-bit ELF object file."""
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [_SECTION.unpack_from(data, start + index * size) for index in range(count)]
    (table,) = [section for section in sections if section[1] == _SYMBOL_TABLE]
    offset, length, link = table[4], table[5], table[6]
    names = data[sections[link][4] :]
    found = set()
    for at in range(offset, offset + length, _SYMBOL.size):
        name, _, _, section, _, _ = _SYMBOL.unpack_from(data, at)
        if section == 0 and name != 0:
            found.add(names[name : names.index(b"\0", name)].decode())
    return sorted(found)


def expect_available(data: bytes) -> None:
    """Check that libmemrt_nrt, the C library and the compiler's library have all symbols.

    Raises
    ------
    ObjectError
        If a symbol is missing.
    """
    libraries = [ctypes.CDLL(NRT_LIBRARY), *_load_compiler_library()]
    missing = [name for name in undefined_symbols(data) if not _has(libraries, name)]
    if missing:
        raise ObjectError(
            "compiled code must call only functions of libmemrt_nrt and the C library, got "
            f"{_list(missing)}: {_explain(missing)}"
        )


def is_name_of_library(name: str) -> bool:
    """Return whether libmemrt_nrt or the C library exports the name."""
    return _has([ctypes.CDLL(NRT_LIBRARY)], name)


def _load_compiler_library() -> list[ctypes.CDLL]:
    try:
        return [ctypes.CDLL(_COMPILER_LIBRARY)]
    except OSError:  # a system without a compiler
        return []


def _has(libraries: list[ctypes.CDLL], name: str) -> bool:
    """Return whether a library, or a library that the library links, exports the name."""
    return any(hasattr(library, name) for library in libraries)


def _list(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _explain(names: list[str]) -> str:
    for beginnings, reason in _REASONS.items():
        if any(name.startswith(beginnings) for name in names):
            return reason
    return "call another function"
