"""The surface of each dataset is copied, and the dataset is freed."""

import numpy as np
import xarray as xr

rng = np.random.default_rng(0)
surfaces = []
for _ in range(24):
    levels = rng.standard_normal((40, 60, 120))
    month = xr.Dataset({"temperature": (("level", "lat", "lon"), levels)})
    surfaces.append(month["temperature"].isel(level=0).copy(deep=True))
print(float(xr.concat(surfaces, "month").mean()))
