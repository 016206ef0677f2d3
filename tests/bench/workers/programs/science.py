"""Programs that use SciPy."""

from __future__ import annotations

import numpy as np
from scipy import interpolate, ndimage, sparse
from scipy.sparse import linalg


def sparse_solver() -> float:
    """Solve Poisson's equation on a square by conjugate gradients."""
    side = 200
    line = sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(side, side))
    one = sparse.identity(side)
    matrix = (sparse.kron(line, one) + sparse.kron(one, line)).tocsr()
    found, _ = linalg.cg(matrix, np.ones(side * side), maxiter=600)
    return float(found.sum())


def interpolation() -> float:
    """Interpolate a field on a grid at many points, linearly and by splines."""
    axis = np.linspace(0, 1, 200)
    field = np.sin(6 * axis[:, None]) * np.cos(4 * axis[None, :])
    linear = interpolate.RegularGridInterpolator((axis, axis), field)
    chance = np.random.default_rng(8)
    total = 0.0
    for _ in range(8):
        places = chance.random((50_000, 2))
        total += linear(places).sum() + ndimage.map_coordinates(field, 199 * places.T).sum()
    return float(total)
