"""One expression standardizes a field with several whole arrays at once. Expected: temporaries."""

import numpy as np
import xarray as xr


def variability(field):
    return ((field - field.mean("time")) ** 2 / field.var("time") + field * 2).max(
        "time"
    )  # planted


def main():
    values = np.random.default_rng(0).standard_normal((120, 60, 120))
    field = xr.DataArray(values, dims=("time", "lat", "lon"))
    for _ in range(3):
        result = variability(field)
    print(float(result.mean()))


main()
