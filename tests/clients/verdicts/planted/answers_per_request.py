"""A service of scikit-learn keeps all answers. Expected: growth, held by answers."""

import time

import numpy as np
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(0)
model = LogisticRegression().fit(rng.random((2000, 8)), np.arange(2000) % 4)
answers = []


def answer(rows):
    chances = model.predict_proba(rows)  # planted
    answers.append(chances)
    return chances.argmax(axis=1)


for _ in range(60):
    answer(rng.random((5000, 8)))
    time.sleep(0.002)
