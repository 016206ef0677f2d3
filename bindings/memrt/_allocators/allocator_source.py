"""Turn the forms of allocators that :class:`memrt.Policy` accepts into capsules.

A form is recognized without an import of its library: an object of cffi can exist only if cffi was
imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from memrt import _memrt
from memrt._allocators.files import file_capsule
from memrt._allocators.placement import placed_capsule
from memrt._policy.limit_amount import parse_amount
from memrt._support.public import public

SYMBOL = "memrt_allocator"
"""Name of the table that a shared object exports by default."""

_ARENA = 8  # MEMRT_ADAPTOR_ARENA
_CHUNKS = frozenset(2**power for power in range(16, 31))
_CAPSULE = type(_memrt.api)
_ALLOC = ("alloc", "(ctx, size, align)", 3)
_FREE = ("free", "(ctx, ptr, size, align)", 4)


def allocator_capsule(source: object) -> object:
    """Return a capsule with the allocator of any accepted form.

    Raises
    ------
    TypeError
        The object has no accepted form.
    ValueError
        The allocator is of another version, incomplete, or missing in its library.
    OSError
        The library cannot be loaded.
    """
    if isinstance(source, _CAPSULE):
        return _memrt.allocator_of_capsule(source)
    if (get_capsule := getattr(source, "__memrt_allocator__", None)) is not None:
        return _memrt.allocator_of_capsule(get_capsule())
    if isinstance(source, (str, os.PathLike)):
        return _exported_table(os.fspath(source))
    if isinstance(source, tuple):
        return _pair(source)
    if (address := _table_address(source)) is not None:
        return _memrt.allocator_of_table(address, source)
    return _python_object(source)


def choose_source(
    allocator: object,
    pinned: bool,
    has_settings: bool,
    placement: tuple[str | None, int | str | None, object, bool | int],
    files: tuple[str | os.PathLike[str] | None, bool],
) -> object:
    """Return a capsule with the allocator of a new policy, or None for memrt's or pinned memory.

    Parameters
    ----------
    allocator : object
        Any accepted form, or None.
    pinned : bool
        Whether the policy has pinned memory.
    has_settings : bool
        Whether the policy has settings for cached blocks, huge pages and guard pages.
    placement : tuple
        Arguments of :func:`placed_capsule`.
    files : tuple
        Arguments of :func:`file_capsule`.

    Raises
    ------
    ValueError
        Two sources are chosen, a source has settings, or as for the capsule functions.
    """
    placed = placement != (None, None, False, False)
    in_files = files != (None, False)
    if in_files and (placed or pinned or allocator is not None):
        raise ValueError(
            "file and memfd must be unset for a pinned policy and a policy with an allocator or a "
            "placement"
        )
    if pinned and allocator is not None:
        raise ValueError("allocator must be None for a pinned policy")
    if placed and (pinned or allocator is not None):
        raise ValueError(
            "pages, node, lock and prefault must be unset for a pinned policy and a policy with an "
            "allocator: see memrt.adaptors.placed"
        )
    if (pinned or placed or in_files or allocator is not None) and has_settings:
        kind = "pinned policy" if pinned else "policy with an allocator, a placement or files"
        raise ValueError(f"cache_limit, decay, hugepages and guard must be None for a {kind}")
    if in_files:
        return file_capsule(*files)
    if placed:
        return placed_capsule(*placement)
    return None if allocator is None else allocator_capsule(allocator)


def arena_capsule(upstream: object, chunk: int | str) -> object:
    """Return a capsule with an arena over any accepted form of an allocator, or memrt's for None.

    Raises
    ------
    TypeError
        The upstream has no accepted form, or `chunk` is neither a text nor a whole number.
    ValueError
        `chunk` is bad, or as for :func:`allocator_capsule`.
    OSError
        The library of the upstream cannot be loaded.
    """
    nbytes = parse_amount(chunk, "chunk")
    if nbytes not in _CHUNKS:
        raise ValueError(f"chunk must be a power of two from 64 KiB to 1 GiB, got {chunk!r}")
    source = None if upstream is None else allocator_capsule(upstream)
    return _memrt.allocator_adaptor(source, _ARENA, nbytes, None, None, -1)


def split_library(text: str) -> tuple[str, str]:
    """Return library and symbol of a text ``LIBRARY[:SYMBOL]``."""
    library, _, symbol = text.partition(":")
    return library, symbol or SYMBOL


def _exported_table(text: str) -> object:
    """Return a capsule for a table that a shared object exports. The library stays loaded."""
    import ctypes

    path, symbol = split_library(text)
    library = ctypes.CDLL(os.path.abspath(path) if os.path.exists(path) else path)
    try:
        table = ctypes.c_char.in_dll(library, symbol)
    except ValueError:
        raise ValueError(
            f"symbol of an allocator must be exported by the library, got {symbol!r} of {path!r}"
        ) from None
    return _memrt.allocator_of_table(ctypes.addressof(table), library)


def _pair(pair: tuple[Any, ...]) -> object:
    """Return a capsule for a pair of C functions or of Python callables."""
    if len(pair) != 2:
        raise TypeError(f"allocator must be a pair (allocate, free), got {len(pair)} items")
    alloc, free = map(_function_address, pair)
    if alloc is not None and free is not None:
        for function, rule in zip(pair, (_ALLOC, _FREE), strict=True):
            _check_arguments(function, *rule)
        return _memrt.allocator_of_functions(alloc, free, pair)
    if alloc is not None or free is not None:
        raise TypeError(
            "allocator must be two C functions or two Python callables, got one of each"
        )
    return _of_callables(*pair)


def _python_object(source: Any) -> object:
    """Return a capsule for an object with `allocate` and optionally `free`, or for a callable."""
    if hasattr(source, "allocate"):
        return _of_callables(source.allocate, getattr(source, "free", None))
    if _function_address(source) is not None:
        raise TypeError("allocator must be a pair (alloc, free) of C functions, got one function")
    if not callable(source):
        raise TypeError(
            "allocator must be a capsule, a text LIBRARY:SYMBOL, a pair of functions, a callable "
            f"or an object with allocate() and free(), got {type(source).__name__}"
        )
    return _of_callables(source, None)


def _of_callables(allocate: Callable[..., Any], free: Callable[..., Any] | None) -> object:
    for name, function in (("allocate", allocate), ("free", free)):
        if not callable(function) and (function is not None or name == "allocate"):
            raise TypeError(f"{name} must be callable, got {type(function).__name__}")
    return _memrt.allocator_of_callables(allocate, free)


def _function_address(function: Any) -> int | None:
    """Return the address of a C function of ctypes, cffi or Numba, or None for other objects.

    Raises
    ------
    TypeError
        The function is Python code behind a C function of ctypes or cffi. A free would then wait
        for the GIL.
    """
    ctypes, cffi = sys.modules.get("ctypes"), sys.modules.get("_cffi_backend")
    if ctypes is not None and isinstance(function, ctypes._CFuncPtr):
        if _calls_python(function):
            _refuse_python_code("ctypes", function)
        return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
    if cffi is not None and isinstance(function, cffi._CDataBase):
        if cffi.typeof(function).kind != "function":
            return None
        if " calling " in repr(function):
            _refuse_python_code("cffi", function)
        return int(cffi.cast(cffi.new_primitive_type("uintptr_t"), function))
    if hasattr(function, "native_name") and isinstance(getattr(function, "address", None), int):
        return int(function.address)  # numba.core.ccallback.CFunc
    return None


def _calls_python(function: Any) -> bool:
    """Return whether Python code is behind a function of ctypes. Casts keep the same objects."""
    return any(type(kept).__name__ == "CThunkObject" for kept in (function._objects or {}).values())


def _refuse_python_code(library: str, function: object) -> None:
    raise TypeError(
        f"functions of {library} must be C code, got the Python callback {function!r}: pass the "
        "Python functions themselves, which need no callbacks"
    )


def _check_arguments(function: Any, name: str, signature: str, count: int) -> None:
    """Check the number of arguments of a C function, where the function object knows them."""
    cffi = sys.modules.get("_cffi_backend")
    if cffi is not None and isinstance(function, cffi._CDataBase):
        known = cffi.typeof(function).args
    elif hasattr(function, "native_name"):
        known = function._sig.args
    else:
        known = function.argtypes
    if known is not None and len(known) != count:
        raise TypeError(f"{name} must take {count} arguments {signature}, got {len(known)}")


def _table_address(source: Any) -> int | None:
    """Return the address of a memrt_allocator_t behind a pointer of ctypes or cffi, or None."""
    ctypes, cffi = sys.modules.get("ctypes"), sys.modules.get("_cffi_backend")
    if ctypes is not None and isinstance(source, ctypes._Pointer):
        return int(ctypes.cast(source, ctypes.c_void_p).value or 0)
    if cffi is not None and isinstance(source, cffi._CDataBase):
        return int(cffi.cast(cffi.new_primitive_type("uintptr_t"), source))
    return None


@public("memrt.debug")
def set_default_allocator(allocator: object) -> None:
    """Set the allocator of the default policy, before its first use.

    The default policy serves all allocations without a policy, also after ``memrt.enable()`` and in
    jitted code. Policies without an allocator of their own continue to use memrt's allocator. The
    variable ``MEMRT_ALLOCATOR`` does the same for a program without changes.

    Parameters
    ----------
    allocator : object
        Source of the memory, in a form that :class:`memrt.Policy` accepts.

    Raises
    ------
    RuntimeError
        Memory was requested from the default policy before, or the policy has an allocator from an
        earlier call or from ``MEMRT_ALLOCATOR``.
    TypeError
        The allocator has no known form.
    ValueError
        The allocator belongs to a policy or an adaptor, or its table is bad.
    OSError
        The library of the allocator cannot be loaded.
    MemoryError
        The allocation of a guard failed, in checking mode.

    Notes
    -----
    Ownership: the default policy holds the allocator for the life of the process.

    Examples
    --------
    >>> import memrt
    >>> used = memrt.empty(10)
    >>> try:
    ...     memrt.debug.set_default_allocator(memrt.adaptors.counting())
    ... except RuntimeError as error:
    ...     print(str(error)[:29])
    default policy must be unused
    """
    _memrt.default_allocator_set(allocator_capsule(allocator))
