"""A dataset is loaded first, and used afterwards."""

import time

import numpy as np

rng = np.random.default_rng(0)


def load(number):
    return rng.random((128, 128)) - number


samples = [load(number) for number in range(100)]
for _ in range(50):
    print(sum(float(sample.max()) for sample in samples))
    time.sleep(0.002)
