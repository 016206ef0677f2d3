"""Compiled code of Numba loses its arrays when it raises an error, after numba/numba#8689.

Expected: lost, at the call, because compiled code has no lines. Needs the option --numba.
"""

import numba
import numpy as np


@numba.njit
def check(row):
    if row.min() < -0.1:
        raise ValueError("negative value")


@numba.njit
def normalize(row):
    scaled = row / row.sum()
    check(scaled)
    return scaled


rng = np.random.default_rng(0)
failed = 0
for number in range(40):
    values = rng.random(20_000)
    values[7] = -10_000 if number % 2 else 1
    try:
        normalize(values)  # planted
    except ValueError:
        failed += 1
print(failed)
