"""Pixels of 8 bits are kept as float64. Expected: wide."""

import numpy as np


def load_images():
    pixels = np.random.default_rng(2).integers(0, 255, (64, 128, 128), dtype=np.uint8)
    return pixels.astype(np.float64)  # planted


images = load_images()
print(images.mean())
