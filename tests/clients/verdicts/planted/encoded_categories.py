"""Codes of categories are float64 by default, after scikit-learn/scikit-learn#26063.

Expected: wide, held by codes.
"""

import numpy as np
from sklearn.preprocessing import OrdinalEncoder

answers = np.random.default_rng(0).integers(0, 200, (100_000, 8), dtype=np.int16)
codes = OrdinalEncoder().fit_transform(answers)  # planted
print(codes.mean(axis=0))
