"""A cache of a function has no limit. Expected: growth, held by a cached result."""

import functools
import time

import numpy as np

rng = np.random.default_rng(0)


@functools.cache
def features(when):
    frame = rng.random((256, 128))
    return frame * 2.0 + when  # planted


for step in range(100):
    features(step * 0.5).mean()
    time.sleep(0.002)
