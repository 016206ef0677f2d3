"""Errors are kept with their tracebacks, and so with the local arrays. Expected: growth."""

import time

import numpy as np

rng = np.random.default_rng(0)
errors = []


def parse(number):
    noise = rng.random((256, 128))
    table = noise * number  # planted
    del noise
    if number >= 0:
        raise ValueError(f"row {number} is damaged, sum {table.sum()}")


for number in range(100):
    try:
        parse(number)
    except ValueError as error:
        errors.append(error)
    time.sleep(0.002)
