"""Each callback keeps the array of its registration. Expected: growth, a closure variable."""

import time

import numpy as np

rng = np.random.default_rng(0)
listeners = []


def subscribe(number):
    noise = rng.random((256, 128))
    baseline = noise - noise.mean()  # planted

    def on_event(value):
        return value - baseline.sum()

    listeners.append(on_event)


for number in range(100):
    subscribe(number)
    time.sleep(0.002)
