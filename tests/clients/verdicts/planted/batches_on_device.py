"""JAX arrays share the memory of NumPy's arrays on the CPU, after jax-ml/jax#4486.

Expected: growth, held by seen. JAX holds the arrays in C++.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
seen = []


@jax.jit
def loss(batch):
    return jnp.mean(batch**2)


for step in range(40):
    noise = rng.standard_normal((128, 256), dtype=np.float32)
    images = noise + step  # planted
    batch = jax.device_put(images)
    loss(batch).block_until_ready()
    seen.append(batch)
    time.sleep(0.002)
