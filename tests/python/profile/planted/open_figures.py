"""Figures of matplotlib are kept after they were drawn. Expected: growth, held by pages."""

import matplotlib

matplotlib.use("agg")
import numpy as np
from matplotlib.figure import Figure

rng = np.random.default_rng(0)
pages = []


def draw(number):
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot(np.linspace(0, 1, 20_000), rng.random(20_000) + number)  # planted
    return figure


for number in range(60):
    pages.append(draw(number))
