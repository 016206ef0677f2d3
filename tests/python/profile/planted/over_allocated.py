"""A table has space for more rows than the program fills. Expected: untouched, held by table."""

import numpy as np

MOST_ROWS = 1_000_000


def make_table():
    return np.empty((MOST_ROWS, 8))  # planted


table = make_table()
rng = np.random.default_rng(5)
count = 0
for values in rng.random((20_000, 8)):
    table[count] = values
    count += 1
print(table[:count].mean())
