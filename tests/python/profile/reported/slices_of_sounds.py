"""The first part of each sound is kept, as a slice, after numpy/numpy#15746.

Expected: retained, held by beginnings.
"""

import numpy as np

rng = np.random.default_rng(0)


def load_sound(seconds):
    return rng.standard_normal(8000 * seconds)  # planted


beginnings = []
for _ in range(40):
    sound = load_sound(5)
    beginnings.append(sound[:50])
del sound
