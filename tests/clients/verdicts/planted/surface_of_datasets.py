"""The surface of each dataset is a view of all levels, as in pydata/xarray#8728.

Expected: retained, held by surfaces.
"""

import numpy as np
import xarray as xr

rng = np.random.default_rng(0)


def open_month(number):
    levels = rng.standard_normal((40, 60, 120))  # planted
    return xr.Dataset({"temperature": (("level", "lat", "lon"), levels)})


surfaces = []
for number in range(24):
    month = open_month(number)
    surfaces.append(month["temperature"].isel(level=0))
del month
