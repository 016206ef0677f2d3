"""Pixels of 8 bits are kept as 8 bits."""

import numpy as np

images = np.random.default_rng(0).integers(0, 255, (512, 128, 128), dtype=np.uint8)
print(images.mean())
