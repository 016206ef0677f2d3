"""A cache of pandas tables has the time as key. Expected: growth, held by a cached result."""

import functools
import time

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
sales = pd.DataFrame(rng.random((20_000, 6)), columns=list("abcdef"))


@functools.cache
def discounted(when):
    return sales * (1 - when % 1 / 10)  # planted


for request in range(60):
    discounted(request / 60).mean()
    time.sleep(0.002)
