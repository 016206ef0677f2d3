"""Pixels of an image become float64, after joergdietrich/daltonize#14. Expected: wide."""

import numpy as np
from PIL import Image


def simulate(image):
    colors = np.asarray(image, dtype=float)  # planted
    matrix = np.array([[0.2, 0.7, 0.1], [0.2, 0.7, 0.1], [0.0, 0.3, 0.7]])
    for row in colors:
        row[:] = np.rint(row @ matrix)
    return colors


channels = [Image.effect_noise((800, 800), 40 + 10 * number) for number in range(3)]
picture = simulate(Image.merge("RGB", channels))
print(picture.mean())
