"""memrt's account of buffers that other libraries hold."""

from __future__ import annotations

import gc

import memrt
from gil import GIL_IS_OFF


def exports_of(mi: memrt.MemInfo, name: str) -> int:
    """Return the number of exports of a buffer under a name, and verify that no other named
    reference exists.
    """
    gc.collect()
    if GIL_IS_OFF:  # all exports of the process, because names are known by a search alone
        return memrt.stats().exported
    named = memrt.holders(mi).named
    assert all((each.name, each.kind) == (name, "export") for each in named)
    return sum(each.count for each in named)
