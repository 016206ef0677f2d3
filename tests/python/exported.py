"""What memrt shows of memory that other libraries hold."""

from __future__ import annotations

import gc

import memrt


def exports_of(mi: memrt.MemInfo, name: str) -> int:
    """How many exports under that name a buffer has; nobody else holds it under a name."""
    gc.collect()
    named = memrt.holders(mi).named
    assert all((each.name, each.kind) == (name, "export") for each in named)
    return sum(each.count for each in named)
