"""A pipeline of scikit-learn is fitted and validated."""

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(0)
features = rng.random((20_000, 12))
target = features @ rng.random(12) + rng.standard_normal(20_000)
scores = cross_val_score(make_pipeline(StandardScaler(), Ridge()), features, target, cv=4)
print(scores.mean())
