"""References too many, so that blocks outlive all who knew of them: LeakSanitizer must tell."""

import ctypes

import memrt

for _ in range(10):  # of the last, an address may be left somewhere
    mi = memrt.alloc(4096)
    count = ctypes.c_size_t.from_address(mi.data - 64)  # the first word of the header
    assert count.value == mi.refcount == 1
    count.value += 1
    del count, mi
