"""Differences from the mean of the season are computed with xarray, and written in parts."""

import numpy as np
import pandas as pd
import xarray as xr


def main():
    rng = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=365)
    values = rng.standard_normal((365, 30, 60))
    field = xr.DataArray(values, dims=("time", "lat", "lon"), coords={"time": days})
    seasons = field.groupby("time.season")
    anomalies = seasons - seasons.mean("time")
    smooth = anomalies.rolling(time=5).mean()
    for start in range(0, 365, 73):
        print(float(smooth.isel(time=slice(start, start + 73)).max()))


main()
