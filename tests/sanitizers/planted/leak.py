"""Leak blocks by extra references to MemInfos. LeakSanitizer must report the leak."""

import ctypes

import memrt

for _ in range(10):  # a stale pointer may hide the leak of the last block
    mi = memrt.alloc(4096)
    count = ctypes.c_size_t.from_address(mi.address - 64)  # the first word of the header
    assert count.value == mi.refcount == 1
    count.value += 1
    del count, mi
