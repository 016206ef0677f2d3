"""Policies with allocators of users, under compiled code."""

from __future__ import annotations

import ctypes
import threading

import memrt
import numba
import numpy as np
from memrt import _memrt
from numba import types

libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.restype = None
libc.free.argtypes = [ctypes.c_void_p]
aligned_alloc, free_memory = libc.aligned_alloc, libc.free


@numba.cfunc(types.voidptr(types.voidptr, types.uintp, types.uintp))
def alloc(ctx, size, align):
    return aligned_alloc(align, (size + align - types.uintp(1)) // align * align)


@numba.cfunc(types.void(types.voidptr, types.voidptr, types.uintp, types.uintp))
def free(ctx, ptr, size, align):
    free_memory(ptr)


@numba.njit(nogil=True)
def sum_of_arrays(count):
    total = 0.0
    for i in range(count):
        total += np.ones(100 + i).sum()
    return total


def test_cfuncs_of_numba_serve_numpy_and_compiled_code():
    with memrt.Policy(name="cfuncs", allocator=(alloc, free)) as policy:
        array = np.arange(1000)
        before = policy.stats().alloc
        assert sum_of_arrays(10) == 1045
        assert policy.stats().alloc == before + 10
    assert memrt.handler_name(array) == "memrt:cfuncs"
    assert array.sum() == 499500


def test_python_allocator_serves_compiled_code_without_the_gil():
    live, calls = set(), []

    def allocate(nbytes, alignment):
        address = aligned_alloc(alignment, -(-nbytes // alignment) * alignment)
        live.add(address)
        calls.append(nbytes)
        return address

    def release(address, nbytes):
        live.remove(address)
        free_memory(address)

    policy = memrt.Policy(allocator=(allocate, release))
    sums = []

    def work():
        with policy:
            sums.append(sum_of_arrays(50))

    sum_of_arrays(1)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _memrt.owners()  # runs the queued frees
    assert sums == [sum_of_arrays(50)] * 3
    assert len(calls) == 150
    assert not live
