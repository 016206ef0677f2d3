"""A loop collects small results of large inputs."""

import numpy as np

rng = np.random.default_rng(0)
results = []
for _ in range(200):
    sample = rng.random((256, 256))
    results.append(sample.mean(axis=0))
print(np.stack(results).std())
