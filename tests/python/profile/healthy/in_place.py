"""A simulation works in place."""

import numpy as np

state = np.random.default_rng(0).random(1_000_000)
scratch = np.empty_like(state)
for _ in range(50):
    np.multiply(state, 0.3, out=scratch)
    state -= scratch
print(state.sum())
