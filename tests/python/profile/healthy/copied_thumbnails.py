"""Thumbnails are copies."""

import numpy as np

rng = np.random.default_rng(0)
thumbnails = {}
for number in range(60):
    frame = rng.random((256, 256))
    thumbnails[number] = frame[::16, ::16].copy()
print(len(thumbnails))
