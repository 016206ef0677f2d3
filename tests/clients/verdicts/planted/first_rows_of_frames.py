"""The first rows of each table are kept, after pandas-dev/pandas#60640.

Expected: retained, held by previews. pandas copies the values.
"""

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)


def load_day(number):
    values = rng.standard_normal((40_000, 4))
    return pd.DataFrame(values, columns=["open", "high", "low", "close"])  # planted


previews = {}
for number in range(30):
    day = load_day(number)
    previews[number] = day.iloc[:5]
del day
