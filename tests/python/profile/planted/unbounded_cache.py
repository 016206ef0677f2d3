"""A cache has a key that never repeats. Expected: growth, held by RESULTS."""

import time

import numpy as np

rng = np.random.default_rng(0)
RESULTS = {}


def describe(request):
    image = rng.random((256, 256))
    if request not in RESULTS:
        RESULTS[request] = np.abs(np.fft.rfft2(image))  # planted
    return RESULTS[request].sum()


for request in range(100):
    describe((request, "picture"))
    time.sleep(0.002)
