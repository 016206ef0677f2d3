"""A simulation allocates a new array in each step. Expected: repeated."""

import numpy as np


def simulate():
    state = np.random.default_rng(4).random(16_384)
    for _ in range(3000):
        state = state * 0.999  # planted
    return state


print(simulate().sum())
