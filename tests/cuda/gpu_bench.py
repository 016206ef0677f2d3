"""Measure CUDA memory and its exchange, next to other installed libraries.

    ./dev bench gpu [--seconds S]

Each row is the minimum time of a call over many repetitions. The script writes no file. Without a
device, MEMRT_CUDA_DRIVER may name the fake driver; the figures then cover memrt's own work only.

No library replaces the script: pyperf needs minutes for each row, and a GPU is often lent for less.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import os
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import NamedTuple

import memrt
import numpy as np

SIZES = (4096, 1 << 20, 64 << 20)
Call = Callable[[], object]


class Row(NamedTuple):
    """A call and its minimum time."""

    work: str
    subject: str
    microseconds: float


def least(call: Call, seconds: float) -> float:
    """Return the microseconds of the quickest call within a number of seconds."""
    call()
    best = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter_ns()
        call()
        best = min(best, time.perf_counter_ns() - begin)
    return best / 1000


def installed(name: str) -> ModuleType | None:
    """Return a library that uses the device, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def raw_allocation(size: int) -> Call:
    """Return a call that allocates and frees through the driver itself, by ctypes."""
    driver = ctypes.CDLL(os.environ.get("MEMRT_CUDA_DRIVER", "libcuda.so.1"))
    context, address = ctypes.c_void_p(), ctypes.c_uint64()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxPushCurrent_v2(context)

    def call() -> None:
        driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
        driver.cuMemFree_v2(address)

    return call


def pinned_numpy(size: int) -> Call:
    policy = memrt.Policy(pinned=True)

    def call() -> None:
        with policy:
            np.empty(size, "u1")

    return call


def allocations(size: int) -> Iterator[tuple[str, Call]]:
    stream = memrt.cuda.Stream()
    yield "memrt, in a stream", lambda: memrt.cuda.empty(size, "u1", stream=stream)
    yield "memrt, without a stream", lambda: memrt.cuda.empty(size, "u1")
    yield "memrt, pinned", lambda: memrt.cuda.empty(size, "u1", kind="pinned")
    yield "NumPy, pinned by memrt", pinned_numpy(size)
    yield "the driver by ctypes", raw_allocation(size)
    cupy, torch = installed("cupy"), installed("torch")
    if cupy is not None:
        yield "CuPy, from its pool", lambda: cupy.empty(size, "u1")
        yield "CuPy, pinned", lambda: importlib.import_module("cupyx").empty_pinned(size, "u1")
    if torch is not None:
        yield "PyTorch, from its pool", lambda: torch.empty(size, dtype=torch.uint8, device="cuda")
        yield "PyTorch, pinned", lambda: torch.empty(size, dtype=torch.uint8, pin_memory=True)


def copies(size: int) -> Iterator[tuple[str, Call]]:
    array = memrt.cuda.empty(size, "u1")
    pageable = np.ones(size, "u1")
    with memrt.Policy(pinned=True):
        pinned = np.ones(size, "u1")
    yield "to the device", lambda: array.copy_from_host(pageable)
    yield "to the device, from a pinned array", lambda: array.copy_from_host(pinned)
    yield "to the host", lambda: array.copy_to_host(pageable)
    yield "to the host, into a pinned array", lambda: array.copy_to_host(pinned)


def exchanges() -> Iterator[tuple[str, Call]]:
    array = memrt.cuda.empty(1000, "f4", stream=memrt.cuda.Stream())
    yield "memrt exports", lambda: array.__cuda_array_interface__
    yield "memrt takes memrt's", lambda: memrt.from_cuda_array_interface(array)
    yield (
        "memrt takes memrt's, sync=False",
        lambda: memrt.from_cuda_array_interface(array, sync=False),
    )
    cupy, torch, numba = installed("cupy"), installed("torch"), installed("numba.cuda")
    if cupy is not None:
        theirs = cupy.ones(1000, "f4")
        yield "memrt takes CuPy's", lambda: memrt.from_cuda_array_interface(theirs)
        yield "CuPy takes memrt's", lambda: cupy.asarray(array)
        yield "CuPy takes CuPy's, a view", lambda: theirs[:]
    if torch is not None:
        tensor = torch.ones(1000, device="cuda")
        yield "memrt takes PyTorch's", lambda: memrt.from_cuda_array_interface(tensor)
        yield "PyTorch takes memrt's", lambda: torch.as_tensor(array, device="cuda")
    if numba is not None:
        yield "Numba takes memrt's", lambda: numba.as_cuda_array(array)


def readable(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def measure(seconds: float) -> Iterator[Row]:
    """Yield all rows, each as soon as it is measured."""
    for size in SIZES:
        for subject, call in allocations(size):
            yield Row(f"make and drop {readable(size)}", subject, least(call, seconds))
    for size in SIZES[1:]:
        for subject, call in copies(size):
            yield Row(f"copy {readable(size)}", subject, least(call, seconds))
    for subject, call in exchanges():
        yield Row("exchange", subject, least(call, seconds))


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="seconds per row, default 0.5")
    chosen = parser.parse_args()
    why = memrt.cuda.why_not()
    if why is not None:
        print(f"no GPU can be used here, so nothing was measured: {why}")
        return 2
    print(f"{'work':24} {'subject':36} {'µs per call':>10}")
    for row in measure(chosen.seconds):
        print(f"{row.work:24} {row.subject:36} {row.microseconds:10.2f}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
