"""What can be made to fail: memrt's requests, Python's allocators, and calls of the system."""

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
    """Needs no preparation."""


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


THREADS = threads()  # without the one that memrt starts once something waits to be given back


def end_purger() -> None:
    """So that what is freed next has to start it."""
    memrt.set_option("decay", "never")
    while threads() > THREADS:
        time.sleep(0.001)
    memrt.release_unused()
    memrt.set_option("decay", 60_000)


@dataclass(frozen=True)
class Fault:
    """A kind of failure; `run` calls a function in which the nth of that kind fails, or all from
    there on, and `points` says how many there were."""

    name: str
    run: Callable[[Call, int, bool], object]
    points: Callable[[], int]
    shows: bool  # in the outcome: there is no other way to go
    prepare: Callable[[], None] = nothing  # before each call


class Plan:
    """memrt's own failures on purpose."""

    def run(self, call: Call, nth: int, goes_on: bool) -> object:
        self.plan = fail_allocations(nth, 1 if goes_on else None, this_thread=True)
        with self.plan:
            return call()

    def points(self) -> int:
        return self.plan.points


class System:
    """Calls of the C library by memrt's libraries; refusing.c must be preloaded."""

    def __init__(self, call: str) -> None:
        self.number = CALLS.index(call)
        self.library = ctypes.CDLL(None)
        self.library.refusing_relent.restype = ctypes.c_ulong
        self.seen = 0

    def run(self, call: Call, nth: int, goes_on: bool) -> object:
        found = self.library.refusing_strike(self.number, ctypes.c_ulong(nth), goes_on)
        assert found >= 2, "the code of memrt's libraries was not found"
        try:
            return call()
        finally:
            self.seen = self.library.refusing_relent()

    def points(self) -> int:
        return self.seen


def system(call: str) -> Fault:
    struck = System(call)
    prepare = end_purger if call == "thread" else nothing
    return Fault(call, struck.run, struck.points, call in ("heap", "mmap"), prepare)


def all_faults() -> dict[str, Fault]:
    plan = Plan()
    ours = Fault("memrt", plan.run, plan.points, True)
    pythons = Fault("python", nomemory.run, nomemory.points, True)
    return {fault.name: fault for fault in (ours, pythons, *map(system, CALLS))}


def keep_what_makes_calls(fault: Fault) -> None:
    """What is kept for how long, so that the call that fails is made, and not by the purger."""
    decay = {"munmap": 0, "mremap": 0, "thread": 60_000}.get(fault.name, "never")
    memrt.set_option("decay", decay)
