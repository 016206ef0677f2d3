"""Compiled code of Numba filters images and returns small results."""

import numba
import numpy as np


@numba.njit
def smooth(image):
    result = np.empty_like(image)
    result[0], result[-1] = image[0], image[-1]
    for row in range(1, image.shape[0] - 1):
        result[row] = (image[row - 1] + image[row] + image[row + 1]) / 3
    return result


rng = np.random.default_rng(0)
means = []
for _ in range(40):
    means.append(smooth(rng.random((200, 200))).mean())
print(np.std(means))
