"""A cache has a limit."""

import functools

import numpy as np

rng = np.random.default_rng(0)


@functools.lru_cache(maxsize=4)
def spectrum(number):
    return np.abs(np.fft.rfft(rng.random(65_536) + number))


for step in range(200):
    spectrum(step).sum()
