"""Figures of matplotlib are drawn, saved and cleared."""

import io

import matplotlib

matplotlib.use("agg")
import numpy as np
from matplotlib.figure import Figure

rng = np.random.default_rng(0)
for _ in range(12):
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot(np.linspace(0, 1, 20_000), rng.random(20_000))
    figure.savefig(io.BytesIO(), dpi=40)
    figure.clear()  # else 19 MB of each figure wait for the cycle collector
