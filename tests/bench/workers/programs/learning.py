"""Programs that use scikit-learn, on data from the package."""

from __future__ import annotations

import numpy as np
from sklearn import datasets, decomposition, ensemble, linear_model, model_selection, preprocessing


def principal_components() -> float:
    """Reconstruct noisy digits from 4, 8, 16 and 32 components."""
    digits = np.repeat(datasets.load_digits().data, 8, axis=0)
    noisy = digits + np.random.default_rng(11).standard_normal(digits.shape)
    error = 0.0
    for count in (4, 8, 16, 32):
        model = decomposition.PCA(count, svd_solver="full").fit(noisy)
        error += float(((model.inverse_transform(model.transform(noisy)) - digits) ** 2).mean())
    return error


def cross_validation() -> float:
    """Classify digits with a linear model and with trees, by five-fold cross-validation."""
    images, names = datasets.load_digits(return_X_y=True)
    images = preprocessing.StandardScaler().fit_transform(images)
    linear = linear_model.RidgeClassifier()
    trees = ensemble.ExtraTreesClassifier(20, random_state=0)
    scores = [model_selection.cross_val_score(model, images, names) for model in (linear, trees)]
    return float(np.mean(scores))
