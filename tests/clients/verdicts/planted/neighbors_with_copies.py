"""Each model of a search copies the training data into its order. Expected: duplicates."""

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsRegressor

rng = np.random.default_rng(0)
table = pd.DataFrame(rng.random((20_000, 8)), columns=list("abcdefgh"))
models = {}
for neighbors in range(1, 9):
    features = table[["a", "c", "e", "g"]].to_numpy()
    models[neighbors] = KNeighborsRegressor(neighbors).fit(features, table["h"])  # planted
del features
print(models[3].predict(table[["a", "c", "e", "g"]].to_numpy()[:5]))
