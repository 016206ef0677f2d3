"""Make and drop arrays of random sizes and lifetimes, in threads that start and end.

usage: python arrays.py SECONDS ROUNDS LEAK

Some arrays come from NumPy under memrt's handler, some from memrt.empty and memrt.zeros. Each
thread also drops arrays of the other threads. LEAK (none, blocks or pages) and the output are as
for blocks.c.

No library replaces the program: stress-ng allocates by malloc, not by NumPy.
"""

from __future__ import annotations

import ctypes
import json
import random
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import memrt
import numpy as np

THREADS = 3
PLACES = 256
BUDGET = 64 << 20  # maximum of bytes held
SIZE_LOG2 = 24  # sizes are 1 B to 16 MiB, uniform on a logarithmic scale
PAGE = 4096
LOST = 4 << 20
LEAK_EVERY = 100
MAKERS = (np.empty, np.zeros, memrt.empty, memrt.zeros)

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p


class Churn:
    """The shared state of threads that make and drop arrays."""

    def __init__(self, leak: str) -> None:
        self.leak = leak
        self.lock = threading.Lock()
        self.places: list[np.ndarray | None] = [None] * PLACES
        self.held = self.made = self.threads = 0
        self.ending = False
        self.forgotten: list[np.ndarray] = []
        self.failure: BaseException | None = None

    def put(self, place: int, array: np.ndarray | None) -> None:
        """Store an array in a shared place. Drop the old array outside of the lock."""
        with self.lock:
            old, self.places[place] = self.places[place], array
            self.held -= 0 if old is None else old.nbytes

    def make_room(self, chance: random.Random, size: int) -> None:
        while True:
            with self.lock:
                if self.held + size <= BUDGET:
                    self.held += size
                    self.made += 1
                    return
            self.put(chance.randrange(PLACES), None)

    def step(self, chance: random.Random) -> None:
        place, above = chance.randrange(PLACES), 1 << chance.randrange(SIZE_LOG2)
        self.put(place, None)
        if chance.random() < 0.75:
            size = above + chance.randrange(above)
            self.make_room(chance, size)
            array = chance.choice(MAKERS)(size, np.uint8)
            array[::PAGE] = 1
            self.put(place, array)
        if chance.randrange(LEAK_EVERY) == 0:
            self.go_wrong()

    def go_wrong(self) -> None:
        if self.leak == "blocks":
            self.forgotten.append(memrt.empty(PAGE, np.uint8))
        elif self.leak == "pages":
            ctypes.memset(libc.malloc(LOST), 1, LOST)

    def perform(self, steps: int | None) -> None:
        """Run a thread: `steps` steps, or until the round ends if `steps` is None."""
        with self.lock:
            self.threads += 1
            chance = random.Random(self.threads)
        try:
            while not self.ending if steps is None else steps > 0:
                for _ in range(20):
                    self.step(chance)
                if steps is None:
                    run_threads(1, self.perform, 20)
                else:
                    steps -= 20
        except BaseException as error:
            self.failure = error
            raise

    def round(self, seconds: float) -> None:
        self.ending = False
        ending = threading.Timer(seconds, setattr, (self, "ending", True))
        ending.start()
        run_threads(THREADS, self.perform, None)
        ending.join()
        if self.failure is not None:
            raise self.failure


def run_threads(count: int, target: Callable[..., None], argument: object) -> None:
    """Start `count` threads and wait for the end of all threads."""
    crew = [threading.Thread(target=target, args=(argument,)) for _ in range(count)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()


def number_in(file: str, name: str) -> int:
    text = Path("/proc/self", file).read_text(encoding="ascii")
    return int(re.search(rf"^{name}:\s*(\d+) kB$", text, re.MULTILINE)[1]) * 1024


def resident() -> tuple[int, memrt.types.Stats]:
    """Return resident bytes and the statistics, read while `reserved` did not change."""
    while True:
        before = memrt.stats()
        found = number_in("smaps_rollup", "Rss")
        after = memrt.stats()
        if before.reserved == after.reserved:
            return found, after


def say(churn: Churn, seconds: float) -> None:
    kept, stats = resident()
    sample = {
        "seconds": round(seconds, 3),
        "peak": number_in("status", "VmHWM"),
        "resident": kept,
        "held": churn.held,
        "live": stats.live,
        "cached": stats.cached,
        "reserved": stats.reserved,
        "made": churn.made,
        "threads": churn.threads,
    }
    print(json.dumps(sample), flush=True)


def main() -> None:
    seconds, rounds, leak = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    memrt.enable()
    churn = Churn(leak)
    begin = time.monotonic()
    say(churn, 0)
    for _ in range(rounds):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        churn.round(seconds / rounds)
        say(churn, time.monotonic() - begin)


if __name__ == "__main__":
    main()
