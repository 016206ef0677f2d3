"""Count the stars of many patches of sky in worker processes. For docs/guide/tour.md."""

from __future__ import annotations

import multiprocessing

import numpy as np

SIDE = 700
PATCHES = 24


def count_stars(seed: int) -> int:
    """Return the number of pixels of one patch that are far above the noise."""
    random = np.random.default_rng(seed)
    patch = random.normal(0, 1, (SIDE, SIDE))
    rows, columns = random.integers(0, SIDE, (2, 50 + seed))
    patch[rows, columns] += 30
    smooth = np.abs(np.fft.irfft2(np.fft.rfft2(patch), patch.shape))
    return int((smooth > 15).sum())


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        print("stars:", sum(pool.map(count_stars, range(PATCHES))))
