"""Run the oracle of the refcount pruning engine on many random functions, in all processors."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from random import Random

from memrt.numba.refprune.engine import plan
from refprune_oracle import ViolationError, check, random_flow

BATCH = 500


@dataclass
class Count:
    """Functions examined, functions with removed calls, and removed calls."""

    functions: int = 0
    pruned: int = 0
    removed: int = 0

    def add(self, other: Count) -> None:
        self.functions += other.functions
        self.pruned += other.pruned
        self.removed += other.removed


def check_batch(first: int) -> Count:
    """Check the functions of BATCH seeds. Raise ViolationError for a wrong function."""
    count = Count(functions=BATCH)
    for seed in range(first, first + BATCH):
        random = Random(seed)
        flow = random_flow(random)
        made = plan(flow, sink=random.random() < 0.8, raises=random.random() < 0.8)
        try:
            check(flow, made)
        except ViolationError as error:
            raise ViolationError(f"seed {seed}: {error}") from None
        count.pruned += bool(made.removed)
        count.removed += len(made.removed)
    return count


def run(functions: int) -> Count:
    """Check the given number of functions. Raise ViolationError for the first wrong function."""
    total = Count()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for count in pool.map(check_batch, range(0, functions, BATCH)):
            total.add(count)
    return total
