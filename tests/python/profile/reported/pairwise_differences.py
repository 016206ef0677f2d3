"""All pairwise differences exist at once, after fathom-lab/styxx#38. Expected: temporaries."""

import numpy as np


def distances(points):
    return np.sqrt(((points[:, None, :] - points) ** 2).sum(axis=2))  # planted


def main():
    points = np.random.default_rng(5).random((500, 32))
    for _ in range(5):
        result = distances(points)
    print(result.mean())


main()
