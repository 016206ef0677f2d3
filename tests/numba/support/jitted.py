"""Jitted functions that several files of tests call."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit
def ones(n):
    return np.ones(n)


@numba.njit(nogil=True)
def ones_without_gil(n):
    return np.ones(n)
