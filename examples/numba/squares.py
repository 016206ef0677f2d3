"""Call C code from a jitted function. The C code allocates a buffer with Numba's current runtime.

usage: squares.py LIBRARY (the compiled squares.c); on memrt by `python -m memrt run --numba`
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np
from numba import njit
from numba.core.runtime.nrt import MemInfo
from numba.core.unsafe.nrt import NRT_get_api

library = ctypes.CDLL(sys.argv[1])
squares_on_memrt = library.squares_on_memrt
squares_on_memrt.argtypes = (ctypes.c_void_p,)
squares_new = library.squares_new
squares_new.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
squares_new.restype = ctypes.c_size_t


@njit
def squares(count):
    """Return the address of a new MemInfo with one reference, and whether memrt allocated it."""
    nrt = NRT_get_api()
    return squares_new(nrt, count), squares_on_memrt(nrt) != 0


def main() -> None:
    address, on_memrt = squares(1000)
    if address == 0:
        raise MemoryError("no memory for 1000 squares")
    array = np.frombuffer(MemInfo(address), float)  # the MemInfo object steals the reference
    print(f"allocated by {'memrt' if on_memrt else 'Numba'}: the last square is {array[-1]:.0f}")
    if on_memrt:
        import memrt

        buffer = memrt.debug.live()[-1]
        print(f"{buffer.name}: {buffer.nbytes} bytes, {buffer.refcount} reference,",
              f"address ends in {buffer.address % 4096:#x}")  # fmt: skip


main()
