"""Means by month of a dataset of xarray; the dataset stays in use."""

import numpy as np
import pandas as pd
import xarray as xr

rng = np.random.default_rng(0)
days = pd.date_range("2025-01-01", periods=120)
values = rng.standard_normal((120, 60, 120))
field = xr.DataArray(values, dims=("time", "lat", "lon"), coords={"time": days}, name="heat")
means = field.groupby("time.month").mean("time")
surfaces = [field.isel(time=0).copy(deep=True) for _ in range(3)]
print(float(means.std()), float(surfaces[0].mean()))
