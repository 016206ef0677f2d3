"""Dump callgrind's instruction counts of pieces of work, each under a name."""

from __future__ import annotations

import ctypes
from collections.abc import Callable


def write_down(library: ctypes.CDLL, name: str, run: Callable[[int], object], times: int) -> int:
    """Run `run(times)` twice, to warm up and to count, and dump the count. Return `times`."""
    run(times)
    library.count_anew()
    run(times)
    library.write_counted(name.encode())
    return times
