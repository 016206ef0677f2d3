"""Write past the end of an array on memrt. AddressSanitizer must report the write."""

import ctypes

import memrt
import numpy as np

memrt.enable()
array = np.zeros(4096, np.uint8)
assert memrt.handler_name(array) == "memrt"
ctypes.memset(array.ctypes.data, 0, array.nbytes + 1)
