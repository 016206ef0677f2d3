"""Context variables that share a place in a context.

CPython keeps them in a tree by their hashes, five bits a level. Where two have the same low bits it
makes two nodes to set one of them, and loses the first, with what it holds, when there is no memory
for the second (hamt_node_bitmap_assoc() of hamt.c, 3.8 to 3.14). Hashes are by chance, and fixed
for the life of a process.
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
    """Whether any two of this context do, NumPy's and memrt's among them."""
    with memrt.Policy():
        places = Counter(map(_place, contextvars.copy_context()))
    return max(places.values()) > 1


def begin_with_places_apart() -> None:
    """Start this process again, with other hashes, until no two share one."""
    if share_a_place():
        os.environ["PYTHONHASHSEED"] = str(secrets.randbelow(2**32))
        os.execv(sys.executable, sys.orig_argv)
