"""A cache of errors keeps tracebacks with their variables, after python/mypy#4807.

Expected: growth, kept by a traceback.
"""

import time

import numpy as np

rng = np.random.default_rng(0)
failures = {}


def read_file(name):
    header = rng.random(1000)
    content = np.full(40_000, header[0])  # planted
    if content.sum() >= 0:
        raise OSError(f"{name} is damaged")
    return content


def cached_read(name):
    if name not in failures:
        try:
            read_file(name)
        except OSError as error:
            failures[name] = error
    return failures[name]


for number in range(60):
    cached_read(f"file {number}")
    time.sleep(0.002)
