"""Run one clause of ``python -m memrt check-allocator`` on an allocator of a Python module.

Usage: python -m memrt.commands.workers.allocator_worker LIBRARY MODULE:OBJECT CLAUSE

The clause runs without the GIL, as allocations of C code do. The exit status is 0 for any verdict,
and 2 if the clause cannot run.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from functools import reduce

from memrt._allocators.allocator_source import allocator_capsule


def main() -> None:
    library, target, clause = sys.argv[1:]
    try:
        module, _, names = target.partition(":")
        found = reduce(getattr, names.split("."), importlib.import_module(module))
        capsule = allocator_capsule(found)
    except Exception as error:
        print(f"cannot test {target!r}: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    check = ctypes.CDLL(library).memrt_check_allocator
    check.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    status = check(pointer(capsule, b"memrt.allocator"), clause.encode())
    sys.stdout.flush()
    os._exit(status)  # a clause may have destroyed the allocator, and the capsule would do so again


if __name__ == "__main__":
    main()
