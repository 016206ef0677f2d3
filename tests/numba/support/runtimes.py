"""Call Numba's C helpers from Python like compiled code does, on memrt or on stock Numba."""

from __future__ import annotations

import ctypes
import importlib.util
from ctypes import c_int, c_size_t, c_uint, c_void_p, py_object
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from pathlib import Path
from types import ModuleType

import numba

DTOR = ctypes.CFUNCTYPE(None, c_void_p, c_size_t, c_void_p)
MANAGED_DTOR = ctypes.CFUNCTYPE(None, c_void_p)
WORD = 8

# Result and argument types of each helper called without the GIL.
SIGNATURES = {
    "MemInfo_alloc": (c_void_p, c_size_t),
    "MemInfo_alloc_safe": (c_void_p, c_size_t),
    "MemInfo_alloc_aligned": (c_void_p, c_size_t, c_uint),
    "MemInfo_alloc_safe_aligned": (c_void_p, c_size_t, c_uint),
    "MemInfo_alloc_safe_aligned_external": (c_void_p, c_size_t, c_uint, c_void_p),
    "_nrt_get_sample_external_allocator": (c_void_p,),
    "MemInfo_alloc_dtor": (c_void_p, c_size_t, c_void_p),
    "MemInfo_alloc_dtor_safe": (c_void_p, c_size_t, c_void_p),
    "MemInfo_call_dtor": (None, c_void_p),
    "MemInfo_new_varsize": (c_void_p, c_size_t),
    "MemInfo_new_varsize_dtor": (c_void_p, c_size_t, c_void_p),
    "MemInfo_varsize_alloc": (c_void_p, c_void_p, c_size_t),
    "MemInfo_varsize_realloc": (c_void_p, c_void_p, c_size_t),
    "MemInfo_varsize_free": (None, c_void_p, c_void_p),
    "MemInfo_data": (c_void_p, c_void_p),
    "MemInfo_release": (None, c_void_p),
    "Allocate": (c_void_p, c_size_t),
    "Free": (None, c_void_p),
    "get_api": (c_void_p,),
}

# Result and argument types of each helper that needs the GIL.
PYTHON_SIGNATURES = {
    "adapt_ndarray_from_python": (c_int, py_object, c_void_p),
    "adapt_ndarray_to_python_acqref": (py_object, c_void_p, c_void_p, c_int, c_int, c_void_p),
    "adapt_buffer_from_python": (None, c_void_p, c_void_p),
    "meminfo_new_from_pyobject": (c_void_p, c_void_p, py_object),
    "meminfo_as_pyobject": (py_object, c_void_p),
    "meminfo_from_pyobject": (c_void_p, py_object),
}

COUNTERS = ("alloc", "free", "mi_alloc", "mi_free")


def load_stock() -> ModuleType:
    """Load Numba's own runtime module under a new name, because memrt uses the original name."""
    folder = Path(numba.__file__).parent / "core" / "runtime"
    file = next(folder / f"_nrt_python{suffix}" for suffix in EXTENSION_SUFFIXES
                if (folder / f"_nrt_python{suffix}").exists())  # fmt: skip
    loader = ExtensionFileLoader("stock._nrt_python", str(file))
    spec = importlib.util.spec_from_file_location("stock._nrt_python", file, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    assert not hasattr(module, "memrt_version")
    return module


def word(address: int, index: int) -> int:
    """Return a word of a MemInfo: 0 is the count, 3 the data, 4 the size, 5 the allocator."""
    return c_size_t.from_address(address + index * WORD).value


class Runtime:
    """A runtime module with the helpers as attributes: ``runtime.MemInfo_alloc(8)``."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        for factory, table in ((ctypes.CFUNCTYPE, SIGNATURES),
                               (ctypes.PYFUNCTYPE, PYTHON_SIGNATURES)):  # fmt: skip
            for name, signature in table.items():
                setattr(self, name, factory(*signature)(module.c_helpers[name]))
        slots = ctypes.cast(self.get_api(), ctypes.POINTER(c_void_p * 6)).contents
        self.allocate = ctypes.CFUNCTYPE(c_void_p, c_size_t)(slots[0])
        self.allocate_external = ctypes.CFUNCTYPE(c_void_p, c_size_t, c_void_p)(slots[1])
        self.manage_memory = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p)(slots[2])
        self.acquire = ctypes.CFUNCTYPE(None, c_void_p)(slots[3])
        self.release = ctypes.CFUNCTYPE(None, c_void_p)(slots[4])
        self.get_data = ctypes.CFUNCTYPE(c_void_p, c_void_p)(slots[5])

    def counters(self) -> tuple[int, ...]:
        """Switch Numba's four counters on and return their values."""
        self.module.memsys_enable_stats()
        return tuple(getattr(self.module, f"memsys_get_stats_{name}")() for name in COUNTERS)


class Counted:
    """The increase of a runtime's counters since the creation of the object."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.before = runtime.counters()

    def delta(self) -> dict[str, int]:
        now = self.runtime.counters()
        return {name: a - b for name, a, b in zip(COUNTERS, now, self.before, strict=True)}
