"""A forest of scikit-learn is trained and predicts in batches."""

import numpy as np
from sklearn.ensemble import RandomForestRegressor


def main():
    rng = np.random.default_rng(0)
    features = rng.random((20_000, 10))
    target = np.sin(features[:, 0] * 6) + features[:, 1] * features[:, 2]
    forest = RandomForestRegressor(n_estimators=8, max_depth=8, random_state=0)
    forest.fit(features, target)
    errors = []
    for start in range(0, 20_000, 2000):
        part = slice(start, start + 2000)
        errors.append(np.abs(forest.predict(features[part]) - target[part]).mean())
    print(np.mean(errors))


main()
