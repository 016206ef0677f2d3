"""Show the progress of long work on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from memrt.commands.output.errors import is_terminal

_Item = TypeVar("_Item")
_EVERY = 0.2
_CLEAR = "\r\x1b[K"


def with_progress(items: Iterable[_Item], total: int, what: str) -> Iterator[_Item]:
    """Yield the items, and show the fraction done on standard error.

    Shows nothing if standard error is closed or not a terminal, or if the work takes less than
    0.2 seconds.
    """
    if not is_terminal():
        yield from items
        return
    shown, last = False, time.monotonic()
    try:
        for done, item in enumerate(items):
            now = time.monotonic()
            if now - last > _EVERY:
                print(f"{_CLEAR}{what}: {done / total:.0%}", end="", file=sys.stderr, flush=True)
                shown, last = True, now
            yield item
    finally:
        if shown:
            print(_CLEAR, end="", file=sys.stderr, flush=True)
