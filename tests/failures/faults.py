"""Define the kinds of faults: memrt's requests, Python's allocators, and system calls."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import memrt
import nomemory
from memrt.testing import fail_allocations

Call = Callable[[], object]
CALLS = ("heap", "mmap", "munmap", "mremap", "madvise", "mprotect", "thread")


def nothing() -> None:
    """Do nothing: for faults without preparation."""


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


THREADS = threads()  # without the purger thread only under MEMRT_DECAY=never


def end_purger() -> None:
    """End the purger thread, so that the next free has to start a new one."""
    memrt.set_option("decay", "never")
    while threads() > THREADS:
        time.sleep(0.001)
    memrt.release_unused()
    memrt.set_option("decay", 60_000)


@dataclass(frozen=True)
class Fault:
    """A kind of failure.

    `run` calls a function in which the nth request of this kind fails, or all requests from there
    on. `points` returns the number of requests in the last run.
    """

    name: str
    run: Callable[[Call, int, bool], object]
    points: Callable[[], int]
    shows: bool  # the call may fail; False: memrt has a fallback, so the call must succeed
    prepare: Callable[[], None] = nothing  # before each call


class Plan:
    """Fault injection of memrt, in the calling thread."""

    def run(self, call: Call, nth: int, goes_on: bool) -> object:
        self.plan = fail_allocations(nth, 1 if goes_on else None, this_thread=True)
        with self.plan:
            return call()

    def points(self) -> int:
        return self.plan.points


class System:
    """Failing C library calls of memrt's libraries. The library of refusing.c must be preloaded."""

    def __init__(self, call: str) -> None:
        self.number = CALLS.index(call)
        self.library = ctypes.CDLL(None)
        self.library.refusing_relent.restype = ctypes.c_ulong
        self.seen = 0

    def run(self, call: Call, nth: int, goes_on: bool) -> object:
        found = self.library.refusing_strike(self.number, ctypes.c_ulong(nth), goes_on)
        assert found >= 2, f"code of two libraries of memrt must be found, got {found}"
        try:
            return call()
        finally:
            self.seen = self.library.refusing_relent()

    def points(self) -> int:
        return self.seen


def system(call: str) -> Fault:
    struck = System(call)
    prepare = end_purger if call == "thread" else nothing
    return Fault(call, struck.run, struck.points, call in ("heap", "mmap", "mprotect"), prepare)


def all_faults() -> dict[str, Fault]:
    plan = Plan()
    ours = Fault("memrt", plan.run, plan.points, True)
    pythons = Fault("python", nomemory.run, nomemory.points, True)
    return {fault.name: fault for fault in (ours, pythons, *map(system, CALLS))}


def keep_what_makes_calls(fault: Fault) -> None:
    """Set the decay so that the calling thread makes the call to fail, not the purger."""
    decay = {"munmap": 0, "mremap": 0, "thread": 60_000}.get(fault.name, "never")
    memrt.set_option("decay", decay)
