"""The host keeps images as float64, and JAX converts each batch to float32.

Expected: wide, held by images.
"""

import jax.numpy as jnp
import numpy as np

pixels = np.random.default_rng(0).integers(0, 256, (200, 64, 64), dtype=np.uint8)
images = pixels.astype(float)  # planted
total = 0.0
for start in range(0, 200, 20):
    total += float(jnp.asarray(images[start : start + 20], dtype=jnp.float32).mean())
print(total)
