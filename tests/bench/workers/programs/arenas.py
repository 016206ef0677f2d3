"""Measure many small arrays: NumPy's allocator, memrt's policy and an arena.

usage: python tests/bench/workers/programs/arenas.py [ROUNDS]

Prints nanoseconds of processor time per array, the minimum of the rounds. No library measures this:
benchmarks of allocators make no arrays.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable

import memrt
import numpy as np

ARRAYS = 100_000
Context = contextlib.AbstractContextManager[object]


def many() -> None:
    """Keep all arrays until the end."""
    kept = [np.empty(8) for _ in range(ARRAYS)]
    del kept


def one() -> None:
    """Free each array before the next."""
    for _ in range(ARRAYS):
        np.empty(8)


def seconds(work: Callable[[], None], context: Context, pause: float) -> float:
    time.sleep(pause)
    begin = time.thread_time()
    with context:
        work()
    return time.thread_time() - begin


def main(argv: list[str]) -> int:
    rounds = int(argv[1]) if len(argv) > 1 else 15
    subjects: dict[str, Context] = {
        "NumPy": contextlib.nullcontext(),
        "memrt": memrt.Policy(),
        "arena": memrt.arena(),
    }
    cases = {"many": (many, 0.0), "many, after a pause": (many, 1.0), "one": (one, 0.0)}
    for name, (work, pause) in cases.items():
        least = dict.fromkeys(subjects, float("inf"))
        for _ in range(rounds):
            for subject, context in subjects.items():
                least[subject] = min(least[subject], seconds(work, context, pause))
        figures = ", ".join(f"{key} {took / ARRAYS * 1e9:.0f} ns" for key, took in least.items())
        print(f"{name}: {figures}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
