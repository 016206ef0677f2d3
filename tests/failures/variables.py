"""Avoid context variables that collide in the hash tree of a context.

CPython stores context variables in a tree by hash, with five bits per level. If two variables have
the same low bits, setting a variable makes two nodes. Without memory for the second node, CPython
leaks the first node and its contents (hamt_node_bitmap_assoc() of hamt.c, 3.8 to 3.14). Hashes are
random, and fixed for the life of a process.
"""

from __future__ import annotations

import contextvars
import os
import secrets
import sys
from collections import Counter

import memrt


def _place(variable: contextvars.ContextVar) -> int:
    folded = (hash(variable) & 0xFFFF_FFFF) ^ (hash(variable) >> 32)
    return folded & 31


def share_a_place() -> bool:
    """Return True if two variables of this context collide, including NumPy's and memrt's."""
    with memrt.scope("variables"), memrt.Policy():
        places = Counter(map(_place, contextvars.copy_context()))
    return max(places.values()) > 1


def begin_with_places_apart() -> None:
    """Restart this process with another hash seed until no two variables collide."""
    if share_a_place():
        os.environ["PYTHONHASHSEED"] = str(secrets.randbelow(2**32))
        os.execv(sys.executable, sys.orig_argv)
