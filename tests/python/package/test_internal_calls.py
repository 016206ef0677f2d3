"""Functions of memrt._memrt refuse wrong arguments, as tools may call them from outside.

Results of functions that read something are freed, too.
"""

import gc
import sys

import memrt
import numpy as np
import pytest
from gil import needs_gil
from memrt import _memrt


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("pressure_setup", ([],), TypeError),
        ("pressure_add", ("token", 1), TypeError),
        ("pressure_add", (64, 1), ValueError),
        ("pressure_add", (0, 9), ValueError),
        ("pressure_remove", (None, 0), TypeError),
        ("pressure_remove", (64, 0), ValueError),
        ("limit_set", (), TypeError),
        ("limit_set", (None, "many"), TypeError),
        ("limit_set", (object(), None), TypeError),
        ("limit_set_soft", (None, -1), ValueError),
        ("limit_read", (object(),), TypeError),
        ("volatile_new", ("many",), TypeError),
        ("volatile_pin", (None,), ValueError),
        ("volatile_made", (None,), ValueError),
        ("volatile_drop", (None,), ValueError),
        ("volatile_read", (None,), ValueError),
    ],
)
def test_wrong_arguments_raise_and_change_nothing(name, arguments, error):
    memrt.on_pressure(len).close()  # sets up the table of callbacks
    before = _memrt.limit_read(None)
    with pytest.raises(error):
        getattr(_memrt, name)(*arguments)
    assert _memrt.limit_read(None)[0] == before[0]


READERS = {
    "sites": lambda array: _memrt.site_allocations(),
    "segments": lambda array: _memrt.segments(),
    "placement": lambda array: _memrt.placement_read(array),
    "meminfo": lambda array: memrt.meminfo(memoryview(array)),
    "live": lambda array: memrt.debug.live(),
    "stats": lambda array: memrt.stats(),
    "stats of policies": lambda array: [each.stats() for each in memrt.debug.policies()],
    "options": lambda array: memrt.debug.options(),
    "memory": lambda array: memrt.debug.memory_stats(),
    "limit": lambda array: _memrt.limit_read(None),
    "holders": lambda array: memrt.holders(array),
    "retention": lambda array: memrt.debug.retention(1, 0.0),
    "references": lambda array: memrt.debug.reference_counts(),
    "handler": lambda array: memrt.handler_name(),
}
CALLS = 20


def count_left(read, array):
    """Return the number of blocks of Python's allocator that stay after CALLS calls."""
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(CALLS):
        read(array)
    gc.collect()
    return sys.getallocatedblocks() - before


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(read, id=name, marks=needs_gil if name in ("holders", "retention") else ())
        for name, read in READERS.items()
    ],
)
def test_results_of_readers_are_freed(read):
    """Caches of CPython may grow at first, so one of several rounds must leave less."""
    with memrt.debug.tracking(), memrt.Policy(pages="4K", name="read"), memrt.scope("read"):
        array = np.ones(10_000)
        assert any(count_left(read, array) < CALLS for _ in range(5))
