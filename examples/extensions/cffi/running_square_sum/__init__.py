"""running_square_sum: sums of squares of the first 1, 2, ... n elements, in memory of memrt."""

import memrt  # noqa: F401  loads libmemrt, which the extension needs
import numpy as np

from running_square_sum._native import ffi, lib

_API = lib.memrt_get_api(lib.MEMRT_ABI_MAJOR, ffi.NULL)


def running_square_sum(values: np.ndarray) -> np.ndarray:
    """Return the sums of the squares of the first 1, 2, ... n elements."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"values must have one dimension, got {values.ndim}")
    mi = lib.running_square_sum(_API, ffi.from_buffer("double[]", values), len(values))
    if mi == ffi.NULL:
        raise MemoryError(f"no memory for {values.nbytes} bytes")
    # The array keeps `data`, and the end of `data` releases the MemInfo.
    data = ffi.gc(ffi.cast("double *", mi.data), lambda _: _API.release(mi), values.nbytes)
    return np.frombuffer(ffi.buffer(data, values.nbytes), dtype=np.float64)
