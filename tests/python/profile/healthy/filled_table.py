"""A table is created first, and filled by parts; a mask starts as zeros, and is read."""

import numpy as np

rng = np.random.default_rng(0)
table = np.empty((200_000, 8))
mask = np.zeros(4_000_000, dtype=bool)
for start in range(0, len(table), 10_000):
    table[start : start + 10_000] = rng.random((10_000, 8))
mask[:1000] = True
print(table.mean(), mask.sum())
