"""One expression standardizes a field with several whole arrays at once. Expected: temporaries."""

import numpy as np
import xarray as xr


def variability(field, dim="time"):
    return ((field - field.mean(dim)) ** 2 / field.var(dim) + field * 2).max(dim)  # planted


def main():
    values = np.random.default_rng(0).standard_normal((120, 60, 120))
    field = xr.DataArray(values, dims=("time", "lat", "lon"))
    for _ in range(20):
        result = variability(field)
    print(float(result.mean()))


main()
