"""JAX trains a linear model with batches of NumPy, and keeps the losses."""

import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
features = rng.standard_normal((4000, 32), dtype=np.float32)
target = features @ rng.standard_normal(32, dtype=np.float32)


@jax.jit
def step(weights, batch, wanted):
    def loss(w):
        return jnp.mean((batch @ w - wanted) ** 2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.1 * gradient, value


weights, losses = jnp.zeros(32), []
for start in range(0, 4000, 100):
    part = slice(start, start + 100)
    weights, value = step(weights, features[part], target[part])
    losses.append(float(value))
print(losses[-1])
