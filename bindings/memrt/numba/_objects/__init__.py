"""Compile jitted functions into an object file for C programs. The modules import Numba."""
