"""An extension forgets to release references. Expected: lost."""

import ctypes

import numpy as np

rng = np.random.default_rng(0)


def decode(number):
    return rng.random((64, 256)) + number  # planted


for number in range(40):
    frame = decode(number)
    if number % 4 == 0:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(frame))
del frame
