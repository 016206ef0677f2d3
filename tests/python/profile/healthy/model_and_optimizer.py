"""A model with weights, and moments of an optimizer that start as zeros."""

import numpy as np

rng = np.random.default_rng(0)
weights = [rng.standard_normal((512, 512)) for _ in range(4)]
moments = [np.zeros((512, 512)) for _ in range(4)]
for _ in range(20):
    for weight, moment in zip(weights, moments, strict=True):
        moment *= 0.9
        moment += 0.1 * weight
        weight -= 0.01 * moment
print(sum(weight.sum() for weight in weights))
