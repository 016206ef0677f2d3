"""Images of Pillow are made smaller, and only the small images are kept."""

import numpy as np
from PIL import Image

small = []
for number in range(30):
    image = Image.effect_noise((512, 512), 20 + number)
    pixels = np.asarray(image, dtype=np.float32)
    small.append(pixels.reshape(64, 8, 64, 8).mean(axis=(1, 3)))
print(np.mean(small))
