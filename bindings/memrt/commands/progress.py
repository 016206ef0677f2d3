"""How far long work is, for who waits at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")
_EVERY = 0.2
_CLEAR = "\r\x1b[K"


def with_progress(items: Iterable[_Item], total: int, what: str) -> Iterator[_Item]:
    """The items, each a part of the work, while standard error says how far it is; nothing where
    that is no terminal, or the work is short."""
    if not sys.stderr.isatty():
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
