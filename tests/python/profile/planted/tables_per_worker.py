"""Each worker loads the same table. Expected: duplicates, held by table."""

import numpy as np


def load_table():
    return np.random.default_rng(1).random((512, 256))  # planted


class Worker:
    def __init__(self):
        self.table = load_table()


workers = [Worker() for _ in range(8)]
print(sum(worker.table[0, 0] for worker in workers))
