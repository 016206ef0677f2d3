"""Thumbnails of Pillow images are views of the whole pixels. Expected: retained."""

import numpy as np
from PIL import Image

thumbnails = {}


def pixels_of(image):
    return np.array(image, dtype=np.float32)  # planted


for number in range(40):
    image = Image.effect_noise((256, 256), 50 + number)
    thumbnails[number] = pixels_of(image)[::16, ::16]
