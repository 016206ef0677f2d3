"""Views of a table share the table, which is itself in use."""

import numpy as np

table = np.random.default_rng(0).random((1000, 1000))
columns = [table[:, number] for number in range(10)]
print(sum(column.sum() for column in columns), table.shape)
