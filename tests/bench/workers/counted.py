"""Have callgrind write down the instructions of pieces of work, each under its name."""

from __future__ import annotations

import ctypes
from collections.abc import Callable


def write_down(library: ctypes.CDLL, name: str, run: Callable[[int], object], times: int) -> int:
    """Those of `run(times)`, after one like it that warms up; returns `times`."""
    run(times)
    library.count_anew()
    run(times)
    library.write_counted(name.encode())
    return times
