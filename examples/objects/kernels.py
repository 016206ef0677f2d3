"""Functions on grey images, which the C program of this folder calls without Python."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit("float64(float64[:, ::1])")
def contrast(image):
    """Return the standard deviation. The difference and the squares are temporary arrays."""
    difference = image - image.mean()
    return np.sqrt((difference**2).mean())


@njit("float64[:, ::1](float64[:, ::1])")
def halve(image):
    """Return a new image of half the height and width."""
    rows, columns = image.shape[0] // 2, image.shape[1] // 2
    result = np.empty((rows, columns))
    for row in range(rows):
        for column in range(columns):
            result[row, column] = image[2 * row : 2 * row + 2, 2 * column : 2 * column + 2].mean()
    return result


@njit("void(float64[:, ::1])")
def stretch(image):
    """Scale the values to the range from 0 to 1."""
    low, high = image.min(), image.max()
    if low == high:
        raise ValueError("image must have two different values")
    image[:] = (image - low) / (high - low)
