"""Threads work on parts of an array."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

data = np.random.default_rng(0).random((16, 65_536))
with ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(lambda row: float(np.sort(row)[0]), data)))
