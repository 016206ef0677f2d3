"""Batches are read, summed and dropped."""

import numpy as np

rng = np.random.default_rng(0)
total = np.zeros(1000)
for _ in range(300):
    batch = rng.random((100, 1000))
    total += batch.sum(axis=0)
print(total.mean() / 30_000)
