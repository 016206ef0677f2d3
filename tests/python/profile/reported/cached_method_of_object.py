"""A cache on a method keeps each object with its data, after AllenInstitute/ipfx#495.

Expected: growth, held by a cached result.
"""

import functools
import time

import numpy as np

rng = np.random.default_rng(0)


class Recording:
    def __init__(self, number):
        noise = rng.standard_normal(30_000)
        self.number, self.sweeps = number, noise * 0.5  # planted

    @functools.lru_cache(maxsize=None)  # noqa: B019, UP033
    def mean_of(self, start):
        return float(self.sweeps[start:].mean())


for number in range(60):
    Recording(number).mean_of(100)
    time.sleep(0.002)
